"""`tasks.selection.prepare` and prepare.py: from text files to the files of a dataset."""

import collections
import gzip
import json
import pickle
import re
import shutil
from unittest.mock import patch

import numpy as np
import pytest
from helpers import ROOT, contents_of, refusal, write_smn, written

from colloquy.data.corpora import chitchat
from colloquy.data.corpora.splits import draw_splits, read_splits
from colloquy.data.prepared import filled_min_count
from colloquy.data.vocabulary import Vocabulary
from colloquy.data.word_vectors import append_vectors, complete, train_word2vec
from colloquy.tasks import TASKS
from colloquy.tasks.selection.arrays import path_of, read_split, write_split
from colloquy.tasks.selection.contexts import draw_lines
from colloquy.tasks.selection.data import as_texts, load_dataset
from colloquy.tasks.selection.lexical import document_weights, equal_stems
from colloquy.tasks.selection.prepare import Settings, prepare
from colloquy.tasks.selection.split import SelectionSplit

EOS = 1
SMALL = {"min_count": 2, "dimension": 5, "window": 2, "word2vec_epochs": 2}
# The first two positives are one conversation that grows; `only` is in negative responses alone,
# and `_EOS_` is a word like any other. Counts in distinct utterances: b 3, a 2, d 2, c 1, e 1, f 1.
TRAIN = """\
1\ta b\tc b\td
0\ta b\tc b\tonly only
1\ta b\tc b\td\ta e d _EOS_
0\ta b\tc b\td\tonly
1\t\tf b
"""
DEV = """\
1\ta\tb  d
0\ta\tx
0\ta\tc\xa0b
1\tb\t_EOS_\ta
0\tx\ta
0\tx\tb
"""
UTTERANCES = ["a b", "c b", "d", "a e d _EOS_", "", "f b"]


@pytest.fixture
def source(tmp_path):
    """A corpus of two files, beside which nothing may appear."""
    directory = tmp_path / "source"
    directory.mkdir()
    (directory / "train.txt").write_text(TRAIN)
    (directory / "valid.gz").write_bytes(gzip.compress(DEV.encode()))
    return directory


def run(source, out, **settings):
    """Prepares a corpus; returns its dataset, and the metadata of that."""
    prepare("smn", source, out, Settings(**{**SMALL, **settings}))
    return load_dataset(out), json.loads((out / "dataset.json").read_text())


def shown(dataset, name):
    """The lines of a split: label, turns and response, as words."""
    split = dataset.splits[name]
    lines = []
    for line, context in enumerate(split.context_of_line):
        turns = as_texts(split.turns, split.turns_of(context), dataset.vocabulary)
        [response] = as_texts(split.responses, [line], dataset.vocabulary)
        lines.append((int(split.label[line]), turns, response))
    return lines


# === Files ===


def test_no_word_is_rare_in_a_small_corpus_by_default():
    assert filled_min_count(None, {"often": 19_998, "once": 1}) == 1
    assert filled_min_count(None, {"often": 19_999, "once": 1}) == 2
    assert filled_min_count(3, {"once": 1}) == 3


def test_prepare_writes_ids(source, tmp_path):
    dataset, _ = run(source, tmp_path / "new" / "out")
    assert dataset.vocabulary.words == ("_EOS_", "_UNK_", "b", "a", "d")
    assert dataset.vectors.shape == (6, 5) and dataset.vectors.dtype == np.float32
    unk = "_UNK_"
    first = ["a b", f"{unk} b"]
    assert shown(dataset, "train") == [
        (1, first, "d"),
        (0, first, f"{unk} {unk}"),
        (1, [*first, "d"], f"a {unk} d {unk}"),
        (0, [*first, "d"], unk),
        (1, [""], f"{unk} b"),
    ]
    assert shown(dataset, "dev") == [
        (1, ["a"], "b d"),
        (0, ["a"], unk),
        (0, ["a"], unk),
        (1, ["b", unk], "a"),
        (0, [unk], "a"),
        (0, [unk], "b"),
    ]
    assert shown(dataset, "test") == []
    assert dataset.splits["train"].context_of_line.tolist() == [0, 0, 1, 1, 2]


def test_prepare_keeps_unknown_words_by_their_hash(source, tmp_path):
    plain, plain_facts = run(source, tmp_path / "plain")
    dataset, facts = run(source, tmp_path / "hashed", hashed_words=101)
    hashed = Vocabulary(plain.vocabulary.words, hashed=101)
    only, e, end = hashed.encode(["only", "e", "_EOS_"])
    assert 6 <= min(only, e) and max(only, e) <= 5 + 101 and only != e
    assert dataset.splits["train"].responses.lists([1, 2]) == [[only] * 2, [4, e, 5, end]]
    assert (dataset.hashed_words, facts["hashed_words"]) == (101, 101)
    assert dataset.vectors.shape == (6, 5) and shown(dataset, "train") == shown(plain, "train")
    assert facts["statistics"]["train"] == plain_facts["statistics"]["train"]


@pytest.mark.parametrize(
    ("given", "texts", "lower"),
    [
        ("whitespace", ["Hello there!", "How are YOU?", "_UNK_ you!", "you!"], False),
        ("terms", ["hello there !", "how are you ?", "hello _UNK_ you !", "you !"], True),
    ],
)
def test_prepare_splits_raw_texts_as_told(source, tmp_path, given, texts, lower):
    (source / "train.txt").write_text(
        "1\tHello there!\tHow are YOU?\n0\tHello there!\thello, you!\n1\tyou\tyou!\n"
    )
    tokenizer = None if given == "whitespace" else given
    dataset, facts = run(source, tmp_path / "out", tokenizer=tokenizer, min_count=1)
    lines = shown(dataset, "train")
    assert [lines[0][1][0], *(response for _, _, response in lines)] == texts
    assert facts["text"] == {"tokenizer": given, "lower": lower}


def test_texts_beyond_the_cache_and_blocks_are_the_same(tmp_path, monkeypatch):
    write_smn(tmp_path / "raw")
    prepare("smn", tmp_path / "raw", tmp_path / "whole", Settings(**SMALL))
    monkeypatch.setattr("colloquy.tasks.selection.ingest.CACHED_TEXTS", 3)
    monkeypatch.setattr("colloquy.tasks.selection.ingest.BLOCK", 50)
    prepare("smn", tmp_path / "raw", tmp_path / "parts", Settings(**SMALL))
    assert contents_of(tmp_path / "whole") == contents_of(tmp_path / "parts")


# === Word vectors ===


def test_prepare_trains_vectors_on_distinct_utterances_or_whole_conversations(source, tmp_path):
    options = {"min_count": 1, "seed": 3, "window": 4}
    trained = {"dimension": 5, "window": 4, "negative": 25, "epochs": 2, "sample": 1e-4, "seed": 3}
    dataset, _ = run(source, tmp_path / "utterances", **options)
    counts = collections.Counter(" ".join(UTTERANCES).split())
    assert dataset.vocabulary == Vocabulary.of_counts(counts)
    expected = train_word2vec(map(str.split, UTTERANCES), dataset.vocabulary, **trained)
    np.testing.assert_array_equal(dataset.vectors, expected)

    lines = ["1 x y z", "1 x y w", "1 y w a", "1 z x", "1 a b", "0 a q", "1 a c"]
    more = "".join(line.replace(" ", "\t") + "\n" for line in lines)
    (source / "train.txt").write_text(TRAIN + more)
    dataset, _ = run(source, tmp_path / "conversations", word2vec_text="conversations", **options)
    said = ["a b c b d a e d _EOS_", "f b", "x y z w", "y w a", "z x", "a b c"]
    expected = train_word2vec(map(str.split, said), dataset.vocabulary, **trained)
    np.testing.assert_array_equal(dataset.vectors, expected)


def test_prepare_takes_vectors_from_files(source, tmp_path, capsys):
    path = tmp_path / "vectors.txt"
    path.write_text("a 1 2 3\nx 4 5 6\nd 7 8 9\n")
    own, _ = run(source, tmp_path / "own", seed=3)
    capsys.readouterr()
    given, _ = run(source, tmp_path / "given", vectors=str(path), seed=3)
    known = {"a": [1, 2, 3], "d": [7, 8, 9]}
    np.testing.assert_array_equal(given.vectors, complete(known, own.vocabulary, 3, seed=3))
    assert "vectors of 2 of 3 words" in capsys.readouterr().out
    both, _ = run(source, tmp_path / "both", general_vectors=str(path), seed=3)
    expected, _ = append_vectors(own.vectors, str(path), own.vocabulary)
    np.testing.assert_array_equal(both.vectors, expected)
    assert both.vectors.shape == (6, 8)


def test_prepare_reports_facts_and_prints_a_summary(source, tmp_path, capsys):
    _, facts = run(source, tmp_path / "out", word2vec_epochs=None)
    names = ("corpus", "task", "name", "eos_id", "unk_id")
    assert [facts[name] for name in names] == ["smn", "selection", source.name, 1, 2]
    decided = {"tokenizer": "whitespace", "word2vec_epochs": 20, **{"min_count": 2, "window": 2}}
    assert facts["settings"].items() >= decided.items()
    statistics = facts["statistics"]
    assert set(statistics) == {"vocabulary", "train", "dev"} and statistics["vocabulary"] == 5
    assert statistics["dev"] == {
        "lines": 6,
        "contexts": 3,
        "turns_95": 1.9,
        "words_95": 1.0,
        "unknown_words": 0.3636,
        "candidates_x_contexts": "3 x 1, 1 x 1, 2 x 1",
    }
    printed = capsys.readouterr()
    assert "3 x 1, 1 x 1, 2 x 1" in printed.out and "5 words, vectors (6, 5)" in printed.out
    said = " and others: 1 of 3 contexts have no line with label 1"
    assert f"{source / 'valid.gz'}, line 5{said}" in printed.out


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("test.txt", "1\ta\tb\n1 a b\n", "test.txt, line 2: expected .* separated by tabs"),
        ("train.txt", "0\ta\tb\n", "train.txt: expected lines with label 1"),
        ("train.txt", "1\ta\tb\n", "train.txt: expected .* that occurs 2 times"),
        ("train.txt", None, "source: expected a file train or train.txt"),
    ],
)
def test_prepare_rejects_files(source, tmp_path, file, content, message):
    if content is None:
        (source / file).unlink()
    else:
        (source / file).write_text(content)
    before = sorted(tmp_path.rglob("*"))
    found = refusal(prepare, "smn", source, tmp_path / "out", Settings(**SMALL))
    assert re.search(message, found) and sorted(tmp_path.rglob("*")) == before


NO_LABEL_1 = TRAIN[TRAIN.index("\n") + 1 :] + TRAIN.splitlines(keepends=True)[0]
OTHER_NUMBERS = "1\ta\tb\n0\ta\tc\n1\tb\tc\n0\tb\td\n1\tc\ta\n"


@pytest.mark.parametrize(
    ("file", "content", "messages"),
    [
        ("valid.gz", None, ["source has no dev split"]),
        (
            "train.txt",
            NO_LABEL_1,
            ["line 1 and others: 1 of 4 contexts have no line with label 1. The lines of"],
        ),
        (
            "valid.gz",
            gzip.compress(OTHER_NUMBERS.encode(), mtime=0),
            ["valid.gz, line 5 and others: 1 of 3 contexts have others than 2 candidates. Equal"],
        ),
    ],
)
def test_an_odd_corpus_is_noted(source, tmp_path, capsys, file, content, messages):
    if content is None:
        (source / file).unlink()
    else:
        written(source / file, content)
    run(source, tmp_path / "out")
    printed = capsys.readouterr().out
    for message in messages:
        assert message in printed


# === Conversations ===


@pytest.fixture
def chitchat_directory(tmp_path):
    """A directory with 60 conversations of six turns, the third of two messages."""
    conversations = {}
    for number in range(60):
        messages = []
        for turn in range(6):
            text = "yes" if turn == 3 else f"turn {turn} of talk{number}"
            times = (2 * turn, 2 * turn + 1) if turn == 2 else (2 * turn,)
            for second in times:
                time = f"2018-05-02T19:38:{second:02}Z"
                messages.append({"text": text, "sender": f"s{turn % 2}", "timestamp": time})
        conversations[f"id{number}"] = {"messages": [messages[::-1]]}
    directory = tmp_path / "chitchat"
    directory.mkdir()
    (directory / "dataset.json").write_text(json.dumps(conversations))
    return directory


def test_conversations_are_split_before_contexts_are_cut(chitchat_directory):
    splits = read_splits(chitchat, chitchat_directory)
    sizes = {name: len(split.conversations) for name, split in splits.items()}
    assert sizes == {"train": 40, "dev": 10, "test": 10}
    all_talks = []
    for split in splits.values():
        all_talks += [tuple(talk) for talk in split.conversations]
    assert len(set(all_talks)) == 60
    for talk in all_talks:
        text = talk[2][: len(talk[2]) // 2]
        assert len(talk) == 6 and talk[2] == f"{text} {text}" and talk[3] == "yes"


@pytest.mark.parametrize(("split", "contexts", "negatives"), [("train", 40, 3), ("dev", 30, 9)])
def test_negatives_are_of_other_conversations(split, contexts, negatives):
    talks = [[f"{turn} talk{number}" for turn in range(14)] for number in range(30)]
    lines = draw_lines(talks, split, contexts=40, seed=1)
    assert lines == draw_lines(talks, split, contexts=40, seed=1)
    assert [line.label for line in lines] == ([1] + [0] * negatives) * contexts
    for line in lines:
        own = [text.split()[1] for text in line.turns]
        assert len(set(own)) == 1 and len(own) <= 9
        assert (line.response.split()[1] == own[0]) == (line.label == 1)
        if line.label == 1:
            position = int(line.response.split()[0])
            assert int(line.turns[-1].split()[0]) == position - 1
            assert position >= (1 if split == "train" else 3)


def test_all_contexts_are_drawn_where_asked():
    talks = [["a", "b", "c"], ["d", "e"], ["f"]]
    lines = draw_lines(talks, "train", contexts=0, seed=1)
    positives = [(line.turns, line.response) for line in lines if line.label == 1]
    assert positives == [(["a"], "b"), (["a", "b"], "c"), (["d"], "e")]
    # The other conversations have one or two responses.
    assert sum(line.label == 0 for line in lines) == 1 + 1 + 2


def test_dev_and_test_are_fixed_and_train_has_the_other_conversations():
    talks = [[f"{turn} of {number}" for turn in range(2 + number % 2)] for number in range(3000)]
    splits = {name: split.conversations for name, split in draw_splits("x.txt", talks).items()}
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 2000,
        "dev": 500,
        "test": 500,
    }
    assert sorted(splits["train"] + splits["dev"] + splits["test"]) == sorted(talks)
    assert {name: split.conversations for name, split in draw_splits("", talks).items()} == splits
    assert "x.txt: expected at least 3 conversations" in refusal(draw_splits, "x.txt", talks[:2])


def test_the_demo_prepares_chitchat_as_train_does_without_data(tmp_path):
    with patch("colloquy.tasks.selection.prepare.prepare") as prepare_mock:
        TASKS["selection"].make_sample(tmp_path)
    corpus, source, out, settings = prepare_mock.call_args.args
    assert (corpus, source, out) == ("chitchat", None, tmp_path / "prepared")
    defaults = Settings().to_json()
    changed = {}
    for name, value in settings.to_json().items():
        if value != defaults[name]:
            changed[name] = str(value)
    [command] = re.findall(r"prepare\.py ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text())
    flags = dict(re.findall(r"--(\w+)=(\S+)", command))
    assert flags == {"corpus": "chitchat", "out": "$(DEMO)/prepared", **changed}


# === DAM's release ===

# The second split has other kinds of labels and of lists, and padding.
PADDED = {"y": ["1", "0"], "c": [[3, 9, 4, 9, 0, 0]] * 2, "r": [[5, 0], np.array([6, 7, 0])]}
RELEASE = (
    {"y": np.array([1, 0]), "c": [[3, 9, 4, 9], [3, 9, 4, 9]], "r": [[5], [6, 7]]},
    PADDED,
    {"y": [], "c": [], "r": []},
)


@pytest.fixture
def release(tmp_path):
    directory = tmp_path / "release"
    directory.mkdir()
    write_release(directory, RELEASE)
    vectors = np.ones((10, 3)).tolist()
    (directory / "word_embedding.pkl").write_bytes(pickle.dumps(vectors, protocol=2))
    return directory


def write_release(directory, splits):
    (directory / "data.pkl").write_bytes(pickle.dumps(splits, protocol=2))


def test_the_release_is_a_corpus_with_and_without_words(release, tmp_path, capsys):
    prepare("dam-release", release, tmp_path / "ids", Settings(eos_id=9, name="douban"))
    dataset = load_dataset(tmp_path / "ids")
    assert dataset.vocabulary is None
    TASKS["selection"].save_assets(dataset, tmp_path)
    assert "ids has no words, only ids: export.py" in capsys.readouterr().out
    assert (dataset.name, dataset.eos_id, dataset.unk_id) == ("douban", 9, None)
    assert len(dataset.splits["test"]) == 0
    for name in ("train", "dev"):
        split = dataset.splits[name]
        assert split.label.tolist() == [1, 0] and split.context_of_line.tolist() == [0, 0]
        assert split.turns.lists() == [[3], [4]]
        assert split.responses.lists() == [[5], [6, 7]]
    np.testing.assert_array_equal(dataset.vectors, np.ones((10, 3)))

    lines = [f"word{id}\t{id}\n" for id in (7, 2, 4, 1, 3, 8, 5)]
    (release / "word2id").write_text("".join(lines) + "_EOS_\t9\n")
    prepare("dam-release", release, tmp_path / "words", Settings(eos_id=9))
    vocabulary = load_dataset(tmp_path / "words").vocabulary
    assert (vocabulary.eos_id, vocabulary.unk_id, len(vocabulary)) == (9, 0, 9)
    assert vocabulary.encode(["word8", "word5", "_EOS_", "word6"]) == [8, 5, 0, 0]


def test_the_release_has_no_use_for_settings_of_texts(release, tmp_path, capsys):
    settings = Settings(eos_id=9, hashed_words=5)
    message = refusal(prepare, "dam-release", release, tmp_path / "x", settings)
    assert "--hashed_words is for texts" in message
    odd = {**RELEASE[0], "y": [0, 0]}
    write_release(release, (odd, RELEASE[2], odd))
    prepare("dam-release", release, tmp_path / "x", Settings(eos_id=9))
    printed = capsys.readouterr().out
    assert "the second dict of" in printed
    for name in ("train", "test"):
        assert f"data.pkl, {name}: 1 of 1 contexts have no response with label 1\n" in printed


def test_a_split_without_conversations_is_refused(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.conv").write_text("E\nM a b\nM c d\n" * 3)
    message = refusal(prepare, "subtitles", tmp_path / "raw", tmp_path / "x", Settings(**SMALL))
    assert "expected conversations of two turns or more for dev" in message


def changed_split(**lists):
    return ({**RELEASE[0], **lists},) * 3


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ((RELEASE[2],) * 3, "data.pkl: expected contexts. Received: none"),
        (({}, {}), r"expected a tuple \(train, dev, test\)"),
        (changed_split(c=[], r=[]), "equally long. Received: .2, 0, 0"),
        (changed_split(y=[7, 1]), "labels of train of 0 or 1"),
        (changed_split(c="ab"), "expected lists of ids and labels. .*str"),
        (changed_split(r=[[5.7], [3]]), "expected lists of ids and labels. .*'float' object"),
        (changed_split(r=[[2**40], [3]]), "expected lists of ids and labels"),
        (changed_split(r=[[100], [3]]), "train: expected ids from 0 to 9. Received: from 3 to 100"),
        (changed_split(c=[[3], [3]]), "train: expected contexts with the id of _EOS_"),
    ],
)
def test_a_bad_release_is_refused(release, tmp_path, splits, message):
    write_release(release, splits)
    refused = refusal(prepare, "dam-release", release, tmp_path / "out", Settings(eos_id=9))
    assert re.search(message, refused)
    assert not (tmp_path / "out").exists()


def test_the_release_needs_the_id_of_eos(release, tmp_path):
    out = tmp_path / "out"
    assert "give --eos_id" in refusal(prepare, "dam-release", release, out, Settings())
    named = Settings(name="ubuntu-v1")
    message = "an id of _EOS_ from 1 to 9. Received: 28270"
    assert message in refusal(prepare, "dam-release", release, out, named)
    douban = Settings(name="douban")
    message = "contexts with the id of _EOS_"
    assert message in refusal(prepare, "dam-release", release, out, douban)


# === Words of a lexical match ===


def test_document_weights_are_inverse_document_frequencies(monkeypatch):
    monkeypatch.setattr("colloquy.data.sequences.BLOCK", 2)
    contexts = [[3, 3, 4, EOS, 3, 5, EOS], [3, EOS]]  # three utterances
    # and two more
    found = document_weights(SelectionSplit.of(contexts, [[4], [3, 9]], [1, 1], EOS), 11)
    frequency = {3: 4, 4: 2, 5: 1, 9: 1}
    expected = [np.log(6 / (1 + frequency.get(id, 0))) / np.log(6) for id in range(11)]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # four utterances; 3 and 4 have a stem
    split = SelectionSplit.of([[3, EOS, 4, EOS, 5, 3, EOS]], [[4, 5]], [1], EOS)
    found = document_weights(split, 6, stems=np.array([0, 1, 2, 3, 3, 5]))
    np.testing.assert_allclose(found[[3, 4, 5]], [0.0, 1.0, np.log(5 / 3) / np.log(5)], atol=1e-6)


def test_words_of_one_stem_are_the_first_of_them():
    words = (
        "_EOS_",
        "_UNK_",
        "installed",
        "/etc/fstab",
        "install",
        "installing",
        "drivers",
        "2.6.8.1",
        "driver",
    )
    found = equal_stems(Vocabulary(words, hashed=3), 1 + len(words) + 3)
    assert found.dtype == np.int32 and found.tolist() == [0, 1, 2, 3, 4, 3, 3, 7, 8, 7, 10, 11, 12]


def test_settings_of_drawn_contexts_are_refused_for_files_that_have_them(source, tmp_path):
    settings = Settings(**SMALL, contexts=9)
    assert "--contexts" in refusal(prepare, "smn", source, tmp_path / "out", settings)


# === A prepared directory is read ===

WHITESPACE = {"tokenizer": "whitespace", "lower": False}


def test_reads_what_prepare_wrote(prepared, tmp_path):
    dataset = load_dataset(prepared)
    assert dataset.vectors.shape == (len(dataset.vocabulary) + 1, 7)
    for name, split in dataset.splits.items():
        lines = (prepared.parent / "raw" / f"{name}.txt").read_text().splitlines()
        assert split.label.tolist() == [int(line[0]) for line in lines]
        lengths = [len(line.split("\t")[-1].split()) for line in lines]
        assert split.responses.lengths.tolist() == lengths
        assert isinstance(split.turns.ids.base, np.memmap) and split.turns.ids.dtype == np.uint16
    metadata = {"eos_id": 1, "unk_id": 2, "hashed_words": 0, "text": WHITESPACE}
    expected = {"path": str(prepared.resolve()), "name": "sample", **metadata}
    assert dataset.metadata() == expected

    directory = shutil.copytree(prepared, tmp_path / "prepared")
    file = directory / "dataset.json"
    text = {"tokenizer": "terms", "lower": True}
    written(file, json.dumps({**json.loads(file.read_text()), "text": text}))
    assert load_dataset(directory).text.to_json() == text


def test_the_arrays_of_a_split_build_it_again(tmp_path):
    contexts = [[5, 6, 1, 1, 7, 1], [5, 6, 1, 1, 7, 1], [3, 1]]
    split = SelectionSplit.of(contexts, [[8], [], [9, 9]], [1, 0, 1], eos_id=1)
    write_split(split, tmp_path, "dev", 2**16 + 1)
    assert np.load(path_of(tmp_path, "dev", "turn_ids")).dtype == np.uint32
    assert np.load(path_of(tmp_path, "dev", "context_lines")).tolist() == [2, 1]
    built = read_split(tmp_path, "dev", 10)
    assert built.turns.lists() == split.turns.lists() == [[5, 6], [], [7], [3]]
    assert built.responses.lists() == [[8], [], [9, 9]]
    assert built.num_turns_of_context.tolist() == split.num_turns_of_context.tolist() == [3, 1]
    assert built.first_turn_of_context.tolist() == split.first_turn_of_context.tolist() == [0, 3]
    assert built.context_of_line.tolist() == split.context_of_line.tolist() == [0, 0, 1]
    assert built.label.tolist() == [1, 0, 1]
