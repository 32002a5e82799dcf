"""`parallel`: order, and that batches are indeed computed at once."""

import threading

import keras
import tensorflow as tf

from colloquy.engine import parallel


def test_results_come_in_order_whatever_takes_longest():
    last = threading.Event()

    def compute(batch):
        if batch == 1:
            assert last.wait(10)  # batch 2 is computed while 1 is
        if batch == 2:
            last.set()
        return batch * 10

    assert parallel.batches_at_once() > 1
    assert list(parallel.in_order(compute, range(5))) == [0, 10, 20, 30, 40]


def test_other_backends_and_gpus_compute_one_batch_at_a_time(monkeypatch):
    monkeypatch.setattr(parallel.runtime, "available_cpus", lambda: 4)
    assert parallel.batches_at_once() == 4
    with monkeypatch.context() as patch:
        patch.setattr(
            tf.config, "list_physical_devices", lambda kind=None: ["gpu"] if kind == "GPU" else []
        )
        assert parallel.batches_at_once() == 1
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    assert parallel.batches_at_once() == 1
    parallel.share_cores()  # does not touch TensorFlow, which has begun to compute and would refuse
    assert list(parallel.in_order(abs, [-3, 2])) == [3, 2]
