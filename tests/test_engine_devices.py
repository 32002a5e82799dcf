"""engine/data_parallel.py: several devices learn what one learns; processes stand for hosts."""

import importlib.util
import json
import socket
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import refusal, start_process, weights_of_run
from test_pinned import assert_same

from colloquy.engine import parallel
from colloquy.engine.data_parallel import HOSTS, Devices, open_devices, pad_batch
from colloquy.engine.run import Run
from colloquy.tasks import TASKS

SETTINGS = {
    # a softmax over candidates lets a bias be anything
    "selection": {"embedding_dropout": "0", "loss": "pointwise"},
    "generation": {"dropout": "0"},
}
# 20 or 21 steps
EPOCHS = {"selection": 2.0, "dialog": 3.0, "generation": 2.25, "reading_comprehension": 7.0}
# Adam moves a weight by about this per step, also where its gradient is little more than rounding
RATE = 1e-4


def plan_of(data, tasks, runs):
    plan = {"settings": SETTINGS, "epochs": EPOCHS, "learning_rate": RATE, "runs": runs}
    return "tests/training_program.py", json.dumps(
        {**plan, "data": {task: str(data[task]) for task in tasks}}
    )


def result_of(process):
    """The last line of a finished training program."""
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    return json.loads(stdout.splitlines()[-1])


def assert_equal_states(path, expected, atol):
    """Weights, moments and counters alike, and training at the same step."""
    runs = [Run.open(each) for each in (path, expected)]
    assert runs[0].saved_state().step == runs[1].saved_state().step >= 20
    found, wanted = map(weights_of_run, runs)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        size = max(np.abs(value).max(initial=0), 1e-3)
        np.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=f"{path} {name}")
        np.testing.assert_allclose(
            found[name] / size, value / size, rtol=0, atol=1e-3, err_msg=f"{path} {name}"
        )


def test_several_devices_are_those_of_jax(monkeypatch):
    assert type(open_devices("one")) is Devices
    message = "devices=all needs KERAS_BACKEND=jax. Received: tensorflow"
    assert refusal(open_devices, "all") == message
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    monkeypatch.setenv(HOSTS, "127.0.0.1:1234,127.0.0.1:1235")
    assert refusal(open_devices, "one").endswith("--devices=all is needed. Received: --devices=one")


def test_a_batch_is_padded_with_examples_without_weight():
    inputs = {"words": np.array([4, 8, 9, 2, 6]), "context": np.array([[1, 2], [3, 0], [4, 1]])}
    targets = np.array([[1, 0], [1, 1], [0, 0]])
    inputs, targets, weights = pad_batch(
        (inputs, targets), lambda targets: targets.sum(axis=1) + 1, padded_size=7, multiple=2
    )
    assert inputs["words"].tolist() == [4, 8, 9, 2, 6, 0]
    assert inputs["context"].tolist() == [[1, 2], [3, 0], [4, 1], *[[0, 0]] * 4]
    assert targets.tolist() == [[1, 0], [1, 1], *[[0, 0]] * 5]
    # the loss divides by 10, but 6 are real
    np.testing.assert_allclose(weights, [10 / 6] * 3 + [0] * 4)


JAX_TASKS = ["dialog", "reading_comprehension"]


@pytest.fixture(scope="module")
def one_on_jax(data, tmp_path_factory):
    """Runs on one device of JAX."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed: pip install -e '.[jax]'")
    path = tmp_path_factory.mktemp("jax")
    plan = plan_of(data, JAX_TASKS, [{"path": str(path), "devices": "one"}])
    assert result_of(start_process(*plan, KERAS_BACKEND="jax"))["modules"] == ["jax"]
    return path


@pytest.mark.slow
def test_two_devices_of_a_host_learn_what_one_learns_also_after_an_interruption(
    one_on_jax, data, tmp_path
):
    plan = plan_of(data, JAX_TASKS, [{"path": str(tmp_path), "devices": "all", "interrupt": 7}])
    devices = {"KERAS_BACKEND": "jax", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    found = result_of(start_process(*plan, **devices))["runs"]
    for task in JAX_TASKS:
        run = Run.open(tmp_path / task)
        assert found[str(run.path)]["devices"] == 2 and len(run.record["resumed"]) == 1
        assert_equal_states(run.path, one_on_jax / task, atol=1e-5)


@pytest.mark.slow
def test_two_hosts_learn_what_one_device_learns(one_on_jax, data, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    hosts = {"KERAS_BACKEND": "jax", HOSTS: address, "KERAS_DISTRIBUTION_NUM_PROCESSES": "2"}
    plan = plan_of(data, JAX_TASKS, [{"path": str(tmp_path), "devices": "all"}])
    processes = [
        start_process(*plan, **hosts, KERAS_DISTRIBUTION_PROCESS_ID=str(number))
        for number in range(2)
    ]
    try:
        for found in map(result_of, processes):
            assert found["modules"] == ["jax"] and {
                run["devices"] for run in found["runs"].values()
            } == {2}
    finally:
        for process in processes:
            process.kill()
    for task in JAX_TASKS:
        runs = [Run.open(path / task) for path in (tmp_path, one_on_jax)]
        assert_equal_states(runs[0].path, runs[1].path, atol=1e-5)
        asked = [example["instance"] for example in runs[0].examples()]
        assert len(asked) > 0
        # on TensorFlow, as for export.py
        assert_same(*(TASKS[task].predictor(run).predict(asked) for run in runs))


# === engine/parallel.py: order, and that batches are computed at once ===


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
    monkeypatch.setattr(parallel.machine, "available_cpus", lambda: 4)
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
