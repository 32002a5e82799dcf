"""`tasks.generation.prepare` and `data`: prepared pairs, batches, files of references."""

import json
import sys
import types

import numpy as np
import pytest
from helpers import refusal

import colloquy
from colloquy.data import pickles
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks import TASKS
from colloquy.tasks.generation.data import load_dataset
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


def prepare_small(source, out, **settings):
    """Returns the pairs, the vocabulary's words without specials, the metadata."""
    prepare("conversations", source, out, Settings(**{"min_count": 2, **settings}))
    words = Vocabulary.load(out / "vocabulary.txt").words[2:]
    metadata = json.loads((out / "dataset.json").read_text())
    return pickles.load(out / "pairs.pkl"), words, metadata


def test_prepare_makes_pairs_of_neighbours(source, tmp_path):
    data, words, metadata = prepare_small(source, tmp_path / "out", min_count=1)
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"pairs.pkl", "vocabulary.txt", "dataset.json"}
    # Each utterance is counted once: `b`, `a` and `hi` twice each.
    assert words == ("a", "b", "hi", "!", ",", ".", "c", "d", "e", "hello", "tom")

    id = {word: number for number, word in enumerate(words, 3)}
    train, dev = data["train"], data["dev"]
    assert train["source_text"] == ["hi !", "hello , tom .", "a", "b c d e", "a"]
    assert train["target_text"] == ["hello , tom .", "hi", "b c d e", "a", "b"]
    assert train["source"][0] == [id["hi"], id["!"], EOS]
    assert train["target"][2] == [id["b"], id["c"], id["d"], id["e"], EOS]
    assert dev["source_text"] == ["hi", "hello tom", "x"]
    assert dev["target"][1] == [UNK, id["."], EOS]
    assert train["seen"] == [True] * 5
    # "Hi!", "Hello, Tom." but for case and signs
    assert dev["seen"] == [True, False, False]

    assert metadata["name"] == "talk" and metadata["task"] == "generation"
    assert metadata["settings"]["tokenizer"] == "mixed"
    assert metadata["statistics"]["vocabulary"] == 2 + len(words)
    assert metadata["statistics"]["dev"] == {
        "pairs": 3,
        "source_words_95": 1.9,
        "target_words_95": 2.0,
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
JIEBA = {"tokenizer": "jieba", "min_count": 1}


@pytest.mark.parametrize(
    ("train", "settings", "pairs", "words"),
    [
        (TRAIN, {"turns": 2, "min_count": 1}, PAIRS, "a b hi ! , . c d e hello tom"),
        (TRAIN, {"max_words": 3, "min_count": 1}, ["a -> b"], "a b"),
        # an utterance without a token
        ("a\t\u200b\tb\tc\n", {"min_count": 1}, ["b -> c"], "b c"),
        (TRAIN, {"vocabulary_size": 2, "drop_unknown": True}, ["a -> b"], "a b"),
        ("Hi, b\tc\n", SPACES, ["Hi, b -> c"], "Hi, b c"),
        ("你好吗\t我很好\n", JIEBA, ["你好 吗 -> 我很 好"], "你好 吗 好 我很"),
    ],
)
def test_pairs_are_kept_or_left_out(
    source, tmp_path, monkeypatch, capsys, train, settings, pairs, words
):
    jieba = types.SimpleNamespace(lcut=lambda text: [text[:2], text[2:]])
    monkeypatch.setitem(sys.modules, "jieba", jieba)
    (source / "train.txt").write_text(train, encoding="utf-8")
    (source / "dev.txt").write_text("a\tb\tbye\tg\n")
    data, known_words, _ = prepare_small(source, tmp_path / "out", **settings)
    shown = []
    for source_text, target_text in zip(
        data["train"]["source_text"], data["train"]["target_text"], strict=True
    ):
        shown.append(f"{source_text} -> {target_text}")
    assert shown == pairs
    assert known_words == tuple(words.split())
    if settings.get("drop_unknown"):  # in dev too
        assert data["dev"]["source_text"] == ["a"]
    printed = capsys.readouterr().out
    assert ("cannot be exported" in printed) == (settings.get("tokenizer") == "jieba")


def test_nothing_is_left_behind_where_it_fails(source, tmp_path):
    (source / "dev.txt").write_text("a b\tc\n")
    out = tmp_path / "out"
    message = refusal(prepare, "conversations", source, out, Settings(max_words=1))
    assert "dev.txt: expected pairs of an utterance and its reply for dev" in message
    assert message.endswith(
        "left out of all splits: 5 pairs with a turn of over 1 words (--max_words)"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["talk"]
    # A directory in use is refused before the files are read.
    message = refusal(prepare, "conversations", source / "missing", source, Settings())
    assert message == f"{source} must not exist yet, or be an empty directory"


# === Prepared files and batches ===


def test_a_reverse_model_reads_targets_and_writes_sources(generation_dataset, generation_model):
    split, rows = generation_dataset.splits["dev"], np.array([2, 0, 5])
    config = generation_model.config
    inputs, target = generation.collate(split, config.replace(reverse=True), rows, 1)
    forward_inputs, forward_target = generation.collate(split, config, rows, 1)
    np.testing.assert_array_equal(inputs["source"], forward_target)
    np.testing.assert_array_equal(target, forward_inputs["source"])
    assert (inputs["target_in"][:, 0] == split.begin_id).all()
    np.testing.assert_array_equal(inputs["target_in"][0, 1:], target[0, :-1])
    reverse = split.in_direction_of(config.replace(reverse=True))
    assert reverse.source_texts == split.target_texts
    assert reverse.target_texts == split.source_texts


def test_load_dataset(generation_dataset, prepared_generation):
    train, dev = generation_dataset.splits["train"], generation_dataset.splits["dev"]
    assert (len(train), len(dev), int(dev.seen.sum())) == (69, 21, 14)
    text = {"tokenizer": "words", "lower": True, "turns": 2}
    path = str(prepared_generation.resolve())
    assert generation_dataset.metadata() == {"path": path, "name": "small", "text": text}

    words = [None, *generation_dataset.vocabulary.words, "_BOS_"]
    assert train.begin_id == len(words) - 1
    inputs, target = train.collate([1])
    read = " ".join(words[id] for id in inputs["source"][0])
    assert read == "i am ann . _EOS_ hello ann , what do you like ? _EOS_"
    assert [words[id] for id in inputs["target_in"][0]] == ["_BOS_", "i", "like", "tea", "."]
    assert [words[id] for id in target[0]] == ["i", "like", "tea", ".", "_EOS_"]


def test_lists_in_memory_are_prepared(tmp_path):
    talks = [[f"hi {n}", "hello\tyou", "so"] for n in range(12)]
    colloquy.prepare("conversations", talks, tmp_path / "drawn", task="generation")
    splits = {"train": talks[:9], "dev": talks[9:]}
    colloquy.prepare("conversations", splits, tmp_path / "own", task="generation")
    pairs = {name: len(split) for name, split in load_dataset(tmp_path / "own").splits.items()}
    assert pairs == {"train": 18, "dev": 6}
    assert load_dataset(tmp_path / "own").name == "conversations"
    assert len(load_dataset(tmp_path / "drawn").splits["train"]) == 16
    wrong = refusal(colloquy.prepare, "conversations", {"valid": talks}, tmp_path / "no")
    assert "Received: valid" in wrong
    assert "Received: a list" in refusal(colloquy.prepare, "smn", talks, tmp_path / "no")
