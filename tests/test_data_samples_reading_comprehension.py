"""`data.samples.reading_comprehension`, and the phrases and restaurants of both samples."""

import re

import numpy as np
import pytest

from colloquy.data.corpora import squad
from colloquy.data.samples.phrases import read_phrases
from colloquy.data.samples.reading_comprehension import (
    ASKED,
    SENTENCES,
    simulate_passages,
    write_squad,
)
from colloquy.data.samples.world import SEARCH, restaurants

SEED = 3


@pytest.fixture(scope="module")
def passages():
    return simulate_passages(53, SEED)


# === Phrases and restaurants ===


def test_phrases_are_read_by_section_and_key(tmp_path):
    file = tmp_path / "some.txt"
    file.write_text(
        "# A comment: a / b\n"
        "\n[first]\na key: One: 1 / Two, /\n    three. / -\n"
        "\n# Another.\n[second]\nb: 5\n"
    )
    assert read_phrases(file) == {
        "first": {"a key": ("One: 1", "Two,", "three.", "")},
        "second": {"b": ("5",)},
    }


def test_restaurants_come_in_pairs():
    world = restaurants(seed=2, count=100)
    assert len({place.name for place in world}) == 100
    assert len({place.phone for place in world}) == 100
    for first, second in zip(world[::2], world[1::2], strict=True):
        for slot in SEARCH:
            assert getattr(first, slot) == getattr(second, slot)
        assert first.dish != second.dish
        assert first.misses(vars(second)) == 0
        assert first.misses({**vars(second), "town": "elsewhere", "price": "none"}) == 2
    assert restaurants(seed=3, count=100) != world


# === Passages ===


def test_the_files_are_squad_with_a_vector_for_every_word_of_train(tmp_path):
    directory = tmp_path / "raw"
    write_squad(directory, count=53, seed=SEED, held_out=7)
    files = squad.find_splits(directory)
    words_of_train = set()
    for name, count in (("train", 46), ("dev", 7)):
        questions = squad.read(*files[name])
        assert len(questions) == len({question.id for question in questions}) == 4 * count
        for question in questions:
            offsets = squad.tokenize(question.context)
            [answer] = question.answers
            first, last = squad.align(offsets, answer)
            assert (offsets[first][0], offsets[last][1]) == answer  # whole tokens
            if name == "train":
                for text in (question.context, question.text):
                    spans = squad.tokenize(text)
                    words_of_train.update(text[start:end].lower() for start, end in spans)

    with np.load(directory / "vectors.npz", allow_pickle=False) as arrays:
        words = arrays["words"].tolist()
        vectors = arrays["vectors"]
    assert words == sorted(words_of_train)
    assert vectors.shape == (len(words), 50)
    assert abs(vectors.mean()) < 0.02
    assert abs(vectors.std() - 1) < 0.02


def test_facts_are_at_their_spans_and_true(passages):
    for passage in passages:
        num_sentences = len(re.findall(r"\. (?=[A-Z0-9])", passage.text)) + 1
        assert num_sentences in SENTENCES
        for fact in passage.facts:
            text = passage.text[slice(*fact.span)]
            assert text.lower() == str(fact.value).lower()
            assert fact.value == getattr(fact.place, fact.relation)
            if fact.name:
                assert passage.text[slice(*fact.name)] == fact.place.name


def test_a_question_has_one_correct_answer_among_several(passages):
    relations = set()
    for passage in passages:
        assert len(passage.questions) == 4
        for text, fact, (start, end) in passage.questions:
            answer = passage.text[start:end]
            relations.add(fact.relation)
            values = {other.value for other in passage.facts if other.relation == fact.relation}
            if answer != fact.place.name:
                # A value of this restaurant, one of several of its kind.
                assert fact.place.name in text
                assert answer.lower() == str(fact.value).lower()
                assert len(values) > 1
            elif "first" in text or "older" in text:
                opened = {
                    other.place.name: other.value
                    for other in passage.facts
                    if other.relation == "since"
                }
                named = [name for name in opened if f"the {name}" in text]
                assert len(named) == 2
                assert min(named, key=opened.get) == answer
            else:
                places = [p for p in passage.places if getattr(p, fact.relation) == fact.value]
                assert places == [fact.place]
                assert str(fact.value) in text
    assert relations == set(ASKED)
