"""`tasks.selection.retrieval.index` and `answers`: an index on disk, its searches, answers ranked
by the model.
"""

import re
import shutil
import types

import numpy as np
import pytest
from helpers import flip_bit, refusal

from colloquy.base.files import CHECKSUMS
from colloquy.data.sequences import Sequences
from colloquy.data.tokenizers import words_of
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.selection.retrieval import index as files
from colloquy.tasks.selection.retrieval.answers import (
    AnsweringPredictor,
    answers_of,
    as_written,
    candidates_of,
    without_duplicates,
)
from colloquy.tasks.selection.retrieval.build import build, of_corpus
from colloquy.tasks.selection.retrieval.index import Hit, RetrievalIndex, best_by_words

TEXT = {"tokenizer": "terms", "lower": True}
TOPICS = {
    "tea": ["I like tea.", "Tea is hot!", "Drink the tea slowly."],
    "rain": ["The rain falls.", "Rain is wet, so wet.", "I like rain too."],
    "dog": ["My dog barks.", "A dog eats bones.", "The dog sleeps; the dog dreams."],
}
CONVERSATIONS = [["Hello!", *turns] for turns in TOPICS.values()] + [
    ["Who likes tea?", "Zed, look at the tea."],
    ["A dog?", "_UNK_ is a dog"],
    ["Where?", "?!", "See __url__ !"],
]
WORDS = "hello i like tea is hot drink the slowly rain falls wet so too my dog barks a eats bones sleeps look who"
VOCABULARY = Vocabulary.of([*WORDS.split(), *"?!.,"])
VECTORS = np.random.default_rng(3).normal(size=(len(VOCABULARY) + 1, 7)).astype("float32")
PREDICTOR = types.SimpleNamespace(vocabulary=VOCABULARY, text=TEXT, model=types.SimpleNamespace())
PREDICTOR.model.get_layer = lambda name: types.SimpleNamespace(get_weights=lambda: [VECTORS])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "index"
    build(PREDICTOR, path, CONVERSATIONS, ["x"])
    return path


@pytest.fixture(scope="module")
def index(path):
    return RetrievalIndex(path, VOCABULARY)


# === On disk ===


def test_an_index_is_the_same_whatever_is_worked_on_at_once(path, tmp_path, monkeypatch):
    monkeypatch.setattr("colloquy.tasks.selection.retrieval.build.PART", 2)
    build(PREDICTOR, tmp_path / "index", CONVERSATIONS, ["x"])
    for file in sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file()):
        if file.name not in (files.VECTORS, files.ENCODER, CHECKSUMS):  # rounded otherwise
            assert (path / file).read_bytes() == (tmp_path / "index" / file).read_bytes(), file
    assert sorted(p.name for p in path.iterdir()) == sorted(
        p.name for p in (tmp_path / "index").iterdir()
    )


def test_what_is_no_answer_is_left_out(index):
    stored = [index.utterance(number) for number in range(index.size)]
    assert sorted(stored) == sorted(text for turns in TOPICS.values() for text in turns)
    # a name, an unknown word, no word, a word that the corpus hides
    assert index.config["left_out"] == 4
    assert (index.size, index.config["pairs"], index.config["made_of"]) == (9, 9, ["x"])


def test_pairs_say_what_a_response_was_said_to(index, path):
    pairs = np.load(path / files.PAIRS)
    found = {tuple(index.utterance(number) for number in row if number >= 0) for row in pairs}
    talks = [["Hello!", *turns] for turns in TOPICS.values()]
    assert found == {tuple(talk[max(0, i - 2) : i + 1]) for talk in talks for i in range(1, 4)}
    assert (np.diff(pairs[:, -1]) >= 0).all()


def test_search_finds_by_the_words_of_contexts_and_responses(index):
    hits = {hit.text: hit for hit in index.search(["Does it bark?", "My dog barks!"])}
    assert hits["A dog eats bones."].places["contexts"] == 1  # it was said to that
    assert hits["My dog barks."].places["responses"] == 1  # it has these words
    assert hits["A dog eats bones."].context == ["Hello!", "My dog barks."]


def test_contexts_are_ordered_by_the_likeness_of_the_last_turns(index):
    hits = {hit.text: hit for hit in index.search(["Rain!", "A dog barks, my tea is hot!"])}
    cut = {
        text: set(words_of(text, **TEXT))
        for text in [*hits, *(hit.context[-1] for hit in hits.values())]
    }
    assert len(hits) == 9  # all that the index has
    idf = {
        w: np.log(10 / (1 + sum(w in cut[text] for text in hits)))
        for words in cut.values()
        for w in words
    }
    last = set(words_of("A dog barks, my tea is hot!", **TEXT))
    for hit in hits.values():
        asked = cut[hit.context[-1]]
        both, ours, theirs = (
            sum(idf.get(w, 0) ** 2 for w in words) for words in (last & asked, last, asked)
        )
        assert hit.question == pytest.approx(both / np.sqrt(max(ours * theirs, 1e-9)), abs=1e-6), (
            hit
        )
    asked = sorted(
        (hit for hit in hits.values() if "contexts" in hit.places),
        key=lambda hit: hit.places["contexts"],
    )
    assert [hit.question for hit in asked] == sorted((hit.question for hit in asked), reverse=True)
    assert len(asked) > 3 and asked[0].context[-1] == "Tea is hot!"


def test_search_orders_by_the_words_of_the_whole_conversation(index):
    said = ["Rain is wet.", "Hello!", "Who?", "Hello!", "Look!", "Who?", "My dog barks!"]
    hits = index.search(said)
    cut = {text: set(words_of(text, **TEXT)) for text in [*said, *map(index.utterance, range(9))]}
    documents = [cut[index.utterance(number)] for number in range(9)]
    idf = {w: np.log((1 + 9) / (1 + sum(w in d for d in documents))) for w in index.words.words[2:]}
    context = set().union(*(cut[text] for text in said)) & set(idf)

    def squares(words):
        return sum(idf[word] ** 2 for word in words)

    read = [word for text in said[-files.READ :] for word in words_of(text, **TEXT)]
    vector = index.encoder.contexts(index._ids([read]))[0]
    scores = []
    for hit in hits:
        words = cut[hit.text]
        cosine = squares(words & context) / np.sqrt(squares(words) * squares(context))
        [found] = index.encoder.responses(
            Sequences.of([VOCABULARY.encode(words_of(hit.text, **TEXT))])
        )
        scores.append(cosine + files.VECTOR_WEIGHT * float(found @ vector))
    assert scores == pytest.approx(sorted(scores, reverse=True)) and len(
        {hit.text for hit in hits}
    ) == len(hits)
    for search in files.SEARCHES:
        places = sorted(hit.places[search] for hit in hits if search in hit.places)
        assert places == list(range(1, len(places) + 1))
    assert index.search(["zork"]) == index.search([""]) == []  # words that nobody knows


def test_bm25_reads_rare_words_first(index, monkeypatch):
    ids = index.words.encode(["the", "dog", "bones"])
    frequency = np.diff(index._responses.scores["indptr"])[ids].tolist()
    assert frequency == [3, 3, 1]
    everything = best_by_words(index._responses, ids, 9)
    assert len(everything) == 5 and index.utterance(everything[0]) == "A dog eats bones."
    monkeypatch.setattr(files, "POSTINGS", 2)
    assert [index.utterance(i) for i in best_by_words(index._responses, ids, 9)] == [
        "A dog eats bones."
    ]
    monkeypatch.setattr(files, "POSTINGS", 0)  # the rarest is read in any case
    assert len(best_by_words(index._responses, ids[:1], 9)) == 3


@pytest.mark.parametrize("name", [files.TEXTS, files.VECTORS, files.CONFIG, CHECKSUMS, "contexts"])
@pytest.mark.parametrize("change", ["flip", "remove"])
def test_an_index_with_a_file_that_is_changed_or_missing_is_refused(path, tmp_path, name, change):
    """A flipped bit of the vectors ended the process by a segmentation fault, one of other files
    changed answers.
    """
    copy = shutil.copytree(path, tmp_path / "copy")
    file = copy / name if (copy / name).is_file() else next((copy / name).iterdir())
    flip_bit(file) if change == "flip" else file.unlink()
    found = refusal(RetrievalIndex, copy, VOCABULARY)
    assert re.search(
        r"expected an index .* build it again: python -m colloquy.tools.build_index .*copy$", found
    )


def test_other_vocabularies_directories_and_versions_are_refused(path, tmp_path, monkeypatch):
    other = Vocabulary.of(WORDS.split()[::-1])
    assert "built for a run of another vocabulary" in refusal(RetrievalIndex, path, other)
    assert re.search(
        "expected an index .*python -m colloquy.tools.build_index",
        refusal(RetrievalIndex, tmp_path, VOCABULARY),
    )
    monkeypatch.setattr(files, "VERSION", 3)
    assert "expected an index of version 3" in refusal(RetrievalIndex, path, VOCABULARY)


@pytest.mark.parametrize(
    "conversations", [[["hello", "tea is hot"]], [["hello", "tea is hot"], ["who", "tea is hot"]]]
)
def test_one_response_is_found_by_its_words_alone(tmp_path, conversations):
    build(PREDICTOR, tmp_path / "index", conversations)
    [hit] = RetrievalIndex(tmp_path / "index", VOCABULARY).search(["hot tea"])
    assert hit.text == "tea is hot" and list(hit.places) == ["responses"]


def test_nothing_is_left_where_nothing_is_fit(tmp_path):
    for conversations in ([], [["a"]], [["hello", "?"]]):
        assert "an index needs conversations" in refusal(
            build, PREDICTOR, tmp_path / "out", conversations
        )
    assert list(tmp_path.iterdir()) == []


# === Answers ===


@pytest.fixture(scope="module")
def trained_index(selection_predictor, selection_index):
    """An index of the conversations that the small run was trained on."""
    return RetrievalIndex(selection_index, selection_predictor.vocabulary)


def test_answers_are_ordered_by_the_model_and_by_their_questions(
    trained_index, selection_predictor, prepared
):
    turns = list(of_corpus("smn", prepared.parent / "raw"))[7][:-1]
    hits = candidates_of(trained_index, turns, 23)
    texts = [hit.text for hit in hits]
    [found] = selection_predictor.predict([{"turns": turns, "candidates": texts}])
    answers = answers_of(selection_predictor, trained_index, turns, 23)
    assert sorted(answer.text for answer in answers) == sorted(texts) and len(texts) > 9
    total = {
        hit.text: logit + 16 * hit.question
        for hit, logit in zip(hits, found["logits"], strict=True)
    }
    assert len({hit.question for hit in hits}) > 3
    assert [answer.total for answer in answers] == sorted(total.values(), reverse=True)
    assert [answer.total for answer in answers] == [total[answer.text] for answer in answers]
    assert {answer.text: answer.score for answer in answers} == dict(
        zip(texts, found["scores"], strict=True)
    )


def test_answers_of_an_index_are_ordered_and_as_people_write(
    selection_predictor, selection_index, monkeypatch
):
    predictor, asked = (
        AnsweringPredictor(selection_predictor, selection_index),
        {"turns": ["what is the town like ?"]},
    )
    best = answers_of(selection_predictor, predictor.index, asked["turns"])[:20]
    monkeypatch.setitem(selection_predictor.text, "tokenizer", "terms")
    [found] = predictor.predict([asked])
    assert (
        found["totals"]
        == sorted(found["totals"], reverse=True)
        == [answer.total for answer in best]
    )
    assert found["candidates"] == [as_written(answer.text, "terms") for answer in best]
    assert any(" ." in answer.text for answer in best) and not any(
        " ." in text for text in found["candidates"]
    )
    assert "logits" not in found and found["order"] == list(range(len(best)))
    assert predictor.reply(found) == found["candidates"][0]
    [nothing] = predictor.predict([{"turns": ["zork"]}])
    assert "the index has no response with these words" in refusal(predictor.reply, nothing)


def test_candidates_are_responses_to_the_most_similar_questions_then_the_others(trained_index):
    turns = ["the market is far", "what can you tell me about the town ?"]
    hits = candidates_of(trained_index, turns, 300)
    asked = [hit.question for hit in hits if "contexts" in hit.places]
    others = [hit for hit in hits if "contexts" not in hit.places]
    assert asked == sorted(asked, reverse=True) == [hit.question for hit in hits[: len(asked)]]
    assert len(asked) > 9 and others and asked[0] > 0.3
    assert (
        hits == without_duplicates(hits, turns)
        and candidates_of(trained_index, turns, 5) == hits[:5]
    )


@pytest.mark.parametrize(
    ("texts", "said", "kept"),
    [
        (
            [
                "Try this kernel, it works!",
                "try this kernel it works",
                "try that",
                "How do I mount it??",
                "ok",
                "OK.",
            ],
            ["hi", "how do i mount it"],
            ["Try this kernel, it works!", "try that", "ok"],
        ),
        # 4 of 5 words are alike; 5 of 6 are, but of what is left out
        (
            ["a b c d", "a b c d e", "a b c d e f", "?", "!", "?"],
            [],
            ["a b c d", "a b c d e f", "?", "!"],
        ),
    ],
)
def test_near_duplicates_and_echoes_are_left_out(texts, said, kept):
    found = without_duplicates(list(map(Hit, texts)), said)
    assert [answer.text for answer in found] == kept
