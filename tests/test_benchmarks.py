"""The benchmark of the server: loads and their requests."""

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
    assert (status, json.loads(answer)) == (
        "200",
        {"predictions": [{"length": 5, "text": "hello"}]},
    )
    rates = [
        benchmark.closed_loop(client, [each], 16, 0.3, random.Random(1)) for each in (body(), b"{}")
    ]
    assert rates[0] > 0 == rates[1]  # the second one is refused
    usage = iter([(123, 7.0), *[(5, 9.5)] * 9]).__next__
    [row], errors = benchmark.open_loop(
        client, [body(), body("x")], 250.0, 0.7, random.Random(7), usage
    )
    assert 101 < row["requests"] < 250 and 0 < row["p50_ms"] <= row["p99_ms"] and not errors
    assert [row[name] for name in ("minute", "memory_MB", "cpu_seconds", "errors")] == [
        1,
        5,
        2.5,
        0,
    ]
    [refused], errors = benchmark.open_loop(client, [b"{}"], 20.0, 0.5, random.Random(7), usage)
    assert refused["requests"] == 0 and refused["errors"] > 0 and set(errors) == {"400"}


def test_requests_are_like_the_examples_in_other_sizes():
    rng = random.Random(3)
    examples = [
        {
            "instance": {
                "turns": ["a", "b", "c"],
                "passage": "one two three four",
                "question": "who?",
            }
        }
    ]
    found = [benchmark.vary_example(examples, rng) for _ in range(60)]
    assert {tuple(each["turns"]) for each in found} == {("a", "b", "c"), ("b", "c"), ("c",)}
    assert {each["passage"] for each in found} == {"one two", "one two three", "one two three four"}
    assert {each["question"] for each in found} == {"who?"}
