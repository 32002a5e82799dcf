"""serving/: REST and limits, with models that answer at once; real ones in
test_serving_models.py.
"""

import asyncio
import base64
import concurrent.futures
import json
import re
import threading
import time
import types
from unittest.mock import AsyncMock

import numpy as np
import pytest
from echo import Echo, served
from fastapi.testclient import TestClient
from helpers import refusal, until

from colloquy.base.files import UserError
from colloquy.serving import limits as serving_limits
from colloquy.serving.access import Access
from colloquy.serving.app import create_app
from colloquy.serving.batching import cut_maps
from colloquy.serving.limits import Limits
from colloquy.serving.models import Served, warming

LIMITS = Limits(
    max_body_bytes=3000,
    instances=5,
    items=7,
    text_characters=130,
    instance_characters=140,
    depth=7,
    max_rows=150,
    requests=9,
)
HASTY = LIMITS.replace(timeout_seconds=0.5)
EXAMPLES = [{"title": "short", "instance": {"text": "ab", "inside": [{"text": "c"}]}}]


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def app(echo):
    return create_app({"echo": served(echo, task="echo", examples=EXAMPLES)}, LIMITS)


@pytest.fixture
def client(app):
    with TestClient(app, headers={"Content-Type": "application/json"}) as client:
        client.get("/v1/models/echo")  # loads it
        yield client


def fail():
    raise UserError("damaged")


def predict(client, **body):
    return client.post("/v1/models/echo:predict", json=body)


def explain(client, *texts):
    instances = [{"text": text} for text in texts]
    return client.post("/v1/models/echo:explain", json={"instances": instances})


# === Answers ===


def test_instances_and_columns_are_answered_in_order(client):
    instances = [{"text": "ab"}, {"text": ""}, {"text": "日本語"}]
    answer = predict(client, instances=instances).json()
    assert answer["predictions"] == [
        {"length": 2, "text": "ab"},
        {"length": 0, "text": ""},
        {"length": 3, "text": "日本語"},
    ]
    answer = predict(client, inputs={"text": ["a", "bc"]}).json()
    assert answer == {"outputs": {"length": [1, 2], "text": ["a", "bc"]}}


def test_models_say_what_they_are(client):
    row = {"id": "echo", "object": "model", "created": 0, "owned_by": "colloquy"}
    row = {**row, "task": "echo", "ready": True}
    listed = client.get("/v1/models").json()
    assert listed == {"models": ["echo"], "object": "list", "data": [row]}
    state = client.get("/v1/models/echo").json()
    [version] = state["model_version_status"]
    assert (version["version"], version["state"]) == ("2", "AVAILABLE")
    metadata = client.get("/v1/models/echo/metadata").json()["metadata"]
    assert (metadata["name"], metadata["version"], metadata["task"]) == ("echo", "2", "echo")
    assert metadata["instance"]["required"] == ["text"]
    assert "length" in metadata["answer"]["properties"]
    assert state["answer"] == metadata["answer"]
    nothing = {"knowledge": [], "slots": []}
    assert client.get("/v1/models/echo/knowledge").json() == nothing
    assert client.get("/healthz").json() == {"status": "ok", "models": ["echo"]}
    assert client.head("/").status_code == 200


def test_a_version_or_a_label_may_follow_the_name(client):
    for version in ("versions/2", "labels/stable"):
        path = f"/v1/models/echo/{version}:predict"
        answer = client.post(path, json={"instances": [{"text": "a"}]})
        assert answer.json()["predictions"][0]["length"] == 1


def test_one_instance_is_explained(client):
    [explanation] = explain(client, "hi").json()["explanations"]
    assert explanation["length"] == 2
    assert explanation["attention"][0]["rows"] == ["h", "i"]
    two = explain(client, "hi", "hi")
    assert two.status_code == 413
    assert "Received: 2" in two.json()["error"]


def test_attention_maps_are_cut_to_what_a_page_can_show(client):
    [explanation] = explain(client, "x" * 101).json()["explanations"]
    [shown] = explanation["attention"]
    assert len(shown["rows"]) == len(shown["weights"]) == 100
    assert shown["cut"]
    [explanation] = explain(client, "x" * 100).json()["explanations"]
    assert "cut" not in explanation["attention"][0]


def test_a_map_is_cut_around_its_greatest_weight():
    weights = np.zeros((300, 7))
    weights[220, 3] = 1.0
    words = [str(row) for row in range(300)]
    whole = {"title": "", "rows": words, "columns": list("abcdefg"), "weights": weights.tolist()}
    [shown] = cut_maps({"attention": [whole]})["attention"]
    assert (shown["rows"], shown["columns"]) == (words[170:270], list("abcdefg"))
    assert np.shape(shown["weights"]) == (100, 7)
    assert shown["weights"][50][3] == 1.0


def test_large_answers_are_made_and_compressed_on_the_worker_thread(client, monkeypatch):
    names = []
    make_content = serving_limits.make_content

    def note(body, media_type):
        names.append(threading.current_thread().name)
        return make_content(body, media_type)

    monkeypatch.setattr(serving_limits, "make_content", note)
    monkeypatch.setattr(serving_limits, "COMPRESSED_FROM", 1000)
    answer = explain(client, "x" * 100)
    assert answer.headers["content-encoding"] == "gzip"
    assert names == ["model"]


def test_openapi_has_typed_routes_of_the_loaded_models(client):
    document = client.get("/openapi.json").json()
    for name in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)):
        assert name in document["components"]["schemas"]
    operation = document["paths"]["/v1/models/echo:predict"]["post"]
    assert {"200", "400", "413", "429", "504"} <= set(operation["responses"])
    schemas = document["components"]["schemas"]
    [example] = schemas["echo_instances"]["examples"]
    assert predict(client, **example).json()["predictions"] == [{"length": 2, "text": "ab"}]
    assert schemas["Letter"]["required"] == ["text"]
    assert set(schemas["echo_predictions"]["properties"]) == {"predictions"}
    assert "attention" in schemas["echo_explanation"]["properties"]
    assert {"/v1/chat/completions", "/v1/models", "/healthz"} <= set(document["paths"])


def test_docs_load_nothing_from_other_sites(client):
    page = client.get("/docs")
    files = re.findall('(?:src|href)="([^"]+)"', page.text)
    assert len(files) == 4
    for file in files:
        assert client.get(f"/{file}").status_code == 200
    assert "script-src 'self';" in page.headers["content-security-policy"]


def test_the_page_runs_only_scripts_of_this_server(client):
    page = client.get("/", headers={"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"})
    assert client.get("/").json() == {"status": "alive"}
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "Accept" in page.headers["vary"]
    assert "Colloquy" in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
    script = client.get("/pages/app.js")
    assert script.headers["content-type"].startswith("text/javascript")


def test_prometheus_counts_requests_by_status(client):
    predict(client, instances=[{"text": "a"}, {"text": "b"}])
    predict(client, instances=[])
    explain(client, "a")
    lines = client.get("/metrics").text.splitlines()
    for status in ("200", "400"):
        labels = f'model="echo",status="{status}",verb="predict"'
        assert f"colloquy_requests_total{{{labels}}} 1.0" in lines
    assert 'colloquy_batch_instances_sum{model="echo",verb="predict"} 2.0' in lines
    assert 'colloquy_model_seconds_count{model="echo",verb="explain"} 1.0' in lines
    assert 'colloquy_queue_instances{model="echo"} 0.0' in lines
    [memory] = [line for line in lines if line.startswith("process_resident_memory_bytes ")]
    assert float(memory.split()[1]) > 1e7


# === Refusals ===


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "must be JSON"),
        (b"\xff{}", 400, "must be JSON"),
        (b'{"text": "\\ud800"}', 400, "must be JSON"),
        (b"[" * 2900, 400, "must be JSON|nested"),
        (b'{"instances": [{"text": NaN}]}', 400, "must be JSON: .*column 25"),
        (b'{"instances": [{"text": 1e999}]}', 400, "a number beyond"),
        (b"[]", 400, "JSON object. Received: list"),
        (b"{}", 400, "one of `instances` and `inputs`"),
        (b'{"instances": [{}], "inputs": {"text": []}}', 400, "one of `instances` and `inputs`"),
        (b'{"signature_name": "rank", "inputs": {"text": []}}', 400, "signature_name: .*rank"),
        (b'{"inputs": {"text": ["a"], "other": []}}', 400, "equally long"),
        (b'{"inputs": {"text": "a"}}', 400, "inputs.text: input should be a valid list"),
        (b'{"inputs": {"text": []}}', 400, "at least one instance"),
        ([], 400, "instances: list should have at least 1 item"),
        ([3], 400, "instances.0: input should be .* Received: 3"),
        ([{"text": "a"}, {}], 400, "instance 1: .* text is missing"),
        ([{"text": "a", "wait": 1}], 400, "instance 0: wait: .* Received: 1"),
        ([{"text": [[[[["a"]]]]]}], 400, "nested 7 deep at most"),
        ([{"text": "a"}] * 6, 413, "5 items at most. Received: 6"),
        ([{"text": ["a"] * 8}], 413, "7 items at most. Received: 8"),
        ([{"text": "a" * 131}], 413, "130 characters at most. Received: 131"),
        (
            [{"text": "a" * 130, "inside": [{"text": "b" * 11}]}],
            413,
            "instance 0 may have 140 characters at most. Received: 141",
        ),
        ([{"text": "a" * 80}, {"text": "a" * 71}], 413, "150 rows at most. Received: 151"),
        (b" " * 3001, 413, "3,000 bytes at most"),
        # Without a length the body is read no further than the limit.
        (iter([b"x" * 1000] * 9), 413, "3,000 bytes at most"),
    ],
)
def test_a_wrong_request_gets_its_status_and_one_sentence(client, echo, body, status, message):
    content = json.dumps({"instances": body}).encode() if isinstance(body, list) else body
    answer = client.post("/v1/models/echo:predict", content=content)
    assert answer.status_code == status
    assert echo.calls == []
    [(key, text)] = answer.json().items()
    assert key == "error"
    assert len(text) < 400
    assert re.search(message, text), text


@pytest.mark.parametrize(
    ("status", "request_line"),
    [
        (404, "POST /v1/models/other:predict"),
        (404, "POST /v1/models/echo/versions/3:predict"),
        (404, "POST /v1/models/echo/labels/canary:predict"),
        (404, "GET /nothing"),
        (404, "GET /v1/models/other"),
        (404, "GET /pages/../app.py"),
        (404, "GET /pages/%2e%2e%2fapp.py"),
        (404, "GET /pages/missing.js"),
        (404, f"GET /pages/{'x' * 300}.js"),
        (405, "POST /v1/models/echo"),
        (405, "DELETE /v1/models/echo"),
        (405, "GET /v1/models/echo:predict"),
    ],
)
def test_unknown_paths_are_refused(client, status, request_line):
    method, path = request_line.split()
    body = {"instances": [{"text": "a"}]} if method == "POST" else None
    answer = client.request(method, path, json=body)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert ("allow" in answer.headers) == (status == 405)


def test_large_bodies_are_parsed_on_another_thread(echo):
    with TestClient(create_app({"echo": served(echo)})) as client:
        instances = [{"text": "a" * 900} for _ in range(20)]
        assert predict(client, instances=instances).status_code == 413  # 18,000 rows
        instances = [{"text": "", "inside": [{"text": "a" * 900}]} for _ in range(20)]
        assert predict(client, instances=instances).status_code == 200


def test_an_answer_that_takes_too_long_is_given_up(app, client, echo):
    app.state.limits = HASTY
    answer = predict(client, instances=[{"text": "a", "wait": True}])
    echo.event.set()
    assert (answer.status_code, answer.json()) == (504, {"error": "no answer within 0.5 seconds"})


def test_more_requests_than_may_be_open_are_refused(app, client):
    app.state.open_requests = LIMITS.requests
    answer = predict(client, instances=[{"text": "a"}])
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("body", "then", "status"),
    [
        ({"body": b'{"inst', "more_body": True}, {"type": "http.disconnect"}, 499),
        (
            {"body": b'{"instances": [{"text": "a"}]}', "more_body": False},
            {"type": "http.disconnect"},
            499,
        ),
        ({"body": b'{"inst', "more_body": True}, None, 408),
    ],
)
def test_a_client_that_leaves_or_is_slow_is_counted_and_not_computed_for(
    app, echo, body, then, status
):
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/models/echo:predict",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    events = iter([{"type": "http.request", **body}, then])
    send = AsyncMock()
    app.state.limits = HASTY if status == 408 else LIMITS

    async def receive():
        return next(events) or await asyncio.sleep(5)

    asyncio.run(app(scope, receive, send))
    assert send.await_args_list[0].args[0]["status"] == status
    assert echo.calls == []


def test_an_answer_with_nan_is_refused_and_so_is_a_model_that_warms_up_with_it(
    client, echo, monkeypatch
):
    broken = types.SimpleNamespace(model_dump=lambda exclude_unset: {"score": float("nan")})
    monkeypatch.setattr(echo, "answer", lambda instances: [broken])
    answer = predict(client, instances=[{"text": "a"}])
    assert answer.status_code == 422
    assert "NaN, which JSON" in answer.json()["error"]
    model = served(echo, "m", examples=[{"instance": {"text": "a"}}])
    assert "m answers its examples with NaN or infinity" in refusal(model.warm_up)


# === Loading ===


def test_a_model_that_cannot_be_loaded_is_an_error_of_the_server(echo):
    app = create_app({"echo": served(echo), "bad": Served("bad", "1", fail, {})}, LIMITS)
    with TestClient(app) as client:
        answer = client.get("/v1/models/bad")
        assert (answer.status_code, answer.json()) == (500, {"error": "damaged"})
        assert client.get("/v1/models/echo").status_code == 200
        paths = client.get("/openapi.json").json()["paths"]
    assert "/v1/models/echo:predict" in paths
    assert "/v1/models/bad:predict" not in paths


def test_a_model_is_loaded_once_when_somebody_asks_for_it(echo):
    loads = []
    model = Served("echo", "2", lambda: loads.append(echo) or echo, {"task": "echo"})
    with TestClient(create_app({"echo": model})) as client:
        assert not client.get("/v1/models").json()["data"][0]["ready"]
        assert loads == []
        for _ in range(2):
            assert predict(client, instances=[{"text": "a"}]).status_code == 200
        assert client.get("/v1/models").json()["data"][0]["ready"]
    assert loads == [echo]


def test_a_model_that_is_being_loaded_holds_up_no_other(echo):
    event = threading.Event()
    cold = Served("cold", "1", lambda: event.wait(5) and Echo(), {})
    app = create_app({"echo": served(echo), "cold": cold})
    with TestClient(app) as client, concurrent.futures.ThreadPoolExecutor(40) as threads:
        predict(client, instances=[{"text": "a"}])  # loads it
        cold_requests = [threads.submit(client.get, "/v1/models/cold") for _ in range(40)]
        until(lambda: app.state.open_requests == 40)
        assert predict(client, instances=[{"text": "a"}]).status_code == 200
        assert not any(request.done() for request in cold_requests)
        event.set()
        assert {request.result().status_code for request in cold_requests} == {200}


def test_models_are_warmed_up_while_nobody_asks_and_faults_stop_no_other(echo, capsys):
    def fail_strangely():
        raise StopIteration("nothing there")

    models = [
        Served("bad", "1", fail, {}),
        Served("strange", "1", fail_strangely, {}),
        served(echo, examples=[{"instance": {"text": "a"}}]),
    ]
    busy = threading.Event()
    busy.set()
    with warming(models, busy.is_set):
        time.sleep(0.2)
        assert not models[2].ready
        busy.clear()
        until(lambda: echo.calls)
    messages = capsys.readouterr().err
    assert "bad cannot answer: damaged" in messages
    assert "strange cannot answer: nothing there" in messages
    assert not models[0].ready


# === Who may ask ===

KEY = "Ünlösbar"
PREDICT = "POST", "/v1/models/echo:predict"


def basic(password):
    return f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        (PREDICT, {"Host": "here"}, 200),
        (PREDICT, {"Host": "127.0.0.1:8501"}, 200),
        (PREDICT, {"Host": "[::1]:8501"}, 200),
        (PREDICT, {"Host": "evil.example"}, 421),
        (PREDICT, {"Host": "[:"}, 421),
        (PREDICT, {"Origin": "http://here"}, 200),
        (PREDICT, {"Origin": "https://friend.example"}, 200),
        (PREDICT, {"Origin": "https://evil.example"}, 403),
        (PREDICT, {"Origin": "null"}, 403),
        (PREDICT, {"Content-Type": "application/json; charset=utf-8"}, 200),
        (PREDICT, {"Content-Type": "text/plain"}, 415),
        (PREDICT, {"Authorization": basic(KEY)}, 200),
        (PREDICT, {"Authorization": "Bearer wrong"}, 401),
        (PREDICT, {"Authorization": basic("wrong")}, 401),
        (PREDICT, {"Authorization": "Basic %"}, 401),
        (PREDICT, {"Authorization": f"Basic {KEY}".encode()}, 401),  # not in Base64
        (("GET", "/healthz"), {"Host": "evil.example"}, 421),
        (("GET", "/v1/models"), {"Origin": "https://evil.example"}, 403),
        (("GET", "/"), {"Authorization": ""}, 401),
        (("GET", "/healthz"), {"Authorization": ""}, 200),
    ],
)
def test_who_may_ask(echo, request_line, headers, status):
    access = Access(frozenset(["here"]), frozenset(["https://friend.example"]), KEY)
    app = create_app({"echo": served(echo)}, LIMITS, access)
    usual = {
        "Host": "here",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {KEY}".encode(),
    }
    body = b'{"instances": [{"text": "a"}]}' if request_line == PREDICT else None
    with TestClient(app) as client:
        answer = client.request(*request_line, content=body, headers={**usual, **headers})
    assert answer.status_code == status
    assert status == 200 or list(answer.json()) == ["error"]
    is_friend = headers.get("Origin") == "https://friend.example"
    assert ("access-control-allow-origin" in answer.headers) == is_friend
    assert ("www-authenticate" in answer.headers) == (status == 401)


def test_a_server_with_an_unknown_name_says_which_flag_allows_it(echo):
    access = Access(hosts=frozenset(["localhost"]))
    with TestClient(create_app({"echo": served(echo)}, LIMITS, access)) as client:
        answer = client.get("/", headers={"Host": "colleague.example:8501"})
    assert "--allowed_hosts=colleague.example" in answer.json()["error"]


# === OpenAI's chat completions ===


def chat(client, text="one two", **more):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    return client.post("/v1/chat/completions", json={"model": "echo", "messages": messages, **more})


def chunks_of(answer):
    *events, done, rest = answer.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def test_a_conversation_gets_a_reply(client):
    answer = chat(client, temperature=0.5, max_tokens=7, frequency_penalty=0, stream=None).json()
    [choice] = answer["choices"]
    assert choice["message"]["content"] == "one two"
    assert choice["finish_reason"] == "stop"
    assert (answer["object"], answer["model"]) == ("chat.completion", "echo")
    assert answer["usage"] == {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4}
    assert "explanation" not in answer
    explanation = chat(client, explain=True).json()["explanation"]
    assert explanation["text"] == "one two"
    assert explanation["attention"]


def test_a_reply_is_streamed_word_by_word(client):
    answer = chat(client, stream=True, explain=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    chunks = chunks_of(answer)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    assert deltas == ["", "one", " two", None]
    assert chunks[-1]["explanation"]["text"] == "one two"


def test_max_tokens_stop_and_usage_are_honoured(client):
    [choice] = chat(client, "one two three", max_tokens=2).json()["choices"]
    assert choice["message"]["content"] == "one two"
    assert choice["finish_reason"] == "length"
    for stop in ("two", ["zero", " two"]):
        [choice] = chat(client, "one two three", stop=stop).json()["choices"]
        assert choice["message"]["content"].strip() == "one"
        assert choice["finish_reason"] == "stop"
    options = {"include_usage": True}
    *_, last, usage = chunks_of(chat(client, max_tokens=1, stream=True, stream_options=options))
    assert last["choices"][0]["finish_reason"] == "length"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 1


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        ({"model": "other"}, 404, "there is no model 'other'"),
        ({"model": ""}, 404, "there is no model"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "assistant", "content": "a"}]}, 400, "the last one to be the user"),
        ({"n": 2}, 400, "n: .*Received: 2"),
        ({"logprobs": True}, 400, "logprobs is not supported"),
        ({"tools": [{"type": "function"}]}, 400, "tools is not supported"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format is not supported"),
        ({"text": "a " * 60 + "b" * 21}, 413, "140 characters at most|130 characters at most"),
        ({"text": "a " * 60 + "b" * 21, "stream": True}, 413, "characters at most"),
    ],
)
def test_a_wrong_conversation_gets_an_error_as_openais(client, more, status, message):
    answer = chat(client, **more)
    assert answer.status_code == status, answer.text
    assert re.search(message, answer.json()["error"]["message"]), answer.text
