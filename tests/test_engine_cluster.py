"""engine/cluster.py: two nodes of this machine, started by Ray, learn what one process does."""

import contextlib
import importlib.util
import json
import os
import signal
import sys
import types

import numpy as np
import pytest
from helpers import SMALL_RUNS, refusal, start_process
from test_engine_devices import EPOCHS, RATE, assert_equal_states, plan_of, result_of

from colloquy.engine.cluster import train_on_cluster
from colloquy.engine.run import LAST, Run
from colloquy.tasks.dialog.task import DialogTask


@pytest.fixture(scope="module")
def two_nodes():
    """A Ray cluster of two nodes, on this machine, which `RAY_ADDRESS` names meanwhile."""
    pytest.importorskip(
        "ray.train", reason="the extra `ray` is not installed", exc_type=ImportError
    )
    from ray.cloudpickle import register_pickle_by_value
    from ray.cluster_utils import Cluster

    register_pickle_by_value(sys.modules[__name__])  # its names travel to processes without tests/
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 10**8}
    )
    nodes.add_node(num_cpus=1, object_store_memory=10**8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", nodes.address)
        yield
    nodes.shutdown()


class KilledOnce(DialogTask):
    """Ends the second host's process at its first batch after the run was saved, once."""

    def __init__(self, marker, saved):
        self.marker, self.saved = marker, saved

    def collate(self, *args):
        import jax

        if self.saved.exists() and jax.process_index() == 1 and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().collate(*args)


def arguments(task, data, workdir):
    """Arguments of `train_on_cluster`."""
    model, usual = SMALL_RUNS["dialog"]
    settings = {**usual, "epochs": EPOCHS["dialog"], "learning_rate": RATE}
    return {"task": task, "model": model, "data": data, "workdir": workdir, "settings": settings}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_hosts_learn_what_one_device_learns_though_one_is_killed(
    two_nodes, prepared_dialog, tmp_path
):
    pytest.importorskip("jax", reason="the extra `jax` is not installed")
    plan = plan_of(
        {"dialog": str(prepared_dialog)},
        ["dialog"],
        [{"path": str(tmp_path / "one"), "devices": "one"}],
    )
    result_of(start_process(*plan, KERAS_BACKEND="jax"))
    task = KilledOnce(tmp_path / "killed", tmp_path / "two" / LAST)
    train_on_cluster(2, **arguments(task, prepared_dialog, tmp_path / "two"))
    assert task.marker.exists()
    record = Run.open(tmp_path / "two").record
    assert record["devices"] == 2 and len(record["resumed"]) == 1
    assert_equal_states(tmp_path / "two", tmp_path / "one" / "dialog", atol=1e-5)
    finished = refusal(train_on_cluster, 2, **arguments(task, prepared_dialog, tmp_path / "two"))
    assert "two holds a trained run: give another --workdir" in finished
    too_many = refusal(train_on_cluster, 3, **arguments(task, prepared_dialog, tmp_path / "three"))
    assert too_many == "--ray_hosts=3: expected 3 hosts in the cluster. Received: 2"
    assert not list(tmp_path.glob(".ray.*"))


@pytest.mark.parametrize(
    "saves, starts, message",
    [
        ([], 1, "a host was lost before anything was saved: an error"),
        (
            [7, 7, 11, 11, 11],
            5,
            "3 times a host was lost after step 11; --resume continues: an error",
        ),
    ],
)
def test_a_host_lost_again_and_again_ends_it(monkeypatch, tmp_path, saves, starts, message):
    cluster = types.SimpleNamespace(nodes=lambda: [{"Alive": True}] * 2, cluster_resources=dict)
    monkeypatch.setattr(
        "colloquy.engine.cluster.connected", lambda *args, **how: contextlib.nullcontext(cluster)
    )
    path, resumes = tmp_path / "run", []

    def start(hosts, gpus, directory, job):
        resumes.append(job["resume"])
        assert ("model" in job["arguments"]) == (not job["resume"])
        for step in saves[len(resumes) - 1 : len(resumes)]:
            path.mkdir(exist_ok=True)
            np.savez(path / LAST, state=json.dumps({"step": step}))
        return "an error"

    monkeypatch.setattr("colloquy.engine.cluster._start", start)
    assert refusal(train_on_cluster, 2, **arguments(DialogTask(), tmp_path, path)) == message
    assert resumes == [False, *[True] * (starts - 1)]


def test_without_ray_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    training = refusal(train_on_cluster, 2, **arguments(DialogTask(), tmp_path, tmp_path / "run"))
    assert training == "--ray_hosts needs Ray: python -m pip install -e '.[ray]'"
