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
import openapi_spec_validator
import pytest
from echo import FACTS, Echo, served, try_out
from fastapi.testclient import TestClient
from helpers import until

from colloquy.base.files import UserError
from colloquy.serving import metrics
from colloquy.serving.access import Access
from colloquy.serving.app import create_app
from colloquy.serving.batching import BatchedModel
from colloquy.serving.chat_request import ChatRequest
from colloquy.serving.limits import Limits
from colloquy.serving.maps import cut_maps
from colloquy.serving.models import Served
from colloquy.serving.warm_up import warming

LIMITS = Limits(
    max_body_bytes=3000,
    instances=5,
    values=60,
    lines=20,
    text_characters=130,
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
    return create_app({"echo": served(echo, examples=EXAMPLES)}, LIMITS)


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


def test_models_say_what_they_are_and_openais_clients_see_those_that_chat(client, app):
    class Silent(Echo):
        conversation = Echo.__mro__[1].conversation

    app.state.models["silent"] = BatchedModel(served(Silent(), "silent"), LIMITS)
    listed = client.get("/v1/models").json()
    row = {"id": "echo", "object": "model", "created": 0, "owned_by": "colloquy"}
    assert (listed["object"], listed["data"]) == ("list", [row])
    assert listed["models"] == ["echo", "silent"]
    echo = {"name": "echo", "task": "echo", "title": "An echo", "label": "", "default": False}
    assert listed["details"][0] == {**echo, "ready": True}
    state = client.get("/v1/models/echo").json()
    [version] = state["model_version_status"]
    assert (version["version"], version["state"]) == ("1", "AVAILABLE")
    assert (state["name"], state["task"], state["ready"]) == ("echo", "echo", True)
    health = client.get("/healthz").json()
    assert health == {"status": "ok", "models": ["echo", "silent"]}


def test_one_instance_is_explained(client):
    [explanation] = explain(client, "hi").json()["explanations"]
    assert explanation["length"] == 2
    assert explanation["attention"][0]["rows"] == ["h", "i"]
    assert "cut" not in explanation["attention"][0]
    assert explain(client, "hi", "hi").status_code == 413


def test_a_map_is_cut_around_its_greatest_weight():
    weights = np.zeros((300, 7))
    weights[220, 3] = 1.0
    words = [str(row) for row in range(300)]
    whole = {"title": "", "rows": words, "columns": list("abcdefg"), "weights": weights.tolist()}
    [shown] = cut_maps({"attention": [whole]})["attention"]
    assert (shown["rows"], shown["columns"]) == (words[170:270], list("abcdefg"))
    assert np.shape(shown["weights"]) == (100, 7)
    assert shown["weights"][50][3] == 1.0


def test_the_document_is_valid_and_all_that_it_prefills_works(client):
    document = client.get("/openapi.json").json()
    openapi_spec_validator.validate(document)
    statuses = try_out(client, document)
    assert len(statuses) == 8
    assert set(statuses.values()) == {200}
    operation = document["paths"]["/v1/models/echo:predict"]["post"]
    assert operation["tags"] == ["echo"]
    schemas = document["components"]["schemas"]
    assert schemas["Letter"]["required"] == ["text"]
    assert set(schemas["EchoPredictions"]["properties"]) == {"predictions"}
    assert "attention" in schemas["EchoExplanation"]["properties"]


def test_the_pages_run_only_scripts_of_this_server(client):
    for answer in (client.get("/"), client.get("/docs")):
        assert "script-src 'self';" in answer.headers["content-security-policy"]
        assert "://" not in re.sub("https?://www.w3.org", "", answer.text)
        for file in re.findall('(?:src|href)="([^"#]+)"', answer.text):
            assert client.get(f"/{file}").status_code == 200
    script = client.get("/pages/app.js")
    assert script.headers["content-type"].startswith("text/javascript")


def test_prometheus_counts_requests_by_status(client):
    metrics.REQUESTS.clear()
    metrics.REQUEST_SECONDS.clear()
    predict(client, instances=[{"text": "a"}, {"text": "b"}])
    predict(client, instances=[{"text": "a"}] * 6)
    explain(client, "a")
    lines = client.get("/metrics").text.splitlines()
    for status in ("200", "413"):
        labels = f'model="echo",status="{status}",verb="predict"'
        assert f"colloquy_requests_total{{{labels}}} 1.0" in lines
    assert 'colloquy_request_seconds_count{model="echo",verb="explain"} 1.0' in lines
    assert 'colloquy_queue_instances{model="echo"} 0.0' in lines
    [memory] = [line for line in lines if line.startswith("process_resident_memory_bytes ")]
    assert float(memory.split()[1]) > 1e7


# === Refusals ===

PREDICT = "POST", "/v1/models/echo:predict"
CHAT = "POST", "/v1/chat/completions"
HELLO = {"model": "echo", "messages": [{"role": "user", "content": "one two"}]}


def instances(*values):
    return json.dumps({"instances": list(values)}).encode()


def chat_body(**changes):
    return json.dumps({**HELLO, **changes}).encode()


def said(role, content):
    return [{"role": role, "content": content}]


@pytest.mark.parametrize(
    ("request_line", "body", "status", "word"),
    [
        (PREDICT, b"{", 400, "JSON"),
        (PREDICT, b"[" * 2900, 400, "JSON"),
        (PREDICT, b"[]", 400, "expected a JSON object as the body. Received: []"),
        (PREDICT, b"null", 400, "expected a JSON object as the body. Received: null"),
        (PREDICT, b'{"instances": [{"text": "\\ud800"}]}', 400, "JSON"),
        (PREDICT, b'{"instances": [{"text": 1e999}]}', 400, "text"),
        (PREDICT, instances(), 400, "instances"),
        (PREDICT, instances(3), 400, "3"),
        (PREDICT, instances({"text": "a"}, {}), 400, "instances.1.text"),
        (PREDICT, instances({"text": "a", "wait": 1}), 400, "instances.0.wait"),
        (PREDICT, instances(*[{"text": "a"}] * 6), 413, "6"),
        (PREDICT, instances({"text": "", "inside": [{"text": ""}] * 40}), 413, "60 values"),
        (PREDICT, instances({"text": "a" * 99, "inside": [{"text": "b" * 32}]}), 413, "131"),
        (PREDICT, instances({"text": "a" * 80}, {"text": "a" * 71}), 413, "150 rows"),
        (PREDICT, b" " * 3001, 413, "3,000 bytes"),
        # Without a length the body is read no further than the limit.
        (PREDICT, iter([b"x" * 1000] * 9), 413, "3,000 bytes"),
        (("POST", "/v1/models/other:predict"), b"{}", 404, "other"),
        (("POST", "/v1/models/echo/versions/3:predict"), b"{}", 404, "found"),
        (("GET", "/v1/models/other"), None, 404, "other"),
        (("GET", "/v1/completions"), None, 404, "completions"),
        (("GET", "/pages/%2e%2e%2fapp.py"), None, 404, "app.py"),
        (("DELETE", "/v1/models/echo"), None, 405, "DELETE"),
        (("PUT", "/v1/models/echo:predict"), b"{}", 405, "PUT"),
        (("GET", "/v1/models/echo:predict"), None, 405, "GET"),
        (("POST", "/v1/models/echo:classify"), b"{}", 404, "echo:classify"),
        (CHAT, chat_body(model="other"), 404, "other"),
        (CHAT, chat_body(messages=[]), 400, "messages"),
        (CHAT, chat_body(messages=said("assistant", "a")), 400, "messages"),
        (CHAT, chat_body(messages=said("user", [{"type": "image_url"}])), 400, "list.0.type"),
        (CHAT, chat_body(messages=said("user", 5)), 400, "content.list"),
        (CHAT, chat_body(stop=["a", 5]), 400, "stop.list.1"),
        (CHAT, chat_body(n=2), 400, "n: "),
        (CHAT, chat_body(tools=[{"type": "function"}]), 400, "tools"),
        (CHAT, chat_body(response_format={"type": "json_object"}), 400, "response_format"),
        (CHAT, chat_body(top_k=5), 400, "top_k"),
        (CHAT, chat_body(messages=said("user", "a " * 70)), 413, "130 characters"),
        (CHAT, chat_body(messages=said("user", "a\n" * 25)), 413, "20 lines"),
    ],
)
def test_a_wrong_request_gets_its_status_and_one_sentence(
    client, echo, request_line, body, status, word
):
    calls = len(echo.calls)
    answer = client.request(*request_line, content=body)
    assert answer.status_code == status, answer.text
    assert len(echo.calls) == calls
    assert list(answer.json()) == ["error"]
    message = answer.json()["error"]
    _, path = request_line
    if path.startswith("/v1/") and ":" not in path:
        assert set(message) == {"message", "type", "param", "code"}  # as OpenAI's
        message = message["message"]
    assert word in message
    assert len(message) < 400
    assert ("allow" in answer.headers) == (status == 405)


def test_a_fault_of_the_program_is_one_sentence(echo, monkeypatch):
    monkeypatch.setattr(echo, "answer", lambda instances: 1 / 0)
    app = create_app({"echo": served(echo)})
    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.post("/v1/models/echo:predict", json={"instances": [{"text": "a"}]})
    assert answer.status_code == 500
    assert answer.json() == {"error": "the server failed to answer; its log has the reason"}


def test_wrong_values_cost_little(echo):
    body = b'{"instances": [' + b"0," * 95_000 + b"0]}"
    with TestClient(create_app({"echo": served(echo)})) as client:
        start = time.perf_counter()
        headers = {"Content-Type": "application/json"}
        answer = client.post("/v1/models/echo:predict", content=body, headers=headers)
    assert answer.status_code == 413
    assert time.perf_counter() - start < 1


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


LEFT = {"type": "http.disconnect"}
WHOLE = {"type": "http.request", "body": b'{"instances": [{"text": "a"}]}'}
BEGIN = {"type": "http.request", "body": b'{"inst', "more_body": True}


async def send(app, *events, headers=()):
    """Sends events of a client to the application; returns the status of its answer."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/models/echo:predict",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), *headers],
    }
    waiting = list(events)
    sent = AsyncMock()

    async def receive():
        return waiting.pop(0) if waiting else await asyncio.sleep(5)

    await app(scope, receive, sent)
    return sent.await_args_list[0].args[0]["status"]


def test_a_client_that_leaves_is_not_computed_for(app, echo):
    for begun in (BEGIN, WHOLE):
        assert asyncio.run(send(app, begun, LEFT)) == 499
    assert echo.calls in ([], [1])


def test_bodies_that_do_not_arrive_take_no_place(app):
    app.state.limits = LIMITS.replace(requests=1)

    async def attack():
        slow = [asyncio.ensure_future(send(app, BEGIN)) for _ in range(5)]
        await asyncio.sleep(0.05)
        status = await send(app, WHOLE)
        for task in slow:
            task.cancel()
        return status

    assert asyncio.run(attack()) == 200


def test_a_body_has_one_length(app):
    lengths = [(b"content-length", b"30"), (b"transfer-encoding", b"chunked")]
    assert asyncio.run(send(app, WHOLE, headers=lengths)) == 400


def test_an_answer_with_nan_is_refused_and_a_model_that_begins_with_one_is_left_out(
    client, echo, monkeypatch
):
    broken = types.SimpleNamespace(model_dump=lambda exclude_unset: {"score": float("nan")})
    monkeypatch.setattr(echo, "answer", lambda instances: [broken])
    answer = predict(client, instances=[{"text": "a"}])
    assert answer.status_code == 422
    assert "NaN, which JSON" in answer.json()["error"]


# === Loading ===


def test_a_model_that_cannot_be_loaded_is_an_error_of_the_server(echo):
    app = create_app({"echo": served(echo), "bad": Served("bad", fail, FACTS)}, LIMITS)
    with TestClient(app) as client:
        answer = client.get("/v1/models/bad/card")
        assert answer.status_code == 200
        answer = client.get("/v1/models/bad")
        assert (answer.status_code, answer.json()["error"]["message"]) == (500, "damaged")
        assert client.get("/v1/models/echo").status_code == 200


def test_a_model_is_loaded_once_when_somebody_asks_for_it(echo):
    loads = []
    model = Served("echo", lambda: loads.append(echo) or echo, FACTS, Echo)
    with TestClient(create_app({"echo": model})) as client:
        assert not client.get("/v1/models").json()["details"][0]["ready"]
        assert loads == []
        for _ in range(2):
            assert predict(client, instances=[{"text": "a"}]).status_code == 200
        assert client.get("/v1/models").json()["details"][0]["ready"]
    assert loads == [echo]


def test_a_model_that_is_being_loaded_holds_up_no_other(echo):
    event = threading.Event()
    cold = Served("cold", lambda: event.wait(60) and Echo(), FACTS, Echo)
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
        Served("bad", fail, FACTS),
        Served("strange", fail_strangely, FACTS),
        served(echo),
    ]
    busy = threading.Event()
    busy.set()
    with warming(models, busy.is_set):
        time.sleep(0.2)
        assert not models[2].ready
        busy.clear()
        until(lambda: models[2].ready)
    messages = capsys.readouterr().err
    assert "bad cannot answer: damaged" in messages
    assert (
        "strange cannot answer: the run or its index cannot be used: StopIteration: nothing there"
        in messages
    )
    assert not models[0].ready


# === Who may ask ===

KEY = "Ünlösbar"


def basic(password):
    return f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        (PREDICT, {"Host": "here"}, 200),
        (PREDICT, {"Host": "[::1]:8501"}, 200),
        (PREDICT, {"Host": "evil.example"}, 421),
        (PREDICT, {"Host": "[:"}, 421),
        (PREDICT, {"Origin": "http://here"}, 200),
        (PREDICT, {"Origin": "https://friend.example"}, 200),
        (PREDICT, {"Origin": "https://evil.example"}, 403),
        (PREDICT, {"Origin": "null"}, 403),
        (PREDICT, {"Content-Type": "text/plain"}, 415),
        (PREDICT, {"Authorization": basic(KEY)}, 200),
        (PREDICT, {"Authorization": "Bearer wrong"}, 401),
        (PREDICT, {"Authorization": f"Token {KEY}".encode()}, 401),
        (PREDICT, {"Authorization": f"Basic {KEY}".encode()}, 401),  # not in Base64
        (("GET", "/healthz"), {"Host": "evil.example"}, 421),
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
    if is_friend:
        assert "X-Skipped-Messages" in answer.headers["access-control-expose-headers"]
    assert ("www-authenticate" in answer.headers) == (status == 401)


def test_a_page_of_a_friend_may_send_the_headers_of_openais_client(echo):
    access = Access(origins=frozenset(["https://friend.example"]))
    headers = {
        "Origin": "https://friend.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-stainless-os,x-stainless-arch",
    }
    with TestClient(create_app({"echo": served(echo)}, LIMITS, access)) as client:
        answer = client.options("/v1/chat/completions", headers=headers)
    assert answer.status_code == 200
    assert "x-stainless-os" in answer.headers["access-control-allow-headers"]


# === OpenAI's chat completions ===


def chat(client, text="one two", **more):
    messages = [{"role": "system", "content": "Be brief."}, *said("user", text)]
    return client.post("/v1/chat/completions", json={"model": "echo", "messages": messages, **more})


def chunks_of(answer):
    *events, done, rest = answer.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def test_a_conversation_gets_a_reply(client):
    without_effect = {"frequency_penalty": 0, "user": "me", "tools": [], "stream": None}
    answered = chat(client, temperature=0.5, max_tokens=7, **without_effect)
    assert answered.headers["x-skipped-messages"] == "1"  # of the system
    answer = answered.json()
    [choice] = answer["choices"]
    assert choice["message"]["content"] == "one two"
    assert choice["finish_reason"] == "stop"
    assert (answer["object"], answer["model"]) == ("chat.completion", "echo")
    assert answer["usage"] == {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4}


def test_messages_of_others_are_skipped_wherever_they_are(client):
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
    tool = {"role": "tool", "tool_call_id": "c", "content": "sunny"}
    system = {"role": "system", "content": "Be brief."}
    messages = [call, tool, *said("user", "one two"), system]
    body = {"model": "echo", "messages": messages}
    answered = client.post("/v1/chat/completions", json=body)
    assert answered.headers["x-skipped-messages"] == "2"
    assert answered.json()["choices"][0]["message"]["content"] == "one two"
    answered = client.post("/v1/chat/completions", json={**body, "messages": [system]})
    assert answered.json()["error"]["message"].endswith("Received: system")
    answered = client.post("/v1/chat/completions", json={**body, "temperature": "0.7"})
    assert answered.json()["error"]["message"].endswith("valid number. Received: '0.7'")


def test_messages_of_one_speaker_in_a_row_are_one_turn():
    """Models of two speakers take every second turn for the user's: helplines depend on it."""
    messages = [{"role": "user", "content": text} for text in ("I want to die", "hello?")]
    assert ChatRequest(model="chat", messages=messages).turns() == [
        ("user", "I want to die\nhello?")
    ]


def test_a_reply_is_cut_at_characters_where_a_language_has_no_spaces(client):
    chunks = chunks_of(chat(client, "\u4f60\u597d ok", stream=True))
    texts = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    assert texts[1:4] == ["\u4f60", "\u597d", " ok"]


@pytest.mark.parametrize(
    ("fields", "search"),
    [
        ({}, ""),
        ({"temperature": 0, "top_p": 0.5}, ""),
        ({"top_p": 0.5}, "sample=true,temperature=1.0,top_p=0.5"),
        ({"temperature": 0.7}, "sample=true,temperature=0.7,top_p=1"),
    ],
)
def test_temperature_and_top_p_are_a_search(fields, search):
    messages = [{"role": "user", "content": "hello"}]
    assert ChatRequest(model="chat", messages=messages, **fields).search() == search


def test_a_reply_is_streamed_word_by_word(client):
    answer = chat(client, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    chunks = chunks_of(answer)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    assert deltas == ["", "one", " two", None]


def test_max_tokens_stop_and_usage_are_honoured(client):
    [choice] = chat(client, "one two three", max_tokens=2).json()["choices"]
    assert choice["message"]["content"] == "one two"
    assert choice["finish_reason"] == "length"
    assert chat(client, top_k=5).json()["error"]["param"] == "top_k"
    for stop in ("two", ["zero", " two"], ["three", " two"]):
        [choice] = chat(client, "one two three", stop=stop).json()["choices"]
        whole = choice["message"]["content"]
        assert whole.strip() == "one"
        assert choice["finish_reason"] == "stop"
        chunks = chunks_of(chat(client, "one two three", stop=stop, stream=True))
        deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
        assert "".join(deltas) == whole
    options = {"include_usage": True}
    *_, last, usage = chunks_of(chat(client, max_tokens=1, stream=True, stream_options=options))
    assert last["choices"][0]["finish_reason"] == "length"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 1


@pytest.mark.parametrize("text", ["a-" * 20_000, "a " * 20_000, " " * 40_000 + "a", "a" * 40_000])
def test_a_long_reply_is_cut_at_once(echo, text):
    limits = Limits(max_rows=100_000)
    with TestClient(create_app({"echo": served(echo)}, limits)) as client:
        start = time.perf_counter()
        assert chat(client, text, max_tokens=5).status_code == 200
        assert time.perf_counter() - start < 2
