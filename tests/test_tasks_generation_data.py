"""`tasks.generation.data`: batches, prepared files, files of references."""

import json

import numpy as np
import pytest
from helpers import refusal, written

from data.sequences import Sequences
from data.vocabulary import Vocabulary
from tasks import TASKS
from tasks.generation.data import GenerationSplit, TextSettings, read_references

generation = TASKS["generation"]
EOS = 1


# === Batches ===


def padded(lists, multiple):
    width = -(-max(map(len, lists)) // multiple) * multiple
    return [ids + [0] * (width - len(ids)) for ids in lists]


@pytest.mark.parametrize(("multiple", "max_source", "max_target"), [(1, None, None), (3, 5, 2), (4, 2, 7), (1, 1, 1)])
def test_collate_matches_loops(multiple, max_source, max_target):
    rng = np.random.default_rng(3)
    source, target = (
        [[*rng.integers(2, 11, size=rng.integers(1, longest)).tolist(), EOS] for _ in range(13)] for longest in (11, 7)
    )
    split = GenerationSplit(Sequences.of(source), Sequences.of(target), bos=12)
    assert len(split) == 13
    assert split.sizes.tolist() == [[len(t), len(s)] for s, t in zip(source, target, strict=True)]
    for rows in ([5, 0, 12], [12], [7, 7], list(range(13))):
        inputs, targets = split.collate(np.array(rows), multiple, max_source, max_target)
        read = [source[row][-(max_source or 99) :] for row in rows]
        written = [target[row][: max_target or 99] for row in rows]
        expected = read, [[12, *ids[:-1]] for ids in written], written
        for array, lists in zip((inputs["source"], inputs["target_in"], targets), expected, strict=True):
            assert array.dtype == np.int32 and array.tolist() == padded(lists, multiple)


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
    assert dataset.vectors is None and dataset.text == TextSettings.of(text)
    assert dataset.facts() == {"path": str(prepared_generation.resolve()), "name": "small", "text": text}
    assert train.bos == len(dataset.vocabulary) + 1
    inputs, target = train.collate([1])
    words = [None, *dataset.vocabulary.words, "_BOS_"]
    read = [words[id] for id in inputs["source"][0]]
    assert read == [*"i am ann . _EOS_ hello ann , what do you like ? _EOS_".split()]
    assert [words[id] for id in inputs["target_in"][0]] == ["_BOS_", "i", "like", "tea", "."]
    assert [words[id] for id in target[0]] == ["i", "like", "tea", ".", "_EOS_"]


# === References ===


TEXT = TextSettings(tokenizer="words", lower=True, turns=2)


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
