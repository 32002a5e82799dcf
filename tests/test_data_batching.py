"""`data.batching` and `data.streaming`: batches of like size, whatever step is asked for, and those
of every task.
"""

import concurrent.futures
import functools
import hashlib
import threading
import types

import numpy as np
import pytest
from helpers import on_tensorflow

from colloquy.data import batching
from colloquy.data.batching import XLA_MULTIPLE, Epochs, batches_by_size
from colloquy.data.streaming import ahead, stream_batches
from colloquy.models.dam_config import DAMConfig, LexicalMatchConfig
from colloquy.tasks import TASKS
from colloquy.tasks.reading_comprehension.data import ReadingSplit
from colloquy.tasks.selection.split import SelectionSplit


def sizes(examples, seed=0):
    return np.random.default_rng(seed).integers(1, 50, size=(examples, 3))


def test_every_example_is_in_one_batch():
    for examples in (1, 7, 100, 1201):
        for rng in (None, np.random.default_rng(3)):
            batches = batches_by_size(sizes(examples), 7, rng)
            assert sorted(np.concatenate(batches).tolist()) == list(range(examples))
            assert max(len(batch) for batch in batches) <= 7


def test_number_of_batches_depends_on_the_number_of_examples_alone():
    [count] = {
        len(batches_by_size(sizes(1201, seed), 7, np.random.default_rng(seed))) for seed in range(9)
    }
    assert count <= 1201 / 7 + 17  # at most one partial batch a part


def test_the_batch_of_a_step_is_the_same_whoever_asks_and_when(monkeypatch):
    monkeypatch.setattr(batching, "BATCHES_PER_POOL", 3)
    made = []

    def make_batches(rng):
        made.append(1)
        return batches_by_size(sizes(100), 7, rng)

    epochs = Epochs(make_batches, seed=4)
    assert epochs.steps == 15
    whole = [epochs.batch(step).tolist() for step in range(60)]
    assert whole[:15] != whole[15:30] and len(made) == 4  # one order an epoch
    assert sorted(np.concatenate(whole[15:30])) == list(range(100))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(epochs.batch, range(60)))
    assert [batch.tolist() for batch in found] == whole
    for step in (59, 0, 16, 15):
        assert Epochs(make_batches, seed=4).batch(step).tolist() == whole[step]


def arrays(step):
    size = 2 + step % 3
    return {"x": np.full((size, size + 1), step, "float32")}, np.arange(size)


@on_tensorflow
def test_batches_come_in_order_with_open_sizes():
    stream = stream_batches(arrays, 3, 20)
    inputs, targets = stream.element_spec
    assert (inputs["x"].shape.as_list(), inputs["x"].dtype) == ([None, None], "float32")
    assert (targets.shape.as_list(), targets.dtype) == ([None], "int64")
    for step, (found, y) in enumerate(stream, start=3):
        np.testing.assert_array_equal(found["x"], arrays(step)[0]["x"])
        np.testing.assert_array_equal(y, arrays(step)[1])
    assert step == 19


@on_tensorflow
def test_an_error_ends_the_stream_and_nothing_is_tuned():
    """The thread that tunes sleeps twice as long each time, and the end of an iterator waits for
    it.
    """
    stream = stream_batches(lambda step: arrays(step) if step < 5 else 1 / 0, 0, 9)
    assert stream.options().autotune.enabled is False
    with pytest.raises(Exception, match="ZeroDivisionError"):
        list(stream)


def test_the_next_results_are_made_by_other_threads_and_an_error_ends_them():
    threads, found = [], []

    def make(number):
        threads.append(threading.get_ident())
        return 60 // (5 - number)

    with pytest.raises(ZeroDivisionError):
        for each in ahead(make, range(9), 2):
            found.append(each)
    assert found == [12, 15, 20, 30, 60]
    assert threading.get_ident() not in threads and len(set(threads)) <= 2


MADE = np.random.default_rng(11)
SIZES = MADE.integers(1, 40, (523, 2))
SPANS = [[(int(first), int(first) + 1)] for first in MADE.integers(0, 60, 523)]


def selection_split():
    def ids(low, high):
        return MADE.integers(3, 90, high if low == high else MADE.integers(low, high)).tolist()

    contexts = [[*ids(1, 9), 1, *ids(2, 2), 1] for _ in range(97)]
    lines = [(context, ids(1, 9), int(number == 0)) for context in contexts for number in range(5)]
    return SelectionSplit.of(*map(list, zip(*lines, strict=True)), 1)


def reading_split():
    split = types.SimpleNamespace(sizes=SIZES, spans=SPANS)
    split.answers_longer_than = functools.partial(ReadingSplit.answers_longer_than, split)
    return split


SPLITS = {
    "selection": selection_split(),
    "dialog": types.SimpleNamespace(sizes=SIZES),
    "reading_comprehension": reading_split(),
    "generation": types.SimpleNamespace(
        in_direction_of=lambda config: types.SimpleNamespace(sizes=SIZES)
    ),
}


@pytest.mark.parametrize(
    ("task", "settings", "expected"),
    [
        ("selection", {"negatives": "fresh", "loss": "softmax"}, "69834fd8d174004f"),
        ("selection", {"negatives": "file", "loss": "pointwise"}, "2a55883d9b0f0238"),
        ("selection", {"negatives": "file", "loss": "softmax"}, "995500bd4cba5a7f"),
        ("dialog", {}, "03aaafdac66b2219"),
        ("generation", {}, "03aaafdac66b2219"),
        ("reading_comprehension", {"max_context": 70, "max_question": 40}, "e0b9b53c3f907172"),
        # Since 8880c9e, contexts are read in windows, and batches are of the words that are read.
        ("reading_comprehension", {"max_context": 50}, "48e55fb0b14a679b"),
    ],
)
def test_the_first_1000_batches_of_every_task_never_change(task, settings, expected):
    """As commit 2c95758 makes them: whoever trains a recipe again gets the same network."""
    task, split = TASKS[task], SPLITS[task]
    training = task.Training(batch_size=7, **settings)
    config = types.SimpleNamespace(max_turns=2, max_words=6)
    epochs, found = (
        Epochs(lambda rng: task.training_batches(split, config, training, rng), 5),
        hashlib.sha256(),
    )
    for step in range(1000):
        batch = epochs.batch(step)
        for array in batch if isinstance(batch, tuple) else [batch]:
            found.update(np.asarray(array).astype("int64").tobytes())
    assert found.hexdigest()[:16] == expected


def test_with_xla_which_compiles_every_shape_all_batches_of_dam_have_one():
    task, split = TASKS["selection"], SPLITS["selection"]
    config = DAMConfig(
        vocabulary_size=90, max_turns=3, max_words=9, lexical=LexicalMatchConfig(turns=4, words=10)
    )
    batches = task.training_batches(
        split, config, task.Training(batch_size=7), np.random.default_rng(0)
    )
    inputs = [task.collate(split, config, batches[number], XLA_MULTIPLE)[0] for number in range(20)]
    shapes = {tuple(array.shape[1:] for array in arrays.values()) for arrays in inputs}
    assert shapes == {((3, 9), (1, 9), (4, 10), (1, 10))}
