"""devices.py: several devices learn what one learns, on virtual CPU devices and on processes in place of hosts."""

import contextlib
import importlib.util
import json
import signal
import socket

import keras
import numpy as np
import pytest
from helpers import run_process, start_process

from base.files import UserError
from engine.devices import HOSTS, OneDevice, filled_up, open_devices, weighted_parts
from engine.run import Run

PREPARED = {
    "selection": "prepared",
    "dialog": "prepared_dialog",
    "generation": "prepared_generation",
    "reading_comprehension": "prepared_reading",
}
SETTINGS = {
    "selection": {"embedding_dropout": "0", "loss": "pointwise"},  # a softmax over candidates lets a bias be anything
    "generation": {"dropout": "0"},
}
EPOCHS = {"selection": 2.0, "dialog": 3.0, "generation": 2.25, "reading_comprehension": 7.0}  # 20 or 21 steps
RATE = 1e-4  # Adam moves a weight by about this per step, also where its gradient is little more than rounding


@pytest.fixture(scope="module")
def data(request):
    """`{task: directory of its prepared dataset}`."""
    return {task: str(request.getfixturevalue(fixture)) for task, fixture in PREPARED.items()}


def plan_of(data, tasks, runs, **more):
    datasets = {task: data[task] for task in tasks}
    plan = {"cpus": 1, "data": datasets, "settings": SETTINGS, "epochs": EPOCHS, "learning_rate": RATE}
    return "tests/training_program.py", json.dumps({**plan, "runs": runs, **more})


def result_of(process):
    """What a finished training program says."""
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def state_of(path):
    with np.load(path / "last.npz") as state:
        return {name: state[name] for name in state.files}


def assert_equal_states(path, expected, atol):
    """Weights, moments and counters alike, and training at the same place."""
    found, state = state_of(path), state_of(expected)
    positions = [json.loads(str(values.pop("position"))) for values in (found, state)]
    assert positions[0]["step"] == positions[1]["step"] >= 20
    assert found.keys() == state.keys()
    for name, value in state.items():
        size = max(np.abs(value).max(initial=0), 1e-3)
        np.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=f"{path} {name}")
        np.testing.assert_allclose(found[name] / size, value / size, rtol=0, atol=1e-3, err_msg=f"{path} {name}")


# === TensorFlow: devices of one host ===


@pytest.mark.parametrize(
    "tasks",
    [["dialog"], pytest.param(["selection", "generation", "reading_comprehension"], marks=pytest.mark.slow)],
    ids=len,
)
def test_two_devices_learn_what_one_learns_also_after_an_interruption(data, tmp_path, tasks):
    one, two = tmp_path / "one", tmp_path / "two"
    runs = [{"path": str(one), "devices": "one"}, {"path": str(two), "devices": "all", "interrupt": 7}]
    found = result_of(run_process(*plan_of(data, tasks, runs, cpus=2)))["runs"]
    for task in tasks:
        assert [found[str(path / task)]["devices"] for path in (one, two)] == [1, 2]
        assert [
            len(json.loads((path / task / "config.json").read_text()).get("resumed", [])) for path in (one, two)
        ] == [0, 1]
        assert_equal_states(two / task, one / task, atol=1e-6)


def test_parts_of_a_batch_weigh_what_they_hold():
    def collate(batch):
        rows, limit = batch
        return {"rows": rows}, np.where(rows < limit, rows, 0)

    def counts(targets):
        return (targets > 0).sum(axis=1)

    rows = np.array([[3, 5, 99], [2, 99, 99], [7, 99, 99]])
    parts = list(weighted_parts((rows, 11), 2, collate, counts))
    assert [inputs["rows"].tolist() for inputs, _, _ in parts] == [[[3, 5, 99], [2, 99, 99]], [[7, 99, 99]]]
    assert [weights.tolist() for _, _, weights in parts] == [[1.5, 1.5], [0.5]]  # 3 words of 4, and 1


def test_of_fewer_examples_than_devices_some_devices_weigh_nothing():
    parts = list(weighted_parts(np.array([5, 6]), 3, lambda rows: (rows, rows), np.ones_like))
    assert [(rows.tolist(), weights.tolist()) for rows, _, weights in parts] == [
        ([5], [1.5]),
        ([6], [1.5]),
        ([5], [0.0]),
    ]


def test_one_device_is_what_it_was(monkeypatch):
    assert type(open_devices("one")) is type(open_devices("all")) is OneDevice  # a CPU is one device
    import tensorflow as tf

    devices = [tf.config.LogicalDevice(f"/device:CPU:{number}", "CPU") for number in range(2)]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices if kind == "CPU" else [])
    with pytest.raises(
        UserError, match=r"--jit=on with TensorFlow is for one device. Received: --devices=all, which are 2$"
    ):
        open_devices("all", jit="on")
    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    with pytest.raises(UserError, match=r"--devices=all needs KERAS_BACKEND=tensorflow or jax. Received: torch$"):
        open_devices("all")


# === JAX: devices of several hosts ===


def test_a_batch_is_filled_up_with_examples_that_weigh_nothing():
    inputs = {"words": np.array([4, 8, 9, 2, 6]), "context": np.array([[1, 2], [3, 0], [4, 1]])}
    targets = np.array([[1, 0], [1, 1], [0, 0]])
    inputs, targets, weights = filled_up(inputs, targets, lambda targets: targets.sum(axis=1) + 1, whole=7, multiple=2)
    assert inputs["words"].tolist() == [4, 8, 9, 2, 6, 0]
    assert inputs["context"].tolist() == [[1, 2], [3, 0], [4, 1], *[[0, 0]] * 4]
    assert targets.tolist() == [[1, 0], [1, 1], *[[0, 0]] * 5]
    np.testing.assert_allclose(weights, [10 / 6] * 3 + [0] * 4)  # the loss divides by 10, but 6 are real


def test_hosts_need_all_devices(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    monkeypatch.setenv(HOSTS, "127.0.0.1:1234,127.0.0.1:1235")
    with pytest.raises(UserError, match=r"names several hosts, which needs --devices=all. Received: --devices=one$"):
        open_devices("one")


@contextlib.contextmanager
def on_two_hosts(data, tasks, runs):
    """The training program as two processes that share each batch, with a run each; none is left at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    hosts = {"KERAS_BACKEND": "jax", HOSTS: address, "KERAS_DISTRIBUTION_NUM_PROCESSES": "2"}
    processes = [
        start_process(*plan_of(data, tasks, [run]), **hosts, KERAS_DISTRIBUTION_PROCESS_ID=str(number))
        for number, run in enumerate(runs)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def results_of(processes):
    for process in processes:
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
        yield json.loads(stdout.splitlines()[-1])


JAX_TASKS = ["dialog", "reading_comprehension"]


@pytest.fixture(scope="module")
def one_on_jax(data, tmp_path_factory):
    """Runs on one device of JAX."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed: pip install -r requirements-jax.txt")
    path = tmp_path_factory.mktemp("jax")
    found = result_of(
        run_process(*plan_of(data, JAX_TASKS, [{"path": str(path), "devices": "one"}]), KERAS_BACKEND="jax")
    )
    assert found["modules"] == ["jax"]
    return path


@pytest.mark.slow
def test_two_hosts_learn_what_one_device_learns(one_on_jax, data, tmp_path):
    with on_two_hosts(data, JAX_TASKS, [{"path": str(tmp_path), "devices": "all"}] * 2) as processes:
        for found in results_of(processes):
            assert found["modules"] == ["jax"] and {run["devices"] for run in found["runs"].values()} == {2}
    for task in JAX_TASKS:
        assert_equal_states(tmp_path / task, one_on_jax / task, atol=1e-5)
        Run.open(tmp_path / task).load_model()  # in TensorFlow, as for export.py


@pytest.mark.slow
def test_a_host_is_killed_and_training_goes_on_from_the_last_save(one_on_jax, data, tmp_path):
    run = {"path": str(tmp_path), "devices": "all"}
    with on_two_hosts(data, ["dialog"], [run, {**run, "kill": 16}]) as (first, killed):
        assert killed.wait() == -signal.SIGKILL
        assert first.wait() != 0  # it misses the other one's part of a sum
    assert Run.open(tmp_path / "dialog").history()[-1]["step"] == 14
    with on_two_hosts(data, ["dialog"], [{**run, "resume": True}] * 2) as processes:
        list(results_of(processes))
    assert_equal_states(tmp_path / "dialog", one_on_jax / "dialog", atol=1e-5)
