"""serving/: REST, limits and micro-batching, with models that answer at once; real ones in test_serving_models.py."""

import asyncio
import json
import re
import threading
import time

import pytest
from fastapi.testclient import TestClient

from base.files import UserError
from serving.app import app_of, create_app
from serving.batching import Batcher, Overloaded, Unavailable
from serving.limits import Limits

LIMITS = Limits(body_bytes=3000, instances=5, items=7, words=11, characters=130, depth=3, timeout_seconds=0.5)


class Echo:
    """Answers with the length of `text`; `wait` holds it up until `event` is set."""

    version, name = "2", "echo"

    def __init__(self):
        self.event, self.calls = threading.Event(), []

    def valid(self, instance, where):
        if instance.get("text") == 0:
            raise UserError(f"{where}: `text` is no text")
        return instance

    def answers(self, instances):
        self.calls.append(len(instances))
        if any(instance.get("wait") for instance in instances):
            self.event.wait(5)
        if any("text" not in instance for instance in instances):
            raise UserError("echo needs `text`")
        return [{"length": len(instance["text"]), "text": instance["text"]} for instance in instances]

    def explain(self, instance):
        letters = list(instance["text"])
        return {"attention": [{"title": "letters", "rows": letters, "columns": ["x"], "weights": [[1.0]]}]}

    def metadata(self):
        return {"name": self.name, "task": "echo"}


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def client(echo):
    with TestClient(create_app({"echo": echo}, LIMITS, milliseconds=1.0)) as client:
        yield client


def predict(client, **body):
    return client.post("/v1/models/echo:predict", json=body)


def test_instances_and_columns_are_answered_in_order(client):
    answer = predict(client, instances=[{"text": "ab"}, {"text": ""}, {"text": "日本語"}])
    assert answer.json() == {
        "predictions": [{"length": 2, "text": "ab"}, {"length": 0, "text": ""}, {"length": 3, "text": "日本語"}]
    }
    assert predict(client, inputs={"text": ["a", "bc"]}).json() == {"outputs": {"length": [1, 2], "text": ["a", "bc"]}}


def test_what_a_model_does_not_take_is_refused_before_it_waits(client, echo):
    answer = predict(client, instances=[{"text": 0}])
    assert (answer.status_code, answer.json()) == (400, {"error": "instance 0: `text` is no text"})
    assert echo.calls == []


def test_versions_metadata_health_and_explanations(client):
    state = client.get("/v1/models/echo").json()["model_version_status"][0]
    assert (state["version"], state["state"]) == ("2", "AVAILABLE")
    path = "/v1/models/echo/versions/2:predict"
    assert client.post(path, json={"instances": [{"text": "a"}]}).json()["predictions"][0]["length"] == 1
    assert client.get("/v1/models/echo/metadata").json()["metadata"] == {"name": "echo", "task": "echo"}
    assert client.get("/v1/models").json() == {"models": [{"name": "echo", "task": "echo"}]}
    assert client.get("/healthz").json() == {"status": "ok", "models": ["echo"]}
    found = client.post("/v1/models/echo:explain", json={"instances": [{"text": "hi"}]}).json()
    assert found["explanations"][0]["attention"][0]["rows"] == ["h", "i"]
    assert "/v1/models/{name}:predict" in client.get("/openapi.json").json()["paths"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "must be JSON"),
        (b"\xff{}", 400, "must be JSON"),
        (b"[" * 2900, 400, "must be JSON|nested"),
        (b'{"instances": [{"text": NaN}]}', 400, "NaN is no JSON number"),
        (b"[]", 400, "must be a JSON object. Received: list"),
        (b"{}", 400, "one of `instances` and `inputs`"),
        (b'{"instances": [], "inputs": {}}', 400, "one of `instances` and `inputs`"),
        (b'{"instances": []}', 400, "at least one object"),
        (b'{"instances": [3]}', 400, "must be an object. Received: int"),
        (b'{"instances": [{}]}', 400, "echo needs `text`"),
        (b'{"inputs": {"text": ["a"], "other": []}}', 400, "equally long"),
        (b'{"inputs": {"text": "a"}}', 400, "an object of lists"),
        (b'{"instances": [{"text": "\\ud800"}]}', 400, "half a surrogate pair"),
        (json.dumps({"instances": [{"text": "a"}] * 6}).encode(), 413, "5 items at most. Received: 6"),
        (json.dumps({"instances": [{"text": ["a"] * 8}]}).encode(), 413, "7 items at most. Received: 8"),
        (json.dumps({"instances": [{"text": "a " * 12}]}).encode(), 413, "11 words at most"),
        (json.dumps({"instances": [{"text": "a" * 131}]}).encode(), 413, "130 characters at most. Received: 131"),
        (json.dumps({"instances": [{"text": [[["a"]]]}]}).encode(), 400, "nested 3 deep at most"),
        (b" " * 3001, 413, "3,000 bytes at most"),
    ],
)
def test_a_request_at_fault_gets_its_status_and_one_sentence(client, body, status, message):
    answer = client.post("/v1/models/echo:predict", content=body)
    assert answer.status_code == status
    [(key, text)] = answer.json().items()
    assert key == "error" and len(text) < 400
    assert re.search(message, text), text


def test_a_body_without_a_length_is_read_no_further_than_the_limit(client):
    answer = client.post("/v1/models/echo:predict", content=iter([b"x" * 1000] * 9))
    assert (answer.status_code, answer.json()) == (413, {"error": "a body may have 3,000 bytes at most"})


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/models/other:predict", 404),
        ("POST", "/v1/models/echo/versions/3:predict", 404),
        ("GET", "/v1/models/echo/versions/3", 404),
        ("GET", "/v1/models/other", 404),
        ("GET", "/nothing", 404),
        ("DELETE", "/v1/models/echo", 405),
        ("GET", "/pages/../app.py", 404),
        ("GET", "/pages/%2e%2e%2fapp.py", 404),
        ("GET", "/pages/missing.js", 404),
    ],
)
def test_what_is_not_there(client, method, path, status):
    answer = client.request(method, path, json={"instances": [{"text": "a"}]} if method == "POST" else None)
    assert answer.status_code == status and list(answer.json()) == ["error"]


def test_an_answer_that_takes_too_long_is_given_up(client, echo):
    answer = predict(client, instances=[{"text": "a", "wait": True}])
    echo.event.set()
    assert (answer.status_code, answer.json()) == (504, {"error": "no answer within 0.5 seconds"})


def test_a_model_without_a_replica_is_said_to_be_unavailable():
    class Gone:
        """A model elsewhere, as `serving.cluster.Remote`."""

        name, version, queued = "gone", "1", 0
        started = closed = False

        async def start(self):
            self.started = True

        async def predict(self, instances):
            raise Unavailable("no replica of gone answers now: try again later")

        async def close(self):
            self.closed = True

    model = Gone()
    with TestClient(app_of({"gone": model})) as client:
        assert model.started
        answer = client.post("/v1/models/gone:predict", json={"instances": [{"text": "a"}]})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1") and model.closed
    assert answer.json() == {"error": "no replica of gone answers now: try again later"}


def test_prometheus_counts_requests_by_status(client):
    predict(client, instances=[{"text": "a"}, {"text": "b"}])
    predict(client, instances=[])
    text = client.get("/metrics").text
    assert 'colloquy_requests_total{model="echo",status="200",verb="predict"} 1.0' in text
    assert 'colloquy_requests_total{model="echo",status="400",verb="predict"} 1.0' in text
    assert 'colloquy_batch_instances_sum{model="echo"} 2.0' in text


def test_the_page_runs_only_what_comes_from_here(client):
    page = client.get("/")
    assert "script-src 'self'" in page.headers["content-security-policy"] and "Colloquy" in page.text
    assert client.get("/pages/app.js").headers["content-type"].startswith("text/javascript")
    assert "http://" not in page.text and "https://" not in page.text


# === Micro-batching ===


def test_requests_that_arrive_together_share_a_batch():
    calls = []

    def compute(instances):
        calls.append(list(instances))
        return [instance * 10 for instance in instances]

    async def main():
        batcher = Batcher(compute, milliseconds=20, max_batch=5)
        found = await asyncio.gather(batcher([1, 2]), batcher([3]), batcher([4, 5, 6]))
        await batcher.close()
        return found

    assert asyncio.run(main()) == [[10, 20], [30], [40, 50, 60]]
    assert calls == [[1, 2, 3], [4, 5, 6]]  # the third would not have fitted


def test_a_request_at_fault_fails_alone():
    def compute(instances):
        if 0 in instances:
            raise UserError("no zeros")
        return [1 / instance for instance in instances]

    async def main():
        batcher = Batcher(compute, milliseconds=20)
        found = await asyncio.gather(batcher([2]), batcher([0]), batcher([4]), return_exceptions=True)
        await batcher.close()
        return found

    half, error, quarter = asyncio.run(main())
    assert (half, quarter, str(error)) == ([0.5], [0.25], "no zeros")


def test_the_others_of_a_batch_do_not_wait_for_calls_of_their_own():
    calls = []

    def compute(instances):
        calls.append(len(instances))
        return [1 / instance for instance in instances]

    async def main():
        batcher = Batcher(compute, milliseconds=20)
        found = await asyncio.gather(*(batcher([n]) for n in (1, 2, 3, 0, *range(4, 16))), return_exceptions=True)
        await batcher.close()
        return found

    found = asyncio.run(main())
    assert isinstance(found.pop(3), ZeroDivisionError) and found[-1] == [1 / 15]
    assert calls == [16, 8, 4, 2, 2, 1, 1, 4, 8]


def test_what_came_while_a_batch_was_computed_waits_no_longer():
    """A batch of two that came 60 ms ago, while another one was computed, does not wait for 40 ms once more."""
    started = []

    def compute(instances):
        started.append(time.perf_counter())
        time.sleep(0.06)
        return instances

    async def main():
        batcher = Batcher(compute, milliseconds=40)
        first = asyncio.create_task(batcher([1]))
        while not started:
            await asyncio.sleep(0.001)
        await asyncio.gather(first, batcher([2]), batcher([3]))
        await batcher.close()

    asyncio.run(main())
    assert len(started) == 2 and started[1] - started[0] < 0.09


def test_a_full_queue_refuses_and_serves_on():
    async def main():
        batcher = Batcher(lambda instances: instances, milliseconds=20, max_queue=3)
        first = asyncio.create_task(batcher([1, 2]))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="2 instances wait already, at most 3 may"):
            await batcher([3, 4])
        assert await first == [1, 2] and await batcher([3, 4]) == [3, 4]
        await batcher.close()

    asyncio.run(main())


def test_explanations_wait_in_the_same_queue():
    event = threading.Event()

    async def main():
        batcher = Batcher(lambda instances: instances, milliseconds=1, max_queue=2)
        first = [asyncio.create_task(batcher.alone(event.wait, 5)) for _ in range(2)]
        await asyncio.sleep(0)
        assert batcher.queued == 2
        with pytest.raises(Overloaded, match="2 instances wait already"):
            await batcher.alone(event.wait, 5)
        with pytest.raises(Overloaded):
            await batcher([1])
        event.set()
        assert await asyncio.gather(*first) == [True, True] and batcher.queued == 0
        await batcher.close()

    asyncio.run(main())


def test_closing_answers_what_waits():
    async def main():
        batcher = Batcher(lambda instances: instances, milliseconds=5)
        waiting = asyncio.create_task(batcher([7]))
        await asyncio.sleep(0)
        await batcher.close()
        return await waiting

    assert asyncio.run(main()) == [7]


def test_a_client_that_goes_while_it_asks_is_counted_and_no_error(echo):
    app, sent = create_app({"echo": echo}, LIMITS, milliseconds=1.0), []
    scope = {"type": "http", "method": "POST", "path": "/v1/models/echo:predict", "query_string": b"", "headers": []}
    events = iter([{"type": "http.request", "body": b'{"inst', "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(events)

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 499 and echo.calls == []
