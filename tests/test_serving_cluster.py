"""serving/cluster.py: Ray Serve on this machine, and a replica that is killed under load."""

import concurrent.futures
import os
import signal
import socket
import time
from unittest.mock import Mock

import pytest
from echo import ask
from helpers import ROOT, refusal, until

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own
NAME = "SERVE_REPLICA::colloquy#colloquy#"


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    from colloquy.serving import cluster

    return cluster


@pytest.fixture(scope="module")
def service(cluster, trained_selection):
    """The port of the application with two replicas, and Ray."""
    import ray

    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {"env_vars": {"PYTHONPATH": paths}}
    ray.init(
        num_cpus=2,
        object_store_memory=10**8,
        log_to_driver=False,
        include_dashboard=False,
        runtime_env=environment,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = {"dam": (str(trained_selection.path), None)}
    try:
        cluster.start(cluster.application(paths, replicas=(2, 2)), "127.0.0.1", port)
        yield port, ray
    finally:
        ray.serve.shutdown()
        ray.shutdown()


BODY = {"instances": [{"turns": ["hello"], "candidates": ["a b", "c"]}]}


@pytest.mark.slow
def test_the_application_is_the_same_on_ray(service):
    port, _ = service
    status, _, answer = ask(port, "/v1/models/dam:predict", BODY)
    assert status == 200
    assert len(answer["predictions"][0]["scores"]) == 2
    assert ask(port, "/healthz")[2] == {"status": "ok", "models": ["dam"]}
    status, _, answer = ask(port, "/v1/models/dam:predict", {"instances": [{}]})
    assert status == 400
    assert "instance 0: " in answer["error"]
    assert ask(port, "/v1/models/other:predict", BODY)[0] == 404
    assert "colloquy_requests_total" in ask(port, "/metrics")[2]


@pytest.mark.slow
def test_a_replica_that_is_killed_under_load_is_replaced(service):
    """Requests that it lost may be sent again; all others are answered."""
    port, ray = service

    def replicas():
        names = [actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)]
        return [name for name in names if name.startswith(NAME)]

    def ask_until_answered(_):
        for _ in range(40):
            if ask(port, "/v1/models/dam:predict", BODY)[0] == 200:
                return True
            time.sleep(0.5)
        return False

    [killed, _] = replicas()
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        answered = threads.map(ask_until_answered, range(100))
        ray.kill(ray.get_actor(killed, namespace="serve"))
        assert all(answered)
    until(lambda: len(replicas()) == 2 and killed not in replicas(), 120)


def test_a_ray_that_does_not_answer_is_one_sentence(cluster, monkeypatch):
    monkeypatch.setattr(cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster.ray, "init", Mock(side_effect=ConnectionError("no cluster")))
    message = refusal(cluster.start, None, "127.0.0.1", 0)
    assert message == "--ray: Ray Serve did not start: no cluster"


def test_sigterm_is_a_normal_end(cluster, monkeypatch):
    ended = Mock()
    monkeypatch.setattr(cluster.serve, "shutdown", ended)
    before = signal.getsignal(signal.SIGTERM)

    def terminate():
        until(lambda: signal.getsignal(signal.SIGTERM) is not before)
        os.kill(os.getpid(), signal.SIGTERM)

    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(terminate)
            cluster.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
    ended.assert_called_once_with()


def test_a_config_file_says_what_flags_say(cluster, monkeypatch):
    calls = []
    monkeypatch.setattr(cluster, "application", lambda *arguments: calls.append(arguments))
    models = {"dam": {"path": "/runs/dam"}, "bot": {"path": "/runs/bot", "index": "/i"}}
    cluster.from_config({"models": models, "max_replicas": 3})
    paths = {"dam": ("/runs/dam", None), "bot": ("/runs/bot", "/i")}
    assert calls == [(paths, (1, 3))]
