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
    row = benchmark.load(client, [body(), body("x")], 16, 0.3, random.Random(1))
    assert row["requests"] > 16 and row["errors"] == 0
    assert 0 < row["p50_ms"] <= row["p99_ms"]
    refused = benchmark.load(client, [b"{}"], 16, 0.3, random.Random(1))
    assert refused["requests"] == 0 and refused["errors"] > 0


def test_requests_are_like_the_examples_in_other_sizes():
    rng = random.Random(3)
    instance = {"turns": ["a", "b", "c"], "passage": "one two three four", "question": "who?"}
    varied = [benchmark.vary_example([{"instance": instance}], rng) for _ in range(60)]
    assert {tuple(one["turns"]) for one in varied} == {("a", "b", "c"), ("b", "c"), ("c",)}
    passages = {one["passage"] for one in varied}
    assert passages == {"one two", "one two three", "one two three four"}
    assert {one["question"] for one in varied} == {"who?"}
