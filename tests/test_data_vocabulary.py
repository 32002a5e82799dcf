"""`data.vocabulary`: ids in Python and in a graph, the order of words, the file."""

import collections
import re

import pytest
import tensorflow as tf
from helpers import refusal, written
from hypothesis import example, given
from hypothesis import strategies as st

from data.vocabulary import EOS_ID, PADDING_ID, UNK_ID, Vocabulary, WordIds

ODD = ("ü", "a\u2028b", "c\x85", "\u3000", "\ufeff", "it's")


def test_words_are_ordered_by_falling_count_then_alphabet():
    counts = collections.Counter(["b", "é", "a", "c", "b", "Z", "_EOS_", "a", "b", "c"])
    for each in (counts, dict(sorted(counts.items(), reverse=True))):
        assert Vocabulary.of_counts(each).words == ("_EOS_", "_UNK_", "b", "a", "c", "Z", "é")
    assert Vocabulary.of_counts(counts, min_count=3).words == ("_EOS_", "_UNK_", "b")


def test_vocabulary_saves_and_loads(tmp_path):
    path = tmp_path / "new" / "vocabulary.txt"
    vocabulary = Vocabulary(("_EOS_", "_UNK_", *ODD))
    vocabulary.save(path)
    assert path.read_bytes().decode() == "_EOS_\n_UNK_\n" + "".join(f"{word}\n" for word in ODD)
    assert Vocabulary.load(path) == vocabulary
    assert Vocabulary.load(written(path, path.read_bytes().removesuffix(b"\n"))) == vocabulary
    assert "expected a vocabulary. Received: No such file" in refusal(Vocabulary.load, tmp_path / "absent")


@pytest.mark.parametrize(
    "content, message",
    [
        (b"_UNK_\nx\n", "one of its words must be _EOS_. Received: none"),
        (b"_EOS_\n" + b"x" * 99 + b" y\n", "line 2 must be a word without white space. Received: 'x{59}$"),
        (b"_EOS_\n_UNK_\nx\ny\nx\n", "line 5 repeats line 3. Received: 'x'"),
        (b"_EOS_\n_UNK_\nx\n\n", "line 4 must be a word without white space. Received: ''"),
        (b"_EOS_\n_UNK_\nx\r\n", r"line 3 must be a word .* Received: 'x\\r'"),
        (b"_EOS_\n_UNK_\nx\n\xff\n", "line 4 must be UTF-8. Received: invalid start byte"),
    ],
)
def test_load_rejects_a_bad_line(tmp_path, content, message):
    found = refusal(Vocabulary.load, written(tmp_path / "vocabulary.txt", content))
    assert re.search(rf"vocabulary\.txt: {message}", found), found


def test_special_words_may_have_any_id():
    vocabulary = Vocabulary(("x", "_UNK_", "y", "_EOS_"))
    assert (vocabulary.eos_id, vocabulary.unk_id) == (4, 2)
    assert vocabulary.encode(["y", "z", "_EOS_", "x"]) == [3, 2, 2, 1]
    standard = Vocabulary(("_EOS_", "_UNK_"))
    assert (standard.eos_id, standard.unk_id) == (EOS_ID, UNK_ID) == (1, 2)
    without = Vocabulary(("x", "_EOS_"))
    assert without.unk_id == PADDING_ID == 0 and without.encode(["x", "z"]) == [1, 0]


@pytest.mark.parametrize(
    "content",
    ["y\t4\r\nx\t1\r\n_EOS_\t3\r\n", "y\n4\nx\n1\n_EOS_\n3\n", "\ufeffx 1\n\ny 4\n_PAD_ 0", "x 1\neos 3\ny 4"],
)
def test_load_word2id_reads_any_order(tmp_path, content):
    vocabulary = Vocabulary.load_word2id(written(tmp_path / "word2id", content), eos_id=3)
    assert vocabulary.words == ("x", "_2_", "_EOS_", "y")
    vocabulary.save(tmp_path / "vocabulary.txt")
    assert Vocabulary.load(tmp_path / "vocabulary.txt") == vocabulary


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected words and ids. Received: an empty file"),
        ("x 1\ny\n", "line 2: expected an id after 'y'. Received: ''"),
        ("x 1\ny -1\n", "line 2: expected an id after 'y'. Received: '-1'"),
        ("x 1\ny 999999999\n", ": expected ids of 3 words. Received: 999999999"),
        ("x 1\ny 1\n", "line 2: expected a new id; 1 is 'x'"),
        ("x 1\nx 2\n", "id 2 repeats id 1. Received: 'x'"),
        ("x 1\n_EOS_ 2\n", "id 3 repeats id 2. Received: '_EOS_'"),
    ],
)
def test_load_word2id_rejects(tmp_path, content, message):
    path = written(tmp_path / "word2id", content)
    found = refusal(Vocabulary.load_word2id, path, 3)
    assert found.startswith(str(path)) and message in found


WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1)
ORDERS = [("_EOS_", "_UNK_", "x", *ODD), ("x", "_UNK_", "y", "_EOS_"), ("x", "y", "_EOS_")]  # the release's, too


@given(WORDS, st.sampled_from(ORDERS), st.sampled_from([0, 997, 2**24]))
@example(["w" * 33, "w" * 32, "w" * 31 + "v", "_EOS_", "_UNK_", "x"], ORDERS[0], 997)
@example(["_EOS_", "_UNK_", "x", "y", "z"], ORDERS[2], 0)
def test_the_graph_finds_the_same_ids(words, order, hashed):
    vocabulary = Vocabulary(order, hashed)
    assert WordIds(vocabulary)(tf.constant(words)).numpy().tolist() == vocabulary.encode(words)


def test_hashed_ids_follow_the_words_and_depend_on_32_bytes():
    vocabulary = Vocabulary(("_EOS_", "_UNK_", "x"), hashed=997)
    long, cut, other, known = vocabulary.encode(["w" * 33, "w" * 32, "w" * 31 + "v", "x"])
    assert long == cut != other and min(cut, other) > 3 == known and max(cut, other) <= 1000
    assert vocabulary.word(cut) == "_UNK_" and vocabulary.word(known) == "x"
