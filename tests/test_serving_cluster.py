"""serving/cluster.py: Ray Serve on a cluster of two nodes of this machine, and a replica that is
killed under load.
"""

import asyncio
import concurrent.futures
import functools
import json
import os
import socket
import time
import types
from unittest.mock import AsyncMock

import pytest
from echo import Echo, ask, served
from helpers import ROOT, until

from colloquy.serving.limits import Limits

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


class SlowEcho(Echo):
    """Takes 20 ms a batch, and says which process answered."""

    def answers(self, instances):
        time.sleep(0.02)
        return [{**answer, "process": os.getpid()} for answer in super().answers(instances)]


def make_model():
    """Called in each replica."""
    return served(
        SlowEcho(), version="3", task="echo", examples=[{"title": "", "instance": {"text": "a"}}]
    )


class Service:
    """The application on two nodes."""

    def __init__(self, ray, port):
        self.ray, self.port = ray, port

    def ask(self, path, body=None):
        """Status and JSON of an answer."""
        status, _, answer = ask(self.port, path, body)
        return status, answer

    def replicas(self):
        """Handles of the replicas of the model."""
        names = [each["name"] for each in self.ray.util.list_named_actors(all_namespaces=True)]
        names = [name for name in names if name.startswith("SERVE_REPLICA::colloquy#echo#")]
        return {name: self.ray.get_actor(name, namespace="serve") for name in names}


@pytest.fixture(scope="module")
def cluster():
    return pytest.importorskip(
        "serving.cluster", reason="the extra `ray` is not installed", exc_type=ImportError
    )


@pytest.fixture(scope="module")
def service(cluster):
    import ray
    from ray.cluster_utils import Cluster

    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 10**8}
    )
    nodes.add_node(num_cpus=2, object_store_memory=10**8)
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests")))}}
    ray.init(address=nodes.address, log_to_driver=False, runtime_env=environment)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    limits = Limits(timeout_seconds=20, instances=5, max_batch=8, max_queue=64)
    app = cluster.application({"echo": make_model}, {"echo": (2, 2)}, limits, doors=2)
    try:
        # two nodes of one machine cannot share a port
        cluster.start(app, "127.0.0.1", port, every_node=False)
        yield Service(ray, port)
    finally:
        ray.serve.shutdown()
        ray.shutdown()
        nodes.shutdown()


@pytest.mark.slow
def test_the_application_is_the_same_on_a_cluster(service):
    assert len(service.ray.nodes()) == 2
    status, answer = service.ask(
        "/v1/models/echo:predict", {"instances": [{"text": "a"}, {"text": "日本"}]}
    )
    assert (status, [each["text"] for each in answer["predictions"]]) == (200, ["a", "日本"])
    assert service.ask("/v1/models")[1]["data"][0]["task"] == "echo"
    assert service.ask("/v1/models/echo")[1]["model_version_status"][0]["version"] == "3"
    assert service.ask("/healthz") == (200, {"status": "ok", "models": ["echo"]})
    assert (
        service.ask("/v1/models/echo:explain", {"instances": [{"text": "b"}]})[1]["explanations"][
            0
        ]["text"]
        == "b"
    )
    status, answer = service.ask("/v1/models/echo:predict", {"instances": [{}]})
    assert (status, answer) == (400, {"error": "instance 0: Instance: the field text is missing"})
    assert service.ask("/v1/models/echo:predict", {"instances": [{"text": "a"}] * 6})[0] == 413
    assert service.ask("/v1/models/other:predict", {"instances": [{}]})[0] == 404
    tensor = {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["c"]}
    outputs = service.ask("/v2/models/echo/infer", {"inputs": [tensor]})[1]["outputs"]
    assert (
        outputs[1]["data"] == ["c"]
        and service.ask("/v2/models/echo")[1]["inputs"][0]["name"] == "text"
    )
    assert service.ask("/openapi.json")[1]["paths"]["/v1/models/echo:predict"]["post"][
        "requestBody"
    ]["content"]


@pytest.mark.slow
def test_a_replica_replies_word_by_word(service):
    def chat(text, **more):
        asked = {"model": "echo", "messages": [{"role": "user", "content": text}]}
        return service.ask("/v1/chat/completions", {**asked, **more})

    assert chat("one two")[1]["choices"][0]["message"]["content"] == "one two"
    *events, done, _ = chat("one two", stream=True)[1].split("\n\n")
    deltas = [
        json.loads(event.removeprefix("data: "))["choices"][0]["delta"].get("content")
        for event in events
    ]
    assert (deltas, done) == (["", "one", " two", None], "data: [DONE]")
    assert chat("boom", stream=True)[0] == 400 and "no boom" in chat("one boom", stream=True)[1]


@pytest.mark.slow
def test_every_application_tells_the_counts_of_all_replicas(service):
    def count(name, verb):
        lines = service.ask("/metrics")[1].splitlines()
        return sum(
            float(line.split()[1])
            for line in lines
            if line.startswith(f"colloquy_{name}{{") and verb in line
        )

    def counts():
        names = (
            ("requests_total", "predict"),
            ("batch_instances_sum", "predict"),
            ("model_seconds_count", "explain"),
        )
        return [count(*name) for name in names]

    time.sleep(2)  # for what other tests did
    requests, instances, explained = counts()
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        bodies = [("predict", {"instances": [{"text": "a"}, {"text": "b"}]})] * 40
        bodies += [("explain", {"instances": [{"text": "a"}]})] * 10
        list(threads.map(lambda each: service.ask(f"/v1/models/echo:{each[0]}", each[1]), bodies))
    expected = [requests + 40, instances + 80, explained + 10]
    until(lambda: counts() == expected)
    assert all(counts() == expected for _ in range(8))  # whichever of the two answers


@pytest.mark.slow
def test_a_replica_that_is_killed_under_load_loses_no_request(service):
    """Once both replicas have answered, one is killed; each request is asked again where its status
    is 503.
    """
    processes = set()

    def ask(number):
        for _ in range(20):
            status, answer = service.ask(
                "/v1/models/echo:predict", {"instances": [{"text": str(number)}]}
            )
            if status == 200:
                [found] = answer["predictions"]
                processes.add(found["process"])
                return found["text"]
            assert status == 503, (status, answer)
            time.sleep(0.2)
        raise AssertionError("no answer")

    def kill():
        until(lambda: len(processes) == 2)
        name, actor = next(iter(service.replicas().items()))
        service.ray.kill(actor)
        return name

    with concurrent.futures.ThreadPoolExecutor(9) as threads:
        killing = threads.submit(kill)
        found = list(threads.map(ask, range(400)))
        killed = killing.result()
    assert found == [str(number) for number in range(400)]
    assert killed not in service.replicas()
    until(lambda: len(service.replicas()) == 2, 60)


def test_a_config_file_says_what_flags_say(cluster, monkeypatch):
    found = {}
    monkeypatch.setattr(
        cluster, "application", lambda *args, **more: found.update(args=args, **more)
    )
    cluster.from_config(
        {"models": {"a": {"path": "/a", "index": "/i", "max_replicas": 3}, "b": {"path": "/b"}}}
    )
    loads, replicas = found["args"]
    assert replicas == {"a": (1, 3), "b": (1, 1)} and found["doors"] == 1
    assert isinstance(loads["a"], functools.partial) and loads["a"].args == ("a", "/a", "/i")
    assert loads["b"].args == ("b", "/b", None)


def test_notes_wait_for_counts_that_are_lost(cluster):
    lost = cluster.RayActorError()
    counts = types.SimpleNamespace(
        add=types.SimpleNamespace(remote=AsyncMock(side_effect=[lost, lost, None]))
    )
    counts.text = types.SimpleNamespace(remote=AsyncMock(return_value="all"))

    async def main():
        notes = cluster.Notes(counts)
        for number in range(3):
            notes.answered(number)
            assert await notes.text({}) == "all"

    asyncio.run(main())
    assert counts.add.remote.await_args.args == ([("answered", (number,)) for number in range(3)],)


def test_notes_that_come_while_others_are_sent_follow_them(cluster):
    sent = []

    async def add(notes_sent):
        sent.extend(notes_sent)
        if len(sent) == 1:
            notes.answered(1)

    async def main():
        notes.answered(0)
        async with asyncio.timeout(5):
            while len(sent) < 2:
                await asyncio.sleep(0.01)

    notes = cluster.Notes(types.SimpleNamespace(add=types.SimpleNamespace(remote=add)))
    asyncio.run(main())
    assert sent == [("answered", (0,)), ("answered", (1,))]
