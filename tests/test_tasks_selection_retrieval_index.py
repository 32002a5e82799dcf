"""`tasks.selection.retrieval.index` and `answers`: searches, and answers ranked by the model."""

import functools
import json
import os
import shutil
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import refusal

from colloquy.data.tokenizer_config import TokenizerConfig
from colloquy.data.tokenizers import words_of
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine import parallel
from colloquy.tasks.selection.retrieval import index as index_module
from colloquy.tasks.selection.retrieval.answers import (
    NOTHING_FOUND,
    SHOWN,
    AnsweringPredictor,
)
from colloquy.tasks.selection.retrieval.build import build, of_corpus
from colloquy.tasks.selection.retrieval.index import (
    HITS_PER_SEARCH,
    Hit,
    RetrievalIndex,
    search_bm25,
    word_similarity,
)
from colloquy.tasks.selection.retrieval.responses import as_written, without_duplicates

TOPICS = {
    "tea": ["I like tea.", "Tea is hot!", "Drink the tea slowly."],
    "rain": ["The rain falls.", "Rain is wet, so wet.", "I like rain too."],
    "dog": ["My dog barks.", "A dog eats bones.", "The dog sleeps; the dog dreams."],
}
CONVERSATIONS = [
    *(["Hello!", *turns] for turns in TOPICS.values()),
    ["Who likes tea?", "Zed, look at the tea."],
    ["A dog?", "_UNK_ is a dog"],
    ["Where?", "?!", "See __url__ !"],
]
WORDS = (
    "hello i like tea is hot drink the slowly rain falls wet so too my dog barks a eats bones "
    "sleeps look who ? ! . ,"
).split()
VOCABULARY = Vocabulary.of(WORDS)
TERMS = TokenizerConfig(tokenizer="terms", lower=True)
PREDICTOR = types.SimpleNamespace(vocabulary=VOCABULARY, text=TERMS)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "index"
    build(PREDICTOR, path, CONVERSATIONS)
    return path


@pytest.fixture(scope="module")
def index(path):
    return RetrievalIndex(path, VOCABULARY)


def search(index, turns):
    return list(index.search([index.text.words(turn) for turn in turns]))


# === On disk ===


def test_unfit_responses_are_left_out(index, path):
    stored = [pair["text"] for pair in index.responses.corpus]
    assert sorted(stored) == sorted(text for turns in TOPICS.values() for text in turns)
    # a name, an unknown word, no word, a word that the corpus hides
    config = json.loads((path / index_module.CONFIG).read_text())
    assert (config["responses"], config["pairs"], config["left_out"]) == (9, 9, 4)


def test_other_directories_versions_and_vocabularies_are_refused(path, tmp_path):
    other = Vocabulary.of(WORDS[::-1])
    assert "another vocabulary" in refusal(RetrievalIndex, path, other)
    old = shutil.copytree(path, tmp_path / "old")
    config = json.loads((old / index_module.CONFIG).read_text())
    (old / index_module.CONFIG).write_text(json.dumps({**config, "index": 5}))
    for directory, received in ((tmp_path, "Received: no"), (old, "received 5")):
        message = refusal(RetrievalIndex, directory, VOCABULARY)
        assert received in message and "colloquy.tools.build_index" in message
        assert ("remove it" in message) == (directory == old)


@pytest.mark.parametrize("conversations", [[], [["a"]], [["hello", "?"]]])
def test_nothing_is_left_where_nothing_is_fit(tmp_path, conversations):
    message = refusal(build, PREDICTOR, tmp_path / "out", conversations)
    assert "an index needs conversations" in message
    assert list(tmp_path.iterdir()) == []


# === Searches ===


@pytest.mark.parametrize("size", [0, 100])
def test_a_damaged_index_is_named(path, tmp_path, size):
    damaged = shutil.copytree(path, tmp_path / "index")
    for file in damaged.rglob("*.npy"):
        os.truncate(file, size)
    message = refusal(RetrievalIndex, damaged, VOCABULARY)
    assert f"{damaged} is a damaged index: remove it. " in message


def test_search_finds_by_the_words_of_contexts_and_responses(index):
    hits = search(index, ["Does it bark?", "My dog barks!"])
    assert hits[0].text == "A dog eats bones."  # it was said to that
    assert hits[0].context == ["Hello!", "My dog barks."]
    assert "My dog barks." in [hit.text for hit in hits]  # it has these words
    # No context has the word, and one response.
    assert [hit.text for hit in search(index, ["dreams"])] == ["The dog sleeps; the dog dreams."]
    assert search(index, ["zork"]) == search(index, [""]) == []  # words that nobody knows


def test_several_threads_may_search(trained_index, prepared):
    conversations = list(of_corpus("smn", prepared.parent / "raw"))[:30]
    find = functools.partial(search, trained_index)
    expected = [find(turns) for turns in conversations]
    with ThreadPoolExecutor(max_workers=5) as threads:
        assert list(threads.map(find, conversations)) == expected


def test_word_similarity_is_the_cosine_of_idf(index):
    idf = index.idf
    first = np.array([idf["dog"], idf["bones"], 0.0])
    second = np.array([idf["dog"], 0.0, idf["barks"]])
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    found = word_similarity({"dog", "bones"}, {"dog", "barks", "zork"}, idf)
    assert found == pytest.approx(cosine)
    assert word_similarity({"zork"}, {"zork"}, idf) == word_similarity({"dog"}, set(), idf) == 0.0


def test_hits_by_context_come_first_by_their_questions_then_others_by_all_words(
    trained_index,
):
    turns = ["the market is far", "what can you tell me about the town ?"]
    hits = search(trained_index, turns)
    assert len({hit.text for hit in hits}) == len(hits) > 9
    said = [set(trained_index.text.words(turn)) for turn in turns]
    pairs = search_bm25(trained_index.contexts, said[-1], 2 * HITS_PER_SEARCH)
    found_by_context = list(dict.fromkeys(pair["text"] for pair in pairs))[:HITS_PER_SEARCH]
    keys = []
    for hit in hits:
        question = set(trained_index.text.words(hit.context[-1]))
        assert hit.question_similarity == word_similarity(said[-1], question, trained_index.idf)
        first = -hit.question_similarity if hit.text in found_by_context else 1.0
        keys.append((first, -word_similarity(said[0] | said[1], hit.words, trained_index.idf)))
    assert keys == sorted(keys) and 1 < sum(first < 1.0 for first, _ in keys) < len(keys)


# === Answers ===


@pytest.fixture(scope="module")
def trained_index(selection_predictor, selection_index):
    """An index of the conversations that the small run was trained on."""
    return RetrievalIndex(selection_index, selection_predictor.vocabulary)


def test_a_predictor_orders_answers_by_the_model_and_by_their_questions(
    selection_predictor, selection_index, prepared
):
    predictor = AnsweringPredictor(selection_predictor, selection_index)
    turns = list(of_corpus("smn", prepared.parent / "raw"))[7][:-1]
    hits = predictor.source.find(turns)
    texts = [hit.text for hit in hits]
    [prediction] = selection_predictor.predict([{"turns": turns, "candidates": texts}])
    totals = {}
    for hit, logit in zip(hits, prediction["logits"], strict=True):
        totals[hit.text] = logit + 16 * hit.question_similarity

    [answer] = predictor.predict([{"turns": turns}])
    assert answer["good"] and "reason" not in answer
    assert answer["totals"] == sorted(totals.values(), reverse=True)[:SHOWN]
    assert [totals[text] for text in answer["candidates"]] == answer["totals"]
    scores = dict(zip(texts, prediction["scores"], strict=True))
    assert [scores[text] for text in answer["candidates"]] == answer["scores"]
    contexts = {hit.text: hit.context for hit in hits}
    assert [contexts[text] for text in answer["candidates"]] == answer["said_to"]
    assert "logits" not in answer and answer["order"] == list(range(len(answer["totals"])))


def test_a_predictor_answers_as_people_write(selection_predictor, selection_index, monkeypatch):
    predictor = AnsweringPredictor(selection_predictor, selection_index)
    turns = ["what is the town like ?"]
    [raw] = predictor.predict([{"turns": turns}])
    monkeypatch.setattr(selection_predictor, "text", TERMS)
    [answer] = predictor.predict([{"turns": turns}])
    assert answer["candidates"] == [as_written(text, "terms") for text in raw["candidates"]]
    assert any(" ." in text for text in raw["candidates"])
    assert not any(" ." in text for text in answer["candidates"])
    assert predictor.reply(answer) == answer["candidates"][0]
    # What is explained is the response as the model reads it.
    explained = []
    monkeypatch.setattr(
        selection_predictor,
        "answer_with_attention",
        lambda instance, details: (None, explained.append(instance.candidates) or []),
    )
    predictor.explain(predictor.make_instance({"turns": turns}, "x"))
    assert explained == [raw["candidates"][:1]]

    [nothing] = predictor.predict([{"turns": ["zork"]}])
    assert not nothing["good"] and nothing["candidates"] == []
    assert predictor.reply(nothing) == nothing["reason"] == NOTHING_FOUND
    monkeypatch.setattr(predictor.source, "find", lambda turns: [])  # all were said before
    [said] = predictor.predict([{"turns": turns}])
    assert said == nothing and "not said before" in said["reason"]


def test_several_conversations_are_answered_at_once(
    selection_predictor, selection_index, monkeypatch
):
    predictor = AnsweringPredictor(selection_predictor, selection_index)
    instances = [
        {"turns": ["what is the town like ?"]},
        {"turns": ["hello"], "candidates": ["yes", "no thank you"]},
        {"turns": ["the market is far"]},
    ]
    alone = [predictor.predict([instance])[0] for instance in instances]

    barrier = threading.Barrier(2)
    search = predictor.source.index.search

    def search_beside_another(turns):
        barrier.wait(timeout=30)
        return search(turns)

    monkeypatch.setattr(parallel, "batches_at_once", lambda: 2)
    monkeypatch.setattr(predictor.source.index, "search", search_beside_another)
    assert predictor.predict(instances) == alone


@pytest.mark.parametrize(
    ("texts", "said", "kept"),
    [
        (
            ["Try this, it works!", "try this it works", "How do I mount it??", "ok", "OK."],
            ["hi", "how do i mount it"],
            ["Try this, it works!", "ok"],
        ),
        # Four of five words are the same; then five of six are, but of a dropped text.
        (["a b c d", "a b c d e", "a b c d e f"], [], ["a b c d", "a b c d e f"]),
        (["?", "!", "?"], [], ["?", "!"]),
        # A reply of the bot comes back as it was written.
        (["add ppa : ondrej / php5 !", "ok"], ["add ppa:ondrej/php5!"], ["ok"]),
    ],
)
def test_near_duplicates_and_echoes_are_left_out(texts, said, kept):
    def words(text):
        return words_of(text, tokenizer="terms", lower=False)

    hits = [Hit(text, words=frozenset(words(text))) for text in texts]
    words_of_turns = [words(text) for text in said]
    assert [hit.text for hit in without_duplicates(hits, words_of_turns)] == kept
