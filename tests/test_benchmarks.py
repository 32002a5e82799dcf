"""The benchmarks of the server: loads and their requests."""

import random

import pytest
from echo import Running
from helpers import import_script

from colloquy.serving.limits import Limits

benchmark = import_script("benchmarks.serving")
PATH = "/v1/models/m:predict"


@pytest.fixture(scope="module")
def client():
    running = Running(Limits(timeout_seconds=60.0), "m")
    with benchmark.connect(running.port) as client:
        yield client
    running.end()


def test_every_request_of_a_load_is_counted(client):
    bodies = [benchmark.make_body({"text": text}) for text in ("hello", "x")]
    latencies = benchmark.ask_together(client, PATH, bodies, 16, 0.3)
    assert set(latencies) == {"200"} and len(latencies["200"]) > 16
    times = benchmark.percentiles(latencies["200"])
    assert 0 < times["p50_ms"] <= times["p99_ms"]
    assert set(benchmark.ask_together(client, PATH, [b"{}"], 16, 0.3)) == {"400"}


def test_requests_are_like_the_examples_in_other_sizes():
    rng = random.Random(3)
    varied = [benchmark.vary_size({"turns": ["a", "b", "c"], "k": 1}, rng) for _ in range(60)]
    assert {tuple(instance["turns"]) for instance in varied} == {
        ("a", "b", "c"),
        ("b", "c"),
        ("c",),
    }
