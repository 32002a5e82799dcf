"""data/batching.py: batches on their way to the framework."""

import threading

import keras
import numpy as np
import pytest
from helpers import on_tensorflow

from data.batching import stream_of


def arrays(step):
    size = 2 + step % 3
    return {"x": np.full((size, size + 1), step, "float32")}, np.arange(size)


@on_tensorflow
def test_batches_come_in_order_with_open_sizes_and_a_known_number():
    stream = stream_of(arrays, 3, 20)
    assert int(stream.cardinality()) == 17
    inputs, targets = stream.element_spec
    assert (inputs["x"].shape.as_list(), inputs["x"].dtype) == ([None, None], "float32")
    assert (targets.shape.as_list(), targets.dtype) == ([None], "int64")
    for step, (found, y) in enumerate(stream, start=3):
        np.testing.assert_array_equal(found["x"], arrays(step)[0]["x"])
        np.testing.assert_array_equal(y, arrays(step)[1])
    assert step == 19


@on_tensorflow
def test_the_next_batches_are_made_by_other_threads_and_nothing_is_tuned():
    """The thread that tunes sleeps twice as long each time, and the end of an iterator waits for it."""
    threads = []
    stream = stream_of(lambda step: threads.append(threading.get_ident()) or arrays(step), 0, 9)
    assert stream.options().autotune.enabled is False
    assert len(list(stream)) == 9
    assert threading.get_ident() not in threads[1:] and len(set(threads[1:])) <= 2


@on_tensorflow
def test_an_error_ends_the_stream():
    def wrong(step):
        return arrays(step) if step < 5 else 1 / 0

    with pytest.raises(Exception, match="ZeroDivisionError"):
        list(stream_of(wrong, 0, 9))


def test_other_backends_get_an_iterator_of_the_same(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    found = list(stream_of(lambda step: 7 * step, 3, 5))
    assert found == [21, 28]
