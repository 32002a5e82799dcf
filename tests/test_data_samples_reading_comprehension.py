import json
import os
import re

import numpy as np
import pytest

from data.corpora.squad import align, find_splits, read, tokenize
from data.samples.reading_comprehension import (
    ASKED,
    DIMENSION,
    FILES,
    QUESTIONS,
    SENTENCES,
    VECTORS,
    simulate_passages,
    write_squad,
)

COUNT, SEED, HELD_OUT = 53, 3, 7


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("squad") / "raw"
    counts = write_squad(path, COUNT, SEED, HELD_OUT)
    assert sorted(os.listdir(path)) == sorted([*FILES.values(), VECTORS])
    assert [counts[FILES[split]] for split in FILES] == [QUESTIONS * (COUNT - HELD_OUT), QUESTIONS * HELD_OUT]
    return path


@pytest.fixture(scope="module")
def passages():
    return simulate_passages(COUNT, SEED)


def test_the_files_are_squad_and_every_answer_is_of_whole_tokens(directory):
    files = find_splits(directory)
    for split, count in (("train", COUNT - HELD_OUT), ("dev", HELD_OUT)):
        questions = read(*files[split])
        assert len(questions) == QUESTIONS * count and len({question.id for question in questions}) == len(questions)
        for question in questions:
            [answer] = question.answers
            offsets = tokenize(question.context)
            first, last = align(offsets, answer)
            assert (offsets[first][0], offsets[last][1]) == tuple(answer)


def test_there_is_a_vector_for_every_word_of_train(directory):
    with np.load(directory / VECTORS, allow_pickle=False) as arrays:
        words, vectors = arrays["words"].tolist(), arrays["vectors"]
    assert vectors.shape == (len(words), DIMENSION) and words == sorted(set(words))
    assert abs(vectors.mean()) < 0.02 and abs(vectors.std() - 1) < 0.02
    said = json.loads((directory / FILES["train"]).read_text())["data"][0]["paragraphs"]
    texts = [text for p in said for text in (p["context"], *(qa["question"] for qa in p["qas"]))]
    assert {text[i:j].lower() for text in texts for i, j in tokenize(text)} == set(words)


def test_facts_stand_where_they_say_and_are_true(passages):
    for passage in passages:
        assert len(re.findall(r"\. (?=[A-Z0-9])", passage.text)) + 1 in SENTENCES
        for fact in passage.facts:
            found = passage.text[slice(*fact.span)]
            assert found.lower() == str(fact.value).lower() == str(getattr(fact.place, fact.relation)).lower()
            if fact.name:
                assert passage.text[slice(*fact.name)] == fact.place.name


def test_a_question_has_one_right_answer_among_several(passages):
    relations = set()
    for passage in passages:
        assert len(passage.questions) == QUESTIONS
        for text, fact, (start, end) in passage.questions:
            answer = passage.text[start:end]
            relations.add(fact.relation)
            if answer == fact.place.name:  # which restaurant?
                if "first" in text or "older" in text:
                    told = {f.place.name: f.value for f in passage.facts if f.relation == "since"}
                    named = [name for name in told if f"the {name}" in text]
                    assert len(named) == 2 and min(named, key=told.get) == answer
                else:
                    assert str(fact.value) in text
                    same = [p for p in passage.places if getattr(p, fact.relation) == fact.value]
                    assert same == [fact.place]
            else:  # what of this restaurant?
                assert fact.place.name in text and answer.lower() == str(fact.value).lower()
                values = {f.value for f in passage.facts if f.relation == fact.relation}
                assert len(values) > 1, "the kind of value alone gives the answer away"
    assert relations == set(ASKED)


def test_splits_differ_and_the_first_of_many_are_the_same_as_few(passages):
    assert simulate_passages(5, SEED) == passages[:5]
    assert not {p.text for p in simulate_passages(COUNT, SEED, "dev")} & {p.text for p in passages}
    assert simulate_passages(1, SEED + 1) != passages[:1]
