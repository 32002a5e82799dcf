"""engine/cluster.py: two nodes of this machine, started by Ray Train, learn what one device learns; one is killed."""

import contextlib
import importlib.util
import json
import os
import signal
import sys
import types

import numpy as np
import pytest
from helpers import SMALL_RUNS, ray_nodes, run_process
from test_engine_devices import EPOCHS, RATE, assert_equal_states, plan_of, result_of

from base.files import UserError
from engine.cluster import train_on_cluster
from engine.run import LAST, Run
from tasks.dialog.task import DialogTask


@pytest.fixture(scope="module")
def two_nodes():
    """The address of a cluster."""
    pytest.importorskip("ray.train", reason="requirements-ray.txt is not installed", exc_type=ImportError)
    pytest.importorskip("jax", reason="requirements-jax.txt is not installed")
    from ray.cloudpickle import register_pickle_by_value

    register_pickle_by_value(sys.modules[__name__])  # its task travels to processes without tests/
    with ray_nodes() as address:
        yield address


class KilledOnce(DialogTask):
    """Ends the second host's process at its 17th batch, once."""

    def __init__(self, marker):
        self.marker, self.batches = marker, 0

    def collate(self, *args):
        import jax

        self.batches += 1
        if self.batches == 17 and jax.process_index() == 1 and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().collate(*args)


def job_of(task, data, workdir):
    """What `train` takes."""
    model, usual = SMALL_RUNS["dialog"]
    settings = {**usual, "epochs": EPOCHS["dialog"], "learning_rate": RATE}
    return {"task": task, "model": model, "data": data, "workdir": workdir, "settings": settings}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_two_hosts_learn_what_one_device_learns_though_one_is_killed(two_nodes, prepared_dialog, tmp_path):
    plan = plan_of({"dialog": str(prepared_dialog)}, ["dialog"], [{"path": str(tmp_path / "one"), "devices": "one"}])
    result_of(run_process(*plan, KERAS_BACKEND="jax"))
    task = KilledOnce(tmp_path / "killed")
    train_on_cluster(2, **job_of(task, prepared_dialog, tmp_path / "two"))
    assert task.marker.exists()
    config = json.loads((tmp_path / "two" / "config.json").read_text())
    assert config["devices"] == 2 and len(config["resumed"]) == 1
    assert_equal_states(tmp_path / "two", tmp_path / "one" / "dialog", atol=1e-5)
    with pytest.raises(UserError, match=r"^/.*two is in use: give another --workdir, or --resume to go on$"):
        train_on_cluster(2, **job_of(task, prepared_dialog, tmp_path / "two"))
    with pytest.raises(UserError, match=r"^--ray_hosts=3: expected 3 hosts in the cluster. Received: 2$"):
        train_on_cluster(3, **job_of(task, prepared_dialog, tmp_path / "three"))
    assert not list(tmp_path.glob(".ray.*"))


@pytest.mark.parametrize(
    "saves, starts, message",
    [
        ([], 1, "a host was lost before anything was saved: an error"),
        ([7, 7, 11, 11, 11], 5, "3 times a host was lost after step 11; --resume goes on: an error"),
    ],
)
def test_a_host_lost_again_and_again_ends_it(monkeypatch, tmp_path, saves, starts, message):
    cluster = types.SimpleNamespace(nodes=lambda: [{"Alive": True}] * 2, cluster_resources=dict)
    monkeypatch.setattr("engine.cluster.connected", lambda *args, **how: contextlib.nullcontext(cluster))
    run, resumes = Run(tmp_path / "run", {}), []

    def start(hosts, gpus, directory, job):
        resumes.append(job["resume"])
        for step in saves[len(resumes) - 1 : len(resumes)]:
            run.path.mkdir(exist_ok=True)
            np.savez(run.path / LAST, position=json.dumps({"step": step}))
        return "an error"

    monkeypatch.setattr("engine.cluster._start", start)
    with pytest.raises(UserError, match=f"^{message}$"):
        train_on_cluster(2, **job_of(DialogTask(), tmp_path, run.path))
    assert resumes == [False, *[True] * (starts - 1)]


def test_without_ray_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"^--ray_hosts needs Ray: python -m pip install -r requirements-ray.txt$"):
        train_on_cluster(2, **job_of(DialogTask(), tmp_path, tmp_path / "run"))
