"""Response generation: from conversations to the files of a dataset, its batches, and what is refused."""

import json
import shutil
import sys
import types

import numpy as np
import pytest
from helpers import run_script

from base.files import UserError
from data import pickles
from data.sequences import Sequences
from data.vocabulary import Vocabulary
from tasks.generation.data import GenerationSplit, load_dataset
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
    prepare("conversations", source, out, Settings(**settings))
    words = Vocabulary.load(out / "vocabulary.txt").words[2:]
    return pickles.load(out / "pairs.pkl"), words, json.loads((out / "dataset.json").read_text())


# === Files ===


def test_chinese_by_words_says_that_it_is_not_exported(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jieba", types.SimpleNamespace(lcut=lambda text: [text[:2], text[2:]]))
    for name in ("train", "dev"):
        (tmp_path / f"{name}.txt").write_text("\u4f60\u597d\u5417\t\u6211\u5f88\u597d\n", encoding="utf-8")
    data, words, _ = run(tmp_path, tmp_path / "out", min_count=1, tokenizer="jieba")
    assert set(words) == {"\u4f60\u597d", "\u5417", "\u6211\u5f88", "\u597d"}
    assert data["train"]["source_text"] == ["\u4f60\u597d \u5417"]
    assert "cannot be exported, as the tokenizer jieba cannot run inside a" in capsys.readouterr().err
    run(tmp_path, tmp_path / "mixed", min_count=1, tokenizer="mixed")
    assert "exported" not in capsys.readouterr().err


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
    assert facts["name"] == "talk" and facts["task"] == "generation" and facts["corpus"] == "conversations"
    assert facts["settings"]["tokenizer"] == "mixed"
    assert facts["statistics"]["vocabulary"] == 2 + len(words)
    assert facts["statistics"]["dev"] == {
        "conversations": 2,
        "pairs": 3,
        "left_out": 0,
        "source_words_95": 1.9,
        "target_words_mean": 1.67,
        "target_words_95": 2.0,
        "target_words_most": 2,
        "unknown_fraction_of_target": 0.2,
        "seen": 1,
    }


def test_sources_are_the_last_turns(source, tmp_path):
    data, words, _ = run(source, tmp_path / "out", turns=2, min_count=1)
    assert data["train"]["source_text"] == ["hi !", "hi !\thello , tom .", "a", "a\tb c d e", "b c d e\ta"]
    ids = [*([None, "_EOS_", "_UNK_"]), *words]
    assert [ids[id] for id in data["train"]["source"][3]] == ["a", "_EOS_", "b", "c", "d", "e", "_EOS_"]
    assert data["dev"]["seen"] == [True, False, False]


def test_long_pairs_are_left_out_and_not_counted(source, tmp_path):
    data, words, facts = run(source, tmp_path / "out", max_words=3, min_count=1)
    assert data["train"]["source_text"] == ["a"] and data["train"]["target_text"] == ["b"]
    assert words == ("a", "b")
    assert facts["statistics"]["train"]["left_out"] == 4
    (source / "train.txt").write_text("a b c\td e\tf\tg\n")
    data, _, _ = run(source, tmp_path / "two", max_words=2, turns=2)
    assert data["train"]["source_text"] == ["d e\tf"]


def test_rare_words_are_unknown(source, tmp_path):
    assert run(source, tmp_path / "a")[1] == ("a", "b", "hi")
    assert run(source, tmp_path / "b", vocabulary_size=2)[1] == ("a", "b")
    assert run(source, tmp_path / "c", vocabulary_size=0, min_count=1)[1][-1] == "tom"


def test_case_and_tokenizer(source, tmp_path):
    data, _, facts = run(source, tmp_path / "out", lower=False, tokenizer="space")
    assert data["train"]["source_text"][:2] == ["Hi!", "Hello, Tom."]
    assert data["dev"]["seen"] == [True, False, False]
    assert facts["settings"]["tokenizer"] == "space" and not facts["settings"]["lower"]


def test_utterances_without_a_token_make_no_pair(source, tmp_path):
    (source / "train.txt").write_text("a\t\u200b\tb\tc\n", encoding="utf-8")
    data, _, facts = run(source, tmp_path / "out")
    assert data["train"]["target_text"] == ["c"]
    assert facts["statistics"]["train"]["left_out"] == 2


def test_vectors_are_read(source, tmp_path):
    (tmp_path / "vectors.txt").write_text("a 1 2 3\nhi 4 5 6\nother 7 8 9\n")
    run(source, tmp_path / "out", vectors=str(tmp_path / "vectors.txt"))
    vectors = load_dataset(tmp_path / "out").vectors
    assert vectors.shape == (6, 3) and vectors.dtype == np.float32
    assert vectors[[0, 3, 5]].tolist() == [[0, 0, 0], [1, 2, 3], [4, 5, 6]]  # padding, a, hi


def test_nothing_is_left_behind_where_it_fails(source, tmp_path):
    (source / "dev.txt").write_text("a b\tc\n")
    with pytest.raises(UserError, match=r"talk: expected pairs for dev\. Received: none of 1 are left"):
        run(source, tmp_path / "out", max_words=1)
    with pytest.raises(UserError, match="expected word vectors"):
        run(source, tmp_path / "out", vectors=str(tmp_path / "no.txt"))
    assert [path.name for path in tmp_path.iterdir()] == ["talk"]


def test_pairs_with_unknown_words_are_left_out(source, tmp_path):
    """Of train and of dev alike; the vocabulary is the same as with them."""
    (source / "dev.txt").write_text("hi\ta\tbye\n")
    words = run(source, tmp_path / "whole")[1]
    data, known, facts = run(source, tmp_path / "out", drop_unknown=True)
    assert known == words == ("a", "b", "hi")
    assert data["train"]["source_text"] == ["a"] and data["train"]["target_text"] == ["b"]
    assert facts["statistics"]["train"]["left_out"] == 4
    assert all(UNK not in ids for split in data.values() for side in ("source", "target") for ids in split[side])


def test_the_script_takes_the_flags(source, tmp_path):
    flags = ["--corpus=conversations", f"--source={source}", f"--out={tmp_path / 'out'}", "--tokenizer=characters"]
    flags += ["--nolower", "--turns=3", "--max_words=7", "--vocabulary_size=5", "--min_count=1", "--name=mine"]
    assert run_script("prepare.py", *flags).returncode == 0
    dataset = load_dataset(tmp_path / "out")
    assert (dataset.name, *dict(dataset.text).values()) == ("mine", "characters", False, 3)
    assert len(dataset.vocabulary) == 7


# === Batches ===


def collate_in_loops(source, target, bos, multiple, max_source, max_target):
    source = [ids[-(max_source or len(ids)) :] for ids in source]
    target = [ids[: max_target or len(ids)] for ids in target]
    target_in = [[bos, *ids[:-1]] for ids in target]

    def pad(lists):
        width = max(map(len, lists))
        while width % multiple:
            width += 1
        return [ids + [0] * (width - len(ids)) for ids in lists]

    return pad(source), pad(target_in), pad(target)


@pytest.mark.parametrize(("multiple", "max_source", "max_target"), [(1, None, None), (3, 5, 2), (4, 2, 7), (1, 1, 1)])
def test_collate_matches_loops(multiple, max_source, max_target):
    rng = np.random.default_rng(3)
    source, target = (
        [[*rng.integers(2, 11, size=rng.integers(1, longest)).tolist(), EOS] for _ in range(13)] for longest in (11, 7)
    )
    split = GenerationSplit(Sequences.of(source), Sequences.of(target), [""] * 13, [""] * 13, np.zeros(13, bool), 12)
    assert len(split) == 13
    assert split.sizes.tolist() == [[len(t), len(s)] for s, t in zip(source, target, strict=True)]
    for rows in ([5, 0, 12], [12], [7, 7], list(range(13))):
        inputs, targets = split.collate(np.array(rows), multiple, max_source, max_target)
        expected = collate_in_loops(
            [source[row] for row in rows], [target[row] for row in rows], 12, multiple, max_source, max_target
        )
        for array, lists in zip((inputs["source"], inputs["target_in"], targets), expected, strict=True):
            assert array.dtype == np.int32
            assert array.tolist() == lists


# === Datasets ===


@pytest.fixture
def prepared(source, tmp_path):
    run(source, tmp_path / "prepared", turns=2, min_count=1)
    return tmp_path / "prepared"


def test_load_dataset(prepared):
    dataset = load_dataset(prepared)
    assert (dataset.name, *dict(dataset.text).values()) == ("talk", "mixed", True, 2)
    assert dataset.vectors is None
    facts = dataset.facts()
    assert facts["path"] == str(prepared.resolve()) and facts["name"] == "talk"
    assert facts["text"] == {"tokenizer": "mixed", "lower": True, "turns": 2}
    train, dev = dataset.splits["train"], dataset.splits["dev"]
    assert (len(train), len(dev)) == (5, 3)
    assert train.bos == len(dataset.vocabulary) + 1
    assert train.source_texts[3] == "a\tb c d e" and train.target_texts[3] == "a"
    assert dev.seen.tolist() == [True, False, False]
    inputs, target = train.collate([3])
    words = [None, *dataset.vocabulary.words, "_BOS_"]
    assert [words[id] for id in inputs["source"][0]] == ["a", "_EOS_", "b", "c", "d", "e", "_EOS_"]
    assert [words[id] for id in inputs["target_in"][0]] == ["_BOS_", "a"]
    assert [words[id] for id in target[0]] == ["a", "_EOS_"]


def edit_facts(path, **changes):
    facts = json.loads((path / "dataset.json").read_text())
    for name, value in changes.items():
        (facts["settings"] if name in facts["settings"] else facts)[name] = value
    (path / "dataset.json").write_text(json.dumps(facts))


def edit_pairs(path, edit):
    data = pickles.load(path / "pairs.pkl")
    edit(data)
    with open(path / "pairs.pkl", "wb") as file:
        pickles.dump(data, file)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: shutil.rmtree(path), "is no directory; prepare.py makes one"),
        (lambda path: (path / "dataset.json").write_text("{"), "dataset.json: expected JSON in UTF-8. Expecting"),
        (lambda path: edit_facts(path, task="reading"), 'expected an object with "task": "generation"'),
        (lambda path: edit_facts(path, tokenizer="no"), "dataset.json: tokenizer: "),
        (lambda path: edit_facts(path, lower=1), "dataset.json: lower: "),
        (lambda path: edit_facts(path, turns=0), "dataset.json: turns: "),
        (lambda path: edit_facts(path, settings=None), "dataset.json: tokenizer: "),
        (lambda path: (path / "vocabulary.txt").unlink(), "vocabulary.txt: expected a vocabulary"),
        (lambda path: (path / "vocabulary.txt").write_text("_EOS_\n_UNK_\na\n"), "ids must be from 1 to 3"),
        (lambda path: (path / "pairs.pkl").unlink(), "pairs.pkl: expected a pickle"),
        (lambda path: edit_pairs(path, lambda data: data.pop("dev")), "writes. KeyError: 'dev'"),
        (lambda path: edit_pairs(path, lambda data: data["dev"].pop("seen")), "writes. KeyError: 'seen'"),
        (lambda path: edit_pairs(path, lambda data: data["dev"]["seen"].pop()), "must be of one length"),
        (lambda path: edit_pairs(path, lambda data: data["dev"]["target"].pop()), "must be of one length"),
        (lambda path: edit_pairs(path, lambda data: data["dev"]["target_text"].pop()), "must be of one length"),
        (lambda path: edit_pairs(path, lambda data: data["dev"]["source"][1].insert(0, 0)), "ids must be from 1"),
        (lambda path: edit_pairs(path, lambda data: data["dev"]["source"][1].append(3)), "must end with 1"),
        (lambda path: edit_pairs(path, lambda data: data["dev"]["target"][1].clear()), "must end with 1"),
        (
            lambda path: edit_pairs(path, lambda data: data["dev"]["target"].__setitem__(1, ["x"])),
            "cannot be interpreted as an integer",
        ),
        (lambda path: edit_pairs(path, lambda data: data["dev"]["target"].__setitem__(1, [5.7, 1])), "'float' object"),
        (lambda path: edit_pairs(path, lambda data: data["dev"]["target"].__setitem__(1, [10**400, 1])), "writes. "),
        (lambda path: edit_pairs(path, lambda data: data["dev"]["target"].__setitem__(1, [[1], 1])), "'list' object"),
        (lambda path: edit_pairs(path, lambda data: data["dev"].update(target="abc")), "a list of lists of ids"),
        (lambda path: edit_pairs(path, lambda data: data["dev"].update(source_text=[1, 2, 3])), "a list of texts"),
        (
            lambda path: edit_pairs(path, lambda data: data["dev"].update(seen=[0.9, 1, 0])),
            "seen must be True or False",
        ),
        (lambda path: edit_pairs(path, lambda data: data.update(dev=[])), "writes. list indices must be integers"),
    ],
)
def test_load_dataset_rejects(prepared, damage, message):
    damage(prepared)
    with pytest.raises(UserError) as error:
        load_dataset(prepared)
    assert message in str(error.value) and str(prepared) in str(error.value)


def test_load_dataset_rejects_vectors_of_another_vocabulary(prepared):
    with open(prepared / "word_embedding.pkl", "wb") as file:
        pickles.dump(np.zeros((3, 5), np.float32), file)
    with pytest.raises(UserError, match=r"word_embedding\.pkl: expected shape \(14, dimension\)\. Received: \(3, 5\)"):
        load_dataset(prepared)
