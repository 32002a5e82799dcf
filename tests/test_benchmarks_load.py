"""benchmarks/load.py: what clients, also hostile ones, get from a server that answers at once."""

import asyncio
import collections
import json
import random
import threading
import time

import pytest
import uvicorn

from base.files import UserError
from benchmarks.load import KINDS, Client, Hostile, Minute, closed_loop, open_loop, varied
from serving.app import create_app
from serving.limits import Limits


class Echo:
    name, version = "m", "1"

    def valid(self, instance, where):
        if "text" not in instance:
            raise UserError("expected `text`")
        return instance

    def answers(self, instances):
        return [{"length": len(instance["text"])} for instance in instances]

    def metadata(self):
        return {"name": "m"}


@pytest.fixture(scope="module")
def client():
    limits = Limits(body_bytes=100_000, depth=3, timeout_seconds=1.0)
    config = uvicorn.Config(create_app({"m": Echo()}, limits, milliseconds=0.0), port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Client(server.servers[0].sockets[0].getsockname()[1], "/v1/models/m:predict")
    server.should_exit = True
    thread.join(10)


def body(text="hello"):
    return json.dumps({"instances": [{"text": text}]}).encode()


def test_every_request_of_a_load_is_counted(client):
    async def main():
        status, answer = await client.post(body("hello"))
        capacity = await closed_loop(client, [body()], clients=3, seconds=0.3, rng=random.Random(1), hostile=0.2)
        usage = iter([(123_000_000, 7.0), *[(5, 9.0)] * 9]).__next__
        loaded = await open_loop(client, [body(), body("x")], 50.0, 1.0, random.Random(7), usage)
        wrong = await open_loop(client, [b"{}"], 20.0, 0.5, random.Random(7), usage)
        client.close()
        return status, json.loads(answer), capacity, loaded, wrong

    status, answer, capacity, ([minute], outcomes), ([refused], _) = asyncio.run(main())
    assert (status, answer) == (200, {"predictions": [{"length": 5}]}) and capacity > 50
    row = minute.row(1)
    assert 25 < row["requests"] < 85 and (row["errors"], row["memory_MB"], row["minute"]) == (0, 123, 1)
    assert 0 < row["p50_ms"] <= row["p99_ms"] < 1000 and not outcomes
    assert refused.row(1)["requests"] == 0 and set(refused.errors) == {"400"}


def test_a_minute_says_what_half_and_nearly_all_took():
    minute = Minute(milliseconds=[float(number) for number in range(200, 0, -1)])
    assert (minute.row(4)["p50_ms"], minute.row(4)["p99_ms"]) == (101.0, 199.0)
    minute.cpu = [7.0, 8.0, 9.5]
    assert minute.row(4)["cpu_seconds"] == 2.5


def test_hostile_clients_get_what_they_deserve(client):
    async def main():
        outcomes = collections.Counter()
        attackers = Hostile(client, body("y" * 500), outcomes)
        await asyncio.gather(*(attackers.attack(kind) for kind in KINDS))
        status, _ = await client.post(body())
        client.close()
        return outcomes, status

    outcomes, status = asyncio.run(main())
    assert outcomes == {
        "huge: 413": 1,
        "malformed: 400": 1,
        "wrong: 400": 1,
        "slow: 408": 1,
        "disconnecting: left without the answer": 1,
    }
    assert status == 200


def test_requests_are_like_the_examples_in_other_sizes():
    rng = random.Random(3)
    examples = [{"instance": {"turns": ["a", "b", "c"], "passage": "one two three four", "question": "who?"}}]
    found = [varied(examples, rng) for _ in range(60)]
    assert {tuple(each["turns"]) for each in found} == {("a", "b", "c"), ("b", "c"), ("c",)}
    assert {each["passage"] for each in found} == {"one two", "one two three", "one two three four"}
    assert {each["question"] for each in found} == {"who?"}
