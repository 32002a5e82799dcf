"""`tasks.selection.retrieval.index` and `answers`: searches, and answers ranked by the model."""

import json
import shutil
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import refusal

from colloquy.data.tokenizers import words_of
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine import parallel
from colloquy.tasks.selection.retrieval import index as index_module
from colloquy.tasks.selection.retrieval.answers import (
    SHOWN,
    AnsweringPredictor,
    answers_of,
    as_written,
    candidates_of,
    without_duplicates,
)
from colloquy.tasks.selection.retrieval.build import build, of_corpus
from colloquy.tasks.selection.retrieval.index import Hit, RetrievalIndex, idf_norm

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
VECTORS = np.random.default_rng(3).normal(size=(len(VOCABULARY) + 1, 7)).astype("float32")


PREDICTOR = types.SimpleNamespace(
    vocabulary=VOCABULARY,
    text={"tokenizer": "terms", "lower": True},
    model=types.SimpleNamespace(word_vectors=lambda: VECTORS),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "index"
    build(PREDICTOR, path, CONVERSATIONS, ["x"])
    return path


@pytest.fixture(scope="module")
def index(path):
    return RetrievalIndex(path, VOCABULARY)


# === On disk ===


def test_unfit_responses_are_left_out(index):
    stored = [pair["text"] for pair in index.responses.corpus]
    assert sorted(stored) == sorted(text for turns in TOPICS.values() for text in turns)
    # a name, an unknown word, no word, a word that the corpus hides
    assert index.config["left_out"] == 4
    assert (index.size, index.config["pairs"], index.config["made_of"]) == (9, 9, ["x"])


def test_other_directories_versions_and_vocabularies_are_refused(path, tmp_path):
    other = Vocabulary.of(WORDS[::-1])
    assert "built for a run of another vocabulary" in refusal(RetrievalIndex, path, other)

    command = "build it anew by python -m colloquy.tools.build_index --run=RUN"
    message = refusal(RetrievalIndex, tmp_path, VOCABULARY)
    assert "expected an index of version 6, received none" in message and command in message

    old = shutil.copytree(path, tmp_path / "old")
    config = json.loads((old / index_module.CONFIG).read_text())
    (old / index_module.CONFIG).write_text(json.dumps({**config, "index": 5}))
    message = refusal(RetrievalIndex, old, VOCABULARY)
    assert "expected an index of version 6, received 5" in message and command in message


@pytest.mark.parametrize(
    "conversations",
    [
        [],
        [["a"]],
        [["hello", "?"]],
        [["hello", "ok ... no idea , i like tea my ass"], ["a", "so i do too"]],
    ],
)
def test_nothing_is_left_where_nothing_is_fit(tmp_path, conversations):
    message = refusal(build, PREDICTOR, tmp_path / "out", conversations)
    assert "an index needs conversations" in message
    assert list(tmp_path.iterdir()) == []


# === Searches ===


def test_search_finds_by_the_words_of_contexts_and_responses(index):
    hits = {hit.text: hit for hit in index.search(["Does it bark?", "My dog barks!"])}
    assert hits["A dog eats bones."].ranks["contexts"] == 1  # it was said to that
    assert hits["My dog barks."].ranks["responses"] == 1  # it has these words
    assert hits["A dog eats bones."].context == ["Hello!", "My dog barks."]
    assert index.search(["zork"]) == index.search([""]) == []  # words that nobody knows


def test_several_threads_may_search(trained_index, prepared):
    conversations = list(of_corpus("smn", prepared.parent / "raw"))[:30]
    expected = [trained_index.search(turns) for turns in conversations]
    with ThreadPoolExecutor(max_workers=5) as threads:
        assert list(threads.map(trained_index.search, conversations)) == expected


def test_vectors_find_the_largest_cosines(index):
    turns = ["Rain!", "A dog barks, my tea is hot!"]
    read_words = index.split(" ".join(turns))
    context = index_module.text_vector(read_words, VOCABULARY, index.word_vectors)
    cosines = {}
    for pair in index.responses.corpus:
        words = index.split(pair["text"])
        vector = index_module.text_vector(words, VOCABULARY, index.word_vectors)
        cosines[pair["text"]] = float(vector @ context)

    hits = [hit for hit in index.search(turns) if "vectors" in hit.ranks]
    hits.sort(key=lambda hit: hit.ranks["vectors"])
    expected = sorted(cosines, key=lambda text: -cosines[text])
    assert [hit.text for hit in hits] == expected and len(hits) == 9


def test_word_similarity_is_the_cosine_of_idf(index):
    idf = index.idf
    text = {"dog", "barks", "zork"}
    norm = idf_norm(text, idf)
    [similarity] = index.word_similarities(["dog", "dog", "bones"], [text], [norm])
    first = np.array([idf["dog"], idf["bones"], 0.0])
    second = np.array([idf["dog"], 0.0, idf["barks"]])
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    assert similarity == pytest.approx(cosine)
    assert index.word_similarities(["zork"], [{"zork"}, set()], [0.0, 0.0]) == [0.0, 0.0]


def similarity_of(index, words, other):
    norm = idf_norm(set(other), index.idf)
    [similarity] = index.word_similarities(words, [set(other)], [norm])
    return similarity


def test_a_search_splits_the_conversation_alone(index, monkeypatch):
    split_texts = []

    def split(text, **settings):
        split_texts.append(text)
        return words_of(text, **settings)

    monkeypatch.setattr(index_module, "words_of", split)
    turns = ["Does it bark?", "My dog barks!"]
    assert candidates_of(index, turns, 32)
    assert set(split_texts) == set(turns)


def test_hits_are_ordered_by_the_whole_conversation(index):
    turns = ["Rain is wet.", "Hello!", "Who?", "Hello!", "Look!", "Who?", "My dog barks!"]
    all_words = index.split(" ".join(turns))
    read_words = index.split(" ".join(turns[-index_module.TURNS_READ :]))
    context = index_module.text_vector(read_words, VOCABULARY, index.word_vectors)

    hits = index.search(turns)
    similarities = []
    for hit in hits:
        words = index.split(hit.text)
        vector = index_module.text_vector(words, VOCABULARY, index.word_vectors)
        similarity = similarity_of(index, all_words, words)
        similarities.append(similarity + index_module.VECTOR_WEIGHT * float(vector @ context))

        question = index.split(hit.context[-1])
        similarity = similarity_of(index, index.split(turns[-1]), question)
        assert hit.question == pytest.approx(similarity)
    assert similarities == pytest.approx(sorted(similarities, reverse=True))
    assert len({hit.text for hit in hits}) == len(hits) > 5


# === Answers ===


@pytest.fixture(scope="module")
def trained_index(selection_predictor, selection_index):
    """An index of the conversations that the small run was trained on."""
    return RetrievalIndex(selection_index, selection_predictor.vocabulary)


def test_candidates_are_responses_to_the_most_similar_questions_then_the_others(trained_index):
    turns = ["the market is far", "what can you tell me about the town ?"]
    hits = candidates_of(trained_index, turns, 300)
    questions = [hit.question for hit in hits if "contexts" in hit.ranks]
    assert questions == sorted(questions, reverse=True)
    assert questions == [hit.question for hit in hits[: len(questions)]]
    assert 9 < len(questions) < len(hits)
    words_of_turns = [trained_index.split(turn) for turn in turns]
    assert hits == without_duplicates(hits, words_of_turns)
    assert candidates_of(trained_index, turns, 5) == hits[:5]


def test_answers_are_ordered_by_the_model_and_by_their_questions(
    trained_index, selection_predictor, prepared
):
    turns = list(of_corpus("smn", prepared.parent / "raw"))[7][:-1]
    hits = candidates_of(trained_index, turns, 23)
    texts = [hit.text for hit in hits]
    [prediction] = selection_predictor.predict([{"turns": turns, "candidates": texts}])
    totals = {}
    for hit, logit in zip(hits, prediction["logits"], strict=True):
        totals[hit.text] = logit + 16 * hit.question

    answers = answers_of(selection_predictor, trained_index, turns, 23)
    assert [answer.total for answer in answers] == sorted(totals.values(), reverse=True)
    assert {answer.text: answer.total for answer in answers} == totals
    scores = dict(zip(texts, prediction["scores"], strict=True))
    assert {answer.text: answer.score for answer in answers} == scores


def test_a_predictor_answers_from_its_index_as_people_write(
    selection_predictor, selection_index, monkeypatch
):
    predictor = AnsweringPredictor(selection_predictor, selection_index)
    turns = ["what is the town like ?"]
    best = answers_of(selection_predictor, predictor.index, turns)[:SHOWN]
    monkeypatch.setitem(selection_predictor.text, "tokenizer", "terms")

    [answer] = predictor.predict([{"turns": turns}])
    assert answer["totals"] == [hit.total for hit in best]
    assert answer["candidates"] == [as_written(hit.text, "terms") for hit in best]
    assert any(" ." in hit.text for hit in best)
    assert not any(" ." in text for text in answer["candidates"])
    assert "logits" not in answer and answer["order"] == list(range(len(best)))
    assert predictor.reply(answer) == answer["candidates"][0]

    [nothing] = predictor.predict([{"turns": ["zork"]}])
    assert "the index has no response with these words" in refusal(predictor.reply, nothing)


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
    search = predictor.index.search

    def search_beside_another(turns):
        barrier.wait(timeout=30)
        return search(turns)

    monkeypatch.setattr(parallel, "batches_at_once", lambda: 2)
    monkeypatch.setattr(predictor.index, "search", search_beside_another)
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
    ],
)
def test_near_duplicates_and_echoes_are_left_out(texts, said, kept):
    def words(text):
        return words_of(text, tokenizer="terms", lower=False)

    hits = [Hit(text, words=frozenset(words(text))) for text in texts]
    words_of_turns = [words(text) for text in said]
    assert [hit.text for hit in without_duplicates(hits, words_of_turns)] == kept
