"""`data.stream`: batches on their way to the framework."""

import numpy as np
from helpers import on_tensorflow

from data.stream import as_dataset


def batches():
    for size in (2, 3, 1):
        yield {"x": np.full((size, size + 1), size, "float32")}, np.arange(size)


@on_tensorflow
def test_batches_come_as_they_are_whatever_their_sizes():
    found = list(as_dataset(batches()))
    assert len(found) == 3
    for (inputs, targets), (x, y) in zip(found, batches(), strict=True):
        np.testing.assert_array_equal(inputs["x"], x["x"])
        np.testing.assert_array_equal(targets, y)


@on_tensorflow
def test_nothing_is_tuned():
    """The thread that tunes sleeps twice as long each time, and the end of an iterator waits for it."""
    assert as_dataset(batches()).options().autotune.enabled is False
