"""`data.samples.selection`: negative responses, and the files."""

import os
import random
import re

import pytest

from data.samples.selection import draw_negatives, examples, smn_lines, split, write_smn
from data.samples.talk import simulate
from data.samples.world import tokenize

SIZES = {"train.txt": 4, "dev.txt": 10, "test.txt": 10}
"""Candidates of each context."""
NAMES = tuple(SIZES)
CONVERSATIONS, SEED, HELD_OUT = 130, 3, 17
FORMAT = re.compile(r"[01](\t[^\sA-Z]+( [^\sA-Z]+)*){2,14}\n")
"""A label, one to thirteen turns and a response; tokens separated by single spaces."""


@pytest.fixture(scope="module")
def conversations():
    return simulate(CONVERSATIONS, SEED)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The lines of the three files, with their ends."""
    directory = tmp_path_factory.mktemp("smn") / "raw"
    counts = write_smn(directory, CONVERSATIONS, SEED, HELD_OUT)
    files = {name: (directory / name).read_bytes().decode().splitlines(True) for name in NAMES}
    assert counts == {name: len(lines) for name, lines in files.items()}
    assert sorted(os.listdir(directory)) == sorted(NAMES)
    return files


def groups(lines, size):
    """Candidates by context: (context turns, labels, responses), `size` lines each."""
    rows = [line.rstrip("\n").split("\t") for line in lines]
    assert len(rows) % size == 0
    for start in range(0, len(rows), size):
        labels, contexts, responses = zip(
            *((row[0], tuple(row[1:-1]), row[-1]) for row in rows[start : start + size]),
            strict=True,
        )
        assert len(set(contexts)) == 1
        yield contexts[0], "".join(labels), responses


# === Negative responses ===


def test_negative_responses_are_misreadings_first_and_then_responses_of_other_conversations(conversations):
    pool = examples(conversations)
    for number, example in enumerate(pool[:150]):
        wrong = draw_negatives(random.Random(number), example, pool, "dev")
        assert len({tokenize(turn.text) for turn in (example.response, *wrong)}) == 10
        distinct = {tokenize(turn.text) for turn in example.response.misreadings}
        misread = min(4, len(distinct))
        assert all(turn in example.response.misreadings for turn in wrong[:misread])
        for turn in wrong[misread:]:
            [source] = [other for other in pool if other.response is turn]
            assert source.conversation != example.conversation
        assert all(turn.about - example.response.fits for turn in wrong)


# === The files ===


def test_every_line_has_the_format(files):
    for lines in files.values():
        assert lines
        for line in lines:
            assert FORMAT.fullmatch(line), line


@pytest.mark.parametrize("name, size", SIZES.items())
def test_the_right_response_comes_first_among_distinct_ones(files, name, size):
    found = list(groups(files[name], size))
    for _, labels, responses in found:
        assert labels == "1" + "0" * (size - 1)
        assert len(set(responses)) == size
    if size == 10:
        assert len(found) == HELD_OUT


def test_contexts_are_the_turns_of_the_split(files, conversations):
    parts = split(conversations)
    assert [len(part) for part in parts.values()] == [92, 19, 19]
    assert sum(parts.values(), ()) == conversations
    for name, part in parts.items():
        talks = [tuple(tokenize(turn.text) for turn in c) for c in part]
        said = {text for talk in talks for text in talk}
        said |= {tokenize(m.text) for c in part for turn in c for m in turn.misreadings}
        expected = {(talk[:n], talk[n]) for talk in talks for n in range(1, len(talk))}
        size = SIZES[f"{name}.txt"]
        for context, _, responses in groups(files[f"{name}.txt"], size):
            assert (context, responses[0]) in expected
            assert set(responses) <= said
    contexts = {name: {c for c, *_ in groups(files[name], SIZES[name])} for name in NAMES}
    assert all(len(context) < 3 for context in contexts["train.txt"] & contexts["dev.txt"])


def test_train_uses_every_decided_turn(files, conversations):
    train = split(conversations)["train"]
    decided = sum(bool(turn.fits) for c in train for turn in c[1:])
    assert len(files["train.txt"]) == 4 * decided
    assert {len(context) for context, *_ in groups(files["train.txt"], 4)} == set(range(1, 14))


def test_shared_words_find_some_responses_and_not_most(conversations):
    hits = []
    for context, _, responses in groups(smn_lines("train", conversations, SEED), 4):
        words = set(" ".join(context).split())
        shared = [len(words & set(r.split())) / len(set(r.split())) for r in responses]
        hits.append(shared[0] > max(shared[1:]))
    assert 0.25 < sum(hits) / len(hits) < 0.5  # by chance a quarter


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"count": 0}, r"At least one .* Received: conversations=0$"),
        ({"count": 1}, r"find 3 negative .* Received: conversations=1 in train$"),
        ({"count": 14}, r"find 9 negative .* Received: conversations=2 in dev$"),
        ({"held_out": 0}, r"held_out must be at least 1\. Received: held_out=0$"),
    ],
)
def test_write_smn_rejects(arguments, message, tmp_path):
    (tmp_path / "dev.txt").write_text("old")
    with pytest.raises(ValueError, match=message):
        write_smn(tmp_path, **arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["dev.txt"]
    assert (tmp_path / "dev.txt").read_text() == "old"
