"""serving/: REST, limits and micro-batching, with models that answer at once; real ones in test_serving_models.py."""

import asyncio
import json
import re
import threading
import time
import types
from unittest.mock import AsyncMock

import pytest
from fastapi.testclient import TestClient

from base.config import Config
from base.files import UserError
from engine.predictor import Predictor
from serving.app import app_of, create_app
from serving.batching import Batched
from serving.limits import Limits, RequestError
from serving.models import Served

LIMITS = Limits(body_bytes=3000, instances=5, items=7, words=11, characters=130, depth=3, timeout_seconds=0.5)


class Letter(Config):
    text: str


class Echo(Predictor):
    """Answers with the length of `text`; `wait` holds it up until `event` is set."""

    class Instance(Config):
        text: str | list[str]
        wait: bool = False
        inside: list[Letter] = []

    class Answer(Config):
        length: int
        text: str
        letters: list[Letter] = []

    def __init__(self):
        self.event, self.calls = threading.Event(), []

    def answer(self, instances):
        self.calls.append(len(instances))
        if any(instance.wait for instance in instances):
            self.event.wait(5)
        return [self.Answer(length=len(instance.text), text=instance.text) for instance in instances]

    def answer_with_attention(self, instance, details):
        letters = {"title": "letters", "rows": list(instance.text), "columns": ["x"], "weights": [[1.0]]}
        return self.answer([instance])[0], [letters]


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def app(echo):
    served = Served("echo", "2", echo, lambda: {"task": "echo"}, [])
    return create_app({"echo": served}, LIMITS, milliseconds=1.0)


@pytest.fixture
def client(app):
    with TestClient(app) as client:
        yield client


def predict(client, **body):
    return client.post("/v1/models/echo:predict", json=body)


def test_instances_and_columns_are_answered_in_order(client):
    texts = {"ab": 2, "": 0, "日本語": 3}
    expected = [{"length": length, "text": text} for text, length in texts.items()]
    assert predict(client, instances=[{"text": text} for text in texts]).json() == {"predictions": expected}
    assert predict(client, inputs={"text": ["a", "bc"]}).json() == {"outputs": {"length": [1, 2], "text": ["a", "bc"]}}


def test_versions_metadata_health_and_explanations(client):
    state = client.get("/v1/models/echo").json()["model_version_status"][0]
    assert (state["version"], state["state"]) == ("2", "AVAILABLE")
    path = "/v1/models/echo/versions/2:predict"
    assert client.post(path, json={"instances": [{"text": "a"}]}).json()["predictions"][0]["length"] == 1
    metadata = client.get("/v1/models/echo/metadata").json()["metadata"]
    assert (metadata["name"], metadata["version"], metadata["task"]) == ("echo", "2", "echo")
    assert metadata["instance"]["required"] == ["text"] and "length" in metadata["answer"]["properties"]
    assert client.get("/v1/models").json() == {"models": [metadata]}
    assert client.get("/healthz").json() == {"status": "ok", "models": ["echo"]}
    [found] = client.post("/v1/models/echo:explain", json={"instances": [{"text": "hi"}]}).json()["explanations"]
    assert found["length"] == 2 and found["attention"][0]["rows"] == ["h", "i"]
    two = client.post("/v1/models/echo:explain", json={"instances": [{"text": "hi"}] * 2})
    assert two.status_code == 413 and "Received: 2" in two.json()["error"]


def test_openapi_has_the_schemas_of_each_model(client):
    document = client.get("/openapi.json").json()
    assert "/v1/models/{name}:predict" in document["paths"]
    operation = document["paths"]["/v1/models/echo:predict"]["post"]
    parts = operation["requestBody"], operation["responses"]["200"]
    references = [part["content"]["application/json"]["schema"]["properties"] for part in parts]
    assert references == [
        {"instances": {"type": "array", "items": {"$ref": "#/components/schemas/echo.instance"}}},
        {"predictions": {"type": "array", "items": {"$ref": "#/components/schemas/echo.answer"}}},
    ]
    for reference in re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(document)):
        assert reference in document["components"]["schemas"]
    assert document["components"]["schemas"]["echo.Letter"]["required"] == ["text"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "must be JSON"),
        (b"\xff{}", 400, "must be JSON"),
        (b"[" * 2900, 400, "must be JSON|nested"),
        (b'{"instances": [{"text": NaN}]}', 400, "NaN is not a JSON number"),
        (b"[]", 400, "JSON object. Received: list"),
        (b"{}", 400, "one of `instances` and `inputs`"),
        (b'{"instances": [], "inputs": {}}', 400, "one of `instances` and `inputs`"),
        (b'{"instances": []}', 400, "at least one object"),
        (b'{"instances": [3]}', 400, "must be an object. Received: int"),
        (b'{"instances": [{"text": "a"}, {}]}', 400, "instance 1: .* text is missing"),
        (b'{"instances": [{"text": "a", "wait": 1}]}', 400, "instance 0: wait: .* Received: 1"),
        (b'{"inputs": {"text": ["a"], "other": []}}', 400, "equally long"),
        (b'{"inputs": {"text": "a"}}', 400, "an object of lists"),
        (b'{"instances": [{"text": "\\ud800"}]}', 400, "half a surrogate pair"),
        (json.dumps({"instances": [{"text": "a"}] * 6}).encode(), 413, "5 items at most. Received: 6"),
        (json.dumps({"instances": [{"text": ["a"] * 8}]}).encode(), 413, "7 items at most. Received: 8"),
        (json.dumps({"instances": [{"text": "a " * 12}]}).encode(), 413, "11 words at most"),
        (json.dumps({"instances": [{"text": "a" * 131}]}).encode(), 413, "130 characters at most. Received: 131"),
        (json.dumps({"instances": [{"text": [[["a"]]]}]}).encode(), 400, "nested 3 deep at most"),
        (b" " * 3001, 413, "3,000 bytes at most"),
        (iter([b"x" * 1000] * 9), 413, "3,000 bytes at most"),  # without a length it is read no further
    ],
)
def test_a_wrong_request_gets_its_status_and_one_sentence_before_it_waits(client, echo, body, status, message):
    answer = client.post("/v1/models/echo:predict", content=body)
    assert answer.status_code == status and echo.calls == []
    [(key, text)] = answer.json().items()
    assert key == "error" and len(text) < 400
    assert re.search(message, text), text


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
def test_unknown_paths_are_refused(client, method, path, status):
    answer = client.request(method, path, json={"instances": [{"text": "a"}]} if method == "POST" else None)
    assert answer.status_code == status and list(answer.json()) == ["error"]


def test_an_answer_that_takes_too_long_is_given_up(client, echo):
    answer = predict(client, instances=[{"text": "a", "wait": True}])
    echo.event.set()
    assert (answer.status_code, answer.json()) == (504, {"error": "no answer within 0.5 seconds"})


def test_a_model_without_a_replica_is_unavailable():
    model = types.SimpleNamespace(**{name: AsyncMock() for name in ("start", "predict", "close")}, version="1")
    model.predict.side_effect = RequestError(503, "no replica of gone answers now: try again later")
    with TestClient(app_of({"gone": model})) as client:
        assert model.start.await_count == 1
        answer = client.post("/v1/models/gone:predict", json={"instances": [{"text": "a"}]})
    assert (answer.status_code, answer.headers["retry-after"], model.close.await_count) == (503, "1", 1)
    assert answer.json() == {"error": "no replica of gone answers now: try again later"}


def test_prometheus_counts_requests_by_status(client):
    predict(client, instances=[{"text": "a"}, {"text": "b"}])
    predict(client, instances=[])
    lines = client.get("/metrics").text.splitlines()
    for status in ("200", "400"):
        assert f'colloquy_requests_total{{model="echo",status="{status}",verb="predict"}} 1.0' in lines
    assert 'colloquy_batch_instances_sum{model="echo"} 2.0' in lines
    assert 'colloquy_queue_instances{model="echo"} 0.0' in lines


def test_the_page_runs_only_scripts_of_this_server(client):
    page = client.get("/")
    assert "script-src 'self'" in page.headers["content-security-policy"] and "Colloquy" in page.text
    assert client.get("/pages/app.js").headers["content-type"].startswith("text/javascript")
    assert "http://" not in page.text and "https://" not in page.text


def test_a_client_that_leaves_while_it_asks_is_counted_and_no_error(app, echo):
    scope = {"type": "http", "method": "POST", "path": "/v1/models/echo:predict", "query_string": b"", "headers": []}
    sent = AsyncMock()
    events = [{"type": "http.request", "body": b'{"inst', "more_body": True}, {"type": "http.disconnect"}]
    asyncio.run(app(scope, AsyncMock(side_effect=events), sent))
    assert sent.await_args_list[0].args[0]["status"] == 499 and echo.calls == []


# === Micro-batching ===


def batched(conversation, compute=list, valid=lambda instance, where: instance, **sizes):
    """What a conversation with a batched model of numbers returns, and the batches that it computed."""
    batches, event = [], threading.Event()

    def answers(instances):
        batches.append(list(instances))
        return compute(instances)

    shared = {"name": "numbers", "version": "1", "metadata": dict, "event": event}
    model = types.SimpleNamespace(**shared, valid=valid, answers=answers, explain=lambda instance: event.wait(5))

    async def main():
        batched = Batched(model, **sizes)
        found = await conversation(batched)
        await batched.close()
        return found

    return asyncio.run(main()), batches


def inverse(instances):
    return [1 / instance for instance in instances]


def test_requests_that_arrive_together_share_a_batch():
    def ask(model):
        return asyncio.gather(model.predict([1, 2]), model.predict([3]), model.predict([4, 5, 6]))

    found, batches = batched(ask, lambda instances: [10 * x for x in instances], milliseconds=20, max_batch=5)
    assert found == [[10, 20], [30], [40, 50, 60]]
    assert batches == [[1, 2, 3], [4, 5, 6]]  # the third would not have fitted


def test_a_request_that_fails_fails_alone_and_the_others_need_few_calls():
    def ask(model):
        return asyncio.gather(*(model.predict([n]) for n in (1, 2, 3, 0, *range(4, 16))), return_exceptions=True)

    found, batches = batched(ask, inverse, milliseconds=20)
    assert isinstance(found.pop(3), ZeroDivisionError)
    assert found == [[1 / n] for n in range(1, 16)]
    assert list(map(len, batches)) == [16, 8, 4, 2, 2, 1, 1, 4, 8]


def test_what_came_while_a_batch_was_computed_waits_no_longer():
    """A batch of two that came 60 ms ago, while another one was computed, does not wait for 40 ms once more."""
    started = []

    def compute(instances):
        started.append(time.perf_counter())
        time.sleep(0.06)
        return instances

    async def ask(model):
        first = asyncio.create_task(model.predict([1]))
        while not started:
            await asyncio.sleep(0.001)
        await asyncio.gather(first, model.predict([2]), model.predict([3]))

    batched(ask, compute, milliseconds=40)
    assert len(started) == 2 and started[1] - started[0] < 0.09


def test_a_full_queue_refuses_and_continues():
    async def ask(model):
        first = asyncio.create_task(model.predict([1, 2]))
        await asyncio.sleep(0)
        with pytest.raises(RequestError, match="2 instances wait already, at most 3 may") as refused:
            await model.predict([3, 4])
        return refused.value.status, await first, await model.predict([3, 4])

    assert batched(ask, milliseconds=20, max_queue=3)[0] == (429, [1, 2], [3, 4])


def test_explanations_wait_in_the_same_queue():
    async def ask(model):
        first = [asyncio.create_task(model.explain(0)) for _ in range(2)]
        await asyncio.sleep(0)
        assert model.queued == 2
        for refused in (model.explain(0), model.predict([1])):
            with pytest.raises(RequestError, match="2 instances wait already"):
                await refused
        model._model.event.set()
        return await asyncio.gather(*first), model.queued

    assert batched(ask, milliseconds=1, max_queue=2)[0] == ([True, True], 0)


def test_closing_answers_what_waits():
    async def ask(model):
        waiting = asyncio.create_task(model.predict([7]))
        await asyncio.sleep(0)
        await model.close()
        return await waiting

    assert batched(ask, milliseconds=5)[0] == [7]


def test_a_wrong_instance_is_refused_before_it_waits():
    def refuse(instance, where):
        raise UserError(f"{where}: no {instance}")

    async def ask(model):
        with pytest.raises(UserError, match="instance 0: no 1"):
            await model.predict([1])
        return model.queued

    assert batched(ask, valid=refuse) == (0, [])
