"""The benchmarks of the server: loads and their requests."""

import json
import random

import pytest
from echo import Running
from helpers import import_script

from colloquy.serving.limits import Limits

benchmark = import_script("benchmarks.serving")


@pytest.fixture(scope="module")
def client():
    running = Running(Limits(timeout_seconds=60.0), "m")
    with benchmark.connect(running.port) as client:
        yield client
    running.end()


def body(text="hello"):
    return json.dumps({"instances": [{"text": text}]}).encode()


def test_every_request_of_a_load_is_counted(client):
    status, answer = benchmark.ask(client, body("hello"))
    assert status == "200"
    assert json.loads(answer) == {"predictions": [{"length": 5, "text": "hello"}]}
    assert benchmark.closed_loop(client, [body()], 16, 0.3, random.Random(1)) > 0
    refused = b"{}"
    assert benchmark.closed_loop(client, [refused], 16, 0.3, random.Random(1)) == 0

    usages = iter([(123, 7.0), *[(5, 9.5)] * 9])
    options = {"rng": random.Random(7), "usage": lambda: next(usages)}
    bodies = [body(), body("x")]
    [row], errors = benchmark.open_loop(client, bodies, rate=250.0, seconds=0.7, **options)
    assert 101 < row["requests"] < 250
    assert 0 < row["p50_ms"] <= row["p99_ms"]
    assert (row["minute"], row["memory_MB"], row["cpu_seconds"], row["errors"]) == (1, 5, 2.5, 0)
    assert not errors

    [row], errors = benchmark.open_loop(client, [refused], rate=20.0, seconds=0.5, **options)
    assert row["requests"] == 0 and row["errors"] > 0
    assert set(errors) == {"400"}


def test_requests_are_like_the_examples_in_other_sizes():
    rng = random.Random(3)
    instance = {"turns": ["a", "b", "c"], "passage": "one two three four", "question": "who?"}
    varied = [benchmark.vary_example([{"instance": instance}], rng) for _ in range(60)]
    assert {tuple(one["turns"]) for one in varied} == {("a", "b", "c"), ("b", "c"), ("c",)}
    passages = {one["passage"] for one in varied}
    assert passages == {"one two", "one two three", "one two three four"}
    assert {one["question"] for one in varied} == {"who?"}
