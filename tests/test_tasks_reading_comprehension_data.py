"""`tasks.reading_comprehension.prepare` and `data`: from SQuAD files to batches."""

import shutil

import numpy as np
import pytest
from helpers import refusal

from colloquy.data.batching import XLA_MULTIPLE
from colloquy.tasks.reading_comprehension.data import load_dataset
from colloquy.tasks.reading_comprehension.prepare import Settings, prepare


@pytest.fixture(scope="module")
def dataset(prepared_reading):
    return load_dataset(prepared_reading)


def test_prepared_texts_answers_and_spans_agree(dataset):
    train, dev = dataset.splits["train"], dataset.splits["dev"]
    assert (len(train), len(dev)) == (24, 6)
    for split in (train, dev):
        for row in range(len(split)):
            assert [split.answer(row, *span) for span in split.spans[row]] == split.answers[row]
    assert train.answers[0] == ["Rome"]
    assert train.texts[0] == "Ann lives in Rome. Cyd lives in Paris."
    assert train.offsets.lists()[0][:4] == [0, 3, 4, 9]


def test_words_of_train_leaves_out_what_no_text_has(prepared_reading, dataset, tmp_path):
    prepare("squad", prepared_reading.parent / "raw", tmp_path / "out", Settings(words_of="train"))
    assert "unused" in dataset.vocabulary.words
    assert "unused" not in load_dataset(tmp_path / "out").vocabulary.words


def test_prepare_without_word_vectors_leaves_nothing(prepared_reading, tmp_path):
    raw = shutil.copytree(prepared_reading.parent / "raw", tmp_path / "raw")
    (raw / "vectors.npz").unlink()
    assert "a file of word vectors, *.npz" in refusal(
        prepare, "squad", raw, tmp_path / "out", Settings()
    )
    np.savez(raw / "vectors.npz", words=np.array(["a"]), vectors=np.array([["x"]], dtype=object))
    assert "the arrays words and vectors" in refusal(
        prepare, "squad", raw, tmp_path / "out", Settings()
    )
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_collate_numbers_the_distinct_tokens_of_a_batch(dataset):
    inputs, spans = dataset.splits["train"].collate([0, 1], multiple=4)
    assert inputs["context"].shape == (2, 12) and inputs["query"].shape == (2, 8)
    assert inputs["words"].shape == (64,) and inputs["characters"].shape == (64, 16)
    words = dataset.vocabulary.words
    read = [[words[inputs["words"][n] - 1] for n in row if n] for row in inputs["context"]]
    # People have no vector, so they are unknown words that only their characters distinguish.
    assert read[0] == ["_UNK_", "lives", "in", "rome", ".", "_UNK_", "lives", "in", "paris", "."]
    ann = inputs["characters"][inputs["context"][0, 0]]
    assert "".join(dataset.characters.words[id - 1] for id in ann if id) == "Ann"
    assert spans.tolist() == [[[3, 3]], [[8, 8]]]
    assert inputs["words"][0] == 0 and not inputs["characters"][0].any()


def test_with_xla_numbers_of_answers_and_of_tokens_make_no_shape_of_their_own(dataset):
    split = dataset.splits["train"]
    inputs, spans = split.collate([0, 1], multiple=2 * XLA_MULTIPLE)
    assert spans.shape == (2, 16, 2) and len(inputs["words"]) == 2048
    assert [row[row >= 0].tolist() for row in spans] == [
        np.ravel(split.spans[row]).tolist() for row in (0, 1)
    ]


@pytest.mark.parametrize(("multiple", "shapes"), [(1, [(2, 5), (2, 3)]), (16, [(2, 16), (2, 16)])])
def test_collate_cuts_what_is_not_read_and_the_answers_behind_it(dataset, multiple, shapes):
    inputs, spans = dataset.splits["train"].collate(
        [0, 1], max_context=5, max_question=3, multiple=multiple
    )
    assert [inputs[name].shape for name in ("context", "query")] == shapes
    assert [(inputs[name] != 0).sum() for name in ("context", "query")] == [10, 6]
    # the second answer, at word 8, may be in the padding
    assert spans.tolist() == [[[3, 3]], [[-1, -1]]]
