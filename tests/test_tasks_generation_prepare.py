"""`tasks.generation.prepare` and `data`: from conversations to the files of a dataset, batches,
files of references.
"""

import json
import re
import sys
import types

import numpy as np
import pytest
from helpers import refusal, written

from colloquy.data import pickles
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks import TASKS
from colloquy.tasks.generation.data import TokenizerConfig, load_dataset, read_references
from colloquy.tasks.generation.prepare import Settings, prepare

generation = TASKS["generation"]
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
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "pairs.pkl",
        "vocabulary.txt",
        "dataset.json",
    }
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
    # "Hi!", "Hello, Tom." but for case and signs
    assert data["dev"]["seen"] == [True, False, False]
    assert (facts["name"], facts["task"], facts["corpus"]) == (
        "talk",
        "generation",
        "conversations",
    )
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


PAIRS = [
    "hi ! -> hello , tom .",
    "hi !\thello , tom . -> hi",
    "a -> b c d e",
    "a\tb c d e -> a",
    "b c d e\ta -> b",
]
SPACES = {"lower": False, "tokenizer": "space", "min_count": 1, "vocabulary_size": 0}


@pytest.mark.parametrize(
    ("train", "settings", "pairs", "words", "left_out"),
    [
        (TRAIN, {"turns": 2, "min_count": 1}, PAIRS, "a b hi ! , . c d e hello tom", 0),
        (TRAIN, {"max_words": 3, "min_count": 1}, ["a -> b"], "a b", 4),
        # an utterance without a token
        ("a\t\u200b\tb\tc\n", {"min_count": 1}, ["b -> c"], "b c", 2),
        (TRAIN, {"vocabulary_size": 2, "drop_unknown": True}, ["a -> b"], "a b", 4),
        ("Hi, b\tc\n", SPACES, ["Hi, b -> c"], "Hi, b c", 0),
        (
            "你好吗\t我很好\n",
            {"tokenizer": "jieba", "min_count": 1},
            ["你好 吗 -> 我很 好"],
            "你好 吗 好 我很",
            0,
        ),
    ],
)
def test_pairs_are_kept_or_left_out(
    source, tmp_path, monkeypatch, capsys, train, settings, pairs, words, left_out
):
    monkeypatch.setitem(
        sys.modules, "jieba", types.SimpleNamespace(lcut=lambda text: [text[:2], text[2:]])
    )
    (source / "train.txt").write_text(train, encoding="utf-8")
    (source / "dev.txt").write_text("a\tb\tbye\tg\n")
    data, known, facts = run(source, tmp_path / "out", **settings)
    sources, targets = (data["train"][name] for name in ("source_text", "target_text"))
    assert [
        f"{source} -> {target}" for source, target in zip(sources, targets, strict=True)
    ] == pairs
    assert known == tuple(words.split())
    assert facts["statistics"]["train"]["pairs_left_out"] == left_out
    ids = [None, "_EOS_", "_UNK_", *known]
    read = [" ".join(ids[id] for id in source) for source in data["train"]["source"]]
    if settings.get("min_count") == 1:
        assert read == [f"{text} _EOS_".replace("\t", " _EOS_ ") for text in sources]
    if settings.get("drop_unknown"):  # in dev too
        assert data["dev"]["source_text"] == ["a"]
    assert ("cannot be exported" in capsys.readouterr().err) == (
        settings.get("tokenizer") == "jieba"
    )


def test_vectors_are_read(source, tmp_path):
    (tmp_path / "vectors.txt").write_text("a 1 2 3\nhi 4 5 6\nother 7 8 9\n")
    run(source, tmp_path / "out", vectors=str(tmp_path / "vectors.txt"))
    vectors = load_dataset(tmp_path / "out").vectors
    assert vectors.shape == (6, 3) and vectors.dtype == np.float32
    assert vectors[[0, 3, 5]].tolist() == [[0, 0, 0], [1, 2, 3], [4, 5, 6]]  # padding, a, hi


def test_nothing_is_left_behind_where_it_fails(source, tmp_path):
    (source / "dev.txt").write_text("a b\tc\n")
    too_long, absent = Settings(max_words=1), Settings(vectors=str(tmp_path / "no.txt"))
    found = refusal(prepare, "conversations", source, tmp_path / "out", too_long)
    assert re.search("talk: expected pairs for dev.* None of 1 are left", found)
    assert "expected word vectors" in refusal(
        prepare, "conversations", source, tmp_path / "out", absent
    )
    assert [path.name for path in tmp_path.iterdir()] == ["talk"]


# === Batches ===


def test_a_reverse_model_reads_targets_and_writes_sources(generation_dataset, generation_model):
    split, rows = generation_dataset.splits["dev"], np.array([2, 0, 5])
    reverse = generation_model.config.replace(reverse=True)
    inputs, target = generation.collate(split, reverse, rows, 1)
    expected, other = generation.collate(split, generation_model.config, rows, 1)
    np.testing.assert_array_equal(inputs["source"], other)
    np.testing.assert_array_equal(target, expected["source"])
    assert (inputs["target_in"][:, 0] == split.bos).all()
    np.testing.assert_array_equal(inputs["target_in"][0, 1:], target[0, :-1])
    turned = split.in_direction_of(reverse)
    assert (turned.source_texts, turned.target_texts) == (split.target_texts, split.source_texts)


# === Prepared files ===


def test_load_dataset(generation_dataset, prepared_generation):
    dataset, train, dev = generation_dataset, *generation_dataset.splits.values()
    assert (len(train), len(dev), int(dev.seen.sum())) == (69, 21, 14)
    assert dev.source_texts[:2] == ["i am dee .", "i am dee .\thello dee , what do you like ?"]
    assert dev.target_texts[1:3] == ["i like noise .", "noise ? noise is too loud"]
    text = {"tokenizer": "words", "lower": True, "turns": 2}
    assert dataset.vectors is None and dataset.text == TokenizerConfig.of(text)
    assert dataset.metadata() == {
        "path": str(prepared_generation.resolve()),
        "name": "small",
        "text": text,
    }
    assert train.bos == len(dataset.vocabulary) + 1
    inputs, target = train.collate([1])
    words = [None, *dataset.vocabulary.words, "_BOS_"]
    read = [words[id] for id in inputs["source"][0]]
    assert read == [*"i am ann . _EOS_ hello ann , what do you like ? _EOS_".split()]
    assert [words[id] for id in inputs["target_in"][0]] == ["_BOS_", "i", "like", "tea", "."]
    assert [words[id] for id in target[0]] == ["i", "like", "tea", ".", "_EOS_"]


# === References ===


TEXT = TokenizerConfig(tokenizer="words", lower=True, turns=2)


def test_references_are_read_as_the_run_reads_texts(tmp_path):
    found = {
        "I am Dee.": ["hello dee , what do you like ?", "Hello!", "i like tea ."],
        "x\tI am Ann.\tHello ann, what do you like?": ["I like rain.", "i like noise ."],
        "i like zebras .": ["tea is fine"],
    }
    (tmp_path / "references.json").write_text(json.dumps(found), encoding="utf-8")
    vocabulary = Vocabulary.of(["i", "am", "dee", ".", "hello", "!"])  # 3 to 8
    split = read_references(tmp_path / "references.json", vocabulary, TEXT)
    assert split.source.lists()[0] == split.source.lists()[2] == [3, 4, 5, 6, 1]
    assert split.source_texts[3] == "i am ann .\thello ann , what do you like ?"
    assert split.target.lists()[1] == [7, 8, 1] and split.target_texts[1] == "hello !"
    assert split.source.lists()[5] == [3, 2, 2, 6, 1]  # _UNK_
    assert len(split) == 6 and split.bos == 9 and split.several and not split.seen.any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "Input should be a valid dictionary"),
        ('{"hi": []}', "hi: list should have at least 1 item"),
        ('{"hi": ["you", 3]}', "hi.1: input should be a valid string. Received: 3"),
        ('{"hi\\t": ["you"]}', r"texts with words for the source 'hi\t'"),
        ("{", "expected JSON in UTF-8"),
    ],
)
def test_a_file_of_no_references_is_refused(tmp_path, content, message):
    path = written(tmp_path / "references.json", content)
    found = refusal(read_references, path, Vocabulary.of(["hi"]), TEXT)
    assert message in found and str(path) in found
