"""`tasks.generation.prepare`: from conversations to the files of a dataset."""

import json
import sys
import types

import numpy as np
import pytest

from base.files import UserError
from data import pickles
from data.vocabulary import Vocabulary
from tasks.generation.data import load_dataset
from tasks.generation.prepare import Settings, prepare

TRAIN = "Hi!\tHello, Tom.\thi\na\tb c d e\ta\tb\n"
DEV = "HI\thello tom\tBye.\nx\ta\n"
EOS, UNK = 1, 2


@pytest.fixture
def source(tmp_path):
    """A corpus of two conversations in train and two in dev."""
    directory = tmp_path / "talk"
    directory.mkdir()
    (directory / "train.txt").write_text(TRAIN)
    (directory / "dev.txt").write_text(DEV)
    return directory


def run(source, out, **settings):
    """Prepares it: the pairs, the vocabulary's words without specials, the facts."""
    prepare("conversations", source, out, Settings(**{"min_count": 2, **settings}))
    words = Vocabulary.load(out / "vocabulary.txt").words[2:]
    return pickles.load(out / "pairs.pkl"), words, json.loads((out / "dataset.json").read_text())


def test_prepare_makes_pairs_of_neighbours(source, tmp_path):
    data, words, facts = run(source, tmp_path / "out", min_count=1)
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"pairs.pkl", "vocabulary.txt", "dataset.json"}
    # Each utterance is counted once: `b`, `a` and `hi` twice each.
    assert words == ("a", "b", "hi", "!", ",", ".", "c", "d", "e", "hello", "tom")
    id = {word: number for number, word in enumerate(words, 3)}
    train = data["train"]
    assert train["source_text"] == ["hi !", "hello , tom .", "a", "b c d e", "a"]
    assert train["target_text"] == ["hello , tom .", "hi", "b c d e", "a", "b"]
    assert train["source"][0] == [id["hi"], id["!"], EOS]
    assert train["target"][2] == [id["b"], id["c"], id["d"], id["e"], EOS]
    assert data["dev"]["source_text"] == ["hi", "hello tom", "x"]
    assert data["dev"]["target"][1] == [UNK, id["."], EOS]
    assert train["seen"] == [True] * 5
    assert data["dev"]["seen"] == [True, False, False]  # "Hi!", "Hello, Tom." but for case and signs
    assert (facts["name"], facts["task"], facts["corpus"]) == ("talk", "generation", "conversations")
    assert facts["settings"]["tokenizer"] == "mixed"
    assert run(source, tmp_path / "rare")[1] == ("a", "b", "hi")
    assert facts["statistics"]["vocabulary"] == 2 + len(words)
    assert facts["statistics"]["dev"] == {
        "conversations": 2,
        "pairs": 3,
        "pairs_left_out": 0,
        "source_words_95": 1.9,
        "target_words_mean": 1.67,
        "target_words_95": 2.0,
        "target_words_most": 2,
        "unknown_fraction_of_target": 0.2,
        "pairs_in_train": 1,
    }


@pytest.mark.parametrize(
    ("train", "settings", "sources", "targets", "words", "left_out"),
    [
        (
            TRAIN,
            {"turns": 2, "min_count": 1},
            ["hi !", "hi !\thello , tom .", "a", "a\tb c d e", "b c d e\ta"],
            ["hello , tom .", "hi", "b c d e", "a", "b"],
            ("a", "b", "hi", "!", ",", ".", "c", "d", "e", "hello", "tom"),
            0,
        ),
        (TRAIN, {"max_words": 3, "min_count": 1}, ["a"], ["b"], ("a", "b"), 4),
        ("a\t\u200b\tb\tc\n", {"min_count": 1}, ["b"], ["c"], ("b", "c"), 2),  # an utterance without a token
        (TRAIN, {"vocabulary_size": 2, "drop_unknown": True}, ["a"], ["b"], ("a", "b"), 4),
        (
            "Hi, b\tc\n",
            {"lower": False, "tokenizer": "space", "min_count": 1, "vocabulary_size": 0},
            ["Hi, b"],
            ["c"],
            ("Hi,", "b", "c"),
            0,
        ),
        (
            "\u4f60\u597d\u5417\t\u6211\u5f88\u597d\n",
            {"tokenizer": "jieba", "min_count": 1},
            ["\u4f60\u597d \u5417"],
            ["\u6211\u5f88 \u597d"],
            ("\u4f60\u597d", "\u5417", "\u597d", "\u6211\u5f88"),
            0,
        ),
    ],
)
def test_pairs_are_kept_or_left_out(
    source, tmp_path, monkeypatch, capsys, train, settings, sources, targets, words, left_out
):
    monkeypatch.setitem(sys.modules, "jieba", types.SimpleNamespace(lcut=lambda text: [text[:2], text[2:]]))
    (source / "train.txt").write_text(train, encoding="utf-8")
    (source / "dev.txt").write_text("a\tb\tbye\tg\n")
    data, known, facts = run(source, tmp_path / "out", **settings)
    assert (data["train"]["source_text"], data["train"]["target_text"], known) == (sources, targets, words)
    assert facts["statistics"]["train"]["pairs_left_out"] == left_out
    ids = [None, "_EOS_", "_UNK_", *words]
    read = [" ".join(ids[id] for id in source) for source in data["train"]["source"]]
    if settings.get("min_count") == 1:
        assert read == [f"{text} _EOS_".replace("\t", " _EOS_ ") for text in sources]
    if settings.get("drop_unknown"):  # in dev too
        assert data["dev"]["source_text"] == ["a"]
    assert ("cannot be exported" in capsys.readouterr().err) == (settings.get("tokenizer") == "jieba")


def test_vectors_are_read(source, tmp_path):
    (tmp_path / "vectors.txt").write_text("a 1 2 3\nhi 4 5 6\nother 7 8 9\n")
    run(source, tmp_path / "out", vectors=str(tmp_path / "vectors.txt"))
    vectors = load_dataset(tmp_path / "out").vectors
    assert vectors.shape == (6, 3) and vectors.dtype == np.float32
    assert vectors[[0, 3, 5]].tolist() == [[0, 0, 0], [1, 2, 3], [4, 5, 6]]  # padding, a, hi


def test_nothing_is_left_behind_where_it_fails(source, tmp_path):
    (source / "dev.txt").write_text("a b\tc\n")
    with pytest.raises(UserError, match=r"talk: expected pairs for dev.* None of 1 are left"):
        run(source, tmp_path / "out", max_words=1)
    with pytest.raises(UserError, match="expected word vectors"):
        run(source, tmp_path / "out", vectors=str(tmp_path / "no.txt"))
    assert [path.name for path in tmp_path.iterdir()] == ["talk"]
