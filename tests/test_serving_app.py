"""serving/: REST and limits, with models that answer at once; real ones in
test_serving_models.py.
"""

import asyncio
import base64
import concurrent.futures
import functools
import json
import re
import threading
import types
from unittest.mock import AsyncMock, Mock

import pytest
from echo import Echo, served
from fastapi.testclient import TestClient
from helpers import refusal, until

from colloquy.base.files import UserError
from colloquy.serving import chat_completions, open_inference, openapi
from colloquy.serving.app import app_of, create_app, router
from colloquy.serving.limits import Access, Limits, RequestError
from colloquy.serving.models import Served, warming

LIMITS = Limits(
    **{
        "max_body_bytes": 3000,
        "instances": 5,
        "items": 7,
        "max_tokens": 11,
        "instance_tokens": 13,
        "characters": 130,
    },
    **{"depth": 7, "max_work": 50, "large": 20, "requests": 9},
)
HASTY = LIMITS.replace(timeout_seconds=0.5)


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def app(echo):
    examples = [{"title": "short", "instance": {"text": "ab", "inside": [{"text": "c"}]}}]
    return create_app({"echo": served(echo, task="echo", examples=examples)}, LIMITS)


@pytest.fixture
def client(app):
    with TestClient(app, headers={"Content-Type": "application/json"}) as client:
        client.get("/v1/models/echo")  # loads it
        yield client


def fail():
    raise UserError("damaged")


def predict(client, **body):
    return client.post("/v1/models/echo:predict", json=body)


def test_instances_and_columns_are_answered_in_order(client):
    texts = {"ab": 2, "": 0, "日本語": 3}
    expected = [{"length": length, "text": text} for text, length in texts.items()]
    assert predict(client, instances=[{"text": text} for text in texts]).json() == {
        "predictions": expected
    }
    assert predict(client, inputs={"text": ["a", "bc"]}).json() == {
        "outputs": {"length": [1, 2], "text": ["a", "bc"]}
    }


def test_versions_metadata_health_and_explanations(client):
    state = client.get("/v1/models/echo").json()["model_version_status"][0]
    assert (state["version"], state["state"]) == ("2", "AVAILABLE")
    path = "/v1/models/echo/versions/2:predict"
    assert (
        client.post(path, json={"instances": [{"text": "a"}]}).json()["predictions"][0]["length"]
        == 1
    )
    metadata = client.get("/v1/models/echo/metadata").json()["metadata"]
    assert (metadata["name"], metadata["version"], metadata["task"]) == ("echo", "2", "echo")
    assert (
        metadata["instance"]["required"] == ["text"]
        and "length" in metadata["answer"]["properties"]
    )
    assert "DT_STRING" in str(
        metadata["signature_def"]["signature_def"]["serving_default"]["inputs"]["text"]
    )
    facts = {
        "id": "echo",
        "object": "model",
        "created": 0,
        "owned_by": "colloquy",
        "task": "echo",
        "ready": True,
    }
    assert client.get("/v1/models").json() == {
        "models": ["echo"],
        "object": "list",
        "data": [facts],
    }
    assert (
        client.get("/v1/models/echo").json()["answer"] == metadata["answer"]
        and client.head("/").status_code == 200
    )
    assert client.get("/healthz").json() == {"status": "ok", "models": ["echo"]}
    [found] = client.post("/v1/models/echo:explain", json={"instances": [{"text": "hi"}]}).json()[
        "explanations"
    ]
    assert found["length"] == 2 and found["attention"][0]["rows"] == ["h", "i"]
    two = client.post("/v1/models/echo:explain", json={"instances": [{"text": "hi"}] * 2})
    assert two.status_code == 413 and "Received: 2" in two.json()["error"]


def test_openapi_describes_every_path_by_its_own_answers_and_docs_show_them(client):
    document = client.get("/openapi.json").json()

    def part(reference):
        return functools.reduce(
            lambda value, name: value[name], reference["$ref"].split("/")[1:], document
        )

    for reference in re.findall(r'{"\$ref": "[^"]+"}', json.dumps(document)):
        assert part(json.loads(reference))
    operation = document["paths"]["/v1/models/echo:predict"]["post"]
    bodies = (
        operation["requestBody"],
        operation["responses"]["200"],
        part(operation["responses"]["413"]),
    )
    contents = [body["content"]["application/json"] for body in bodies]
    assert [part(content["schema"])["properties"] for content in contents] == [
        {
            "instances": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/echo_instance"},
                "minItems": 1,
            }
        },
        {
            "predictions": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/echo_answer"},
                "minItems": 1,
            }
        },
        {"error": {"type": "string"}},
    ]
    asked, answered, _ = (content["examples"]["first"]["value"] for content in contents)
    assert (
        answered
        == predict(client, **asked).json()
        == {"predictions": [{"length": 2, "text": "ab"}]}
    )
    assert document["components"]["schemas"]["echo_Letter"]["required"] == ["text"]
    described = [
        operation["responses"]["200"]
        for each in document["paths"].values()
        for operation in each.values()
    ]
    for answer in [*described, *document["components"]["responses"].values()]:
        for kind, content in answer["content"].items():
            assert "examples" in content or kind == "text/event-stream", answer
    listed = {path.replace("models/echo", "models/{model:model}") for path in document["paths"]}
    served = {
        route.path
        for each in (router, chat_completions.router, open_inference.router)
        for route in each.routes
    }
    assert served - listed == {"/docs", "/openapi.json", "/pages/{file}"}
    page = client.get("/docs")
    # for phones
    assert "POST /v1/models/echo:predict" in page.text and "name=viewport" in page.text
    assert not re.search("https?://(?!example)", page.text)


def test_early_clients_share_one_computation_of_the_openapi_document(client, monkeypatch):
    document = Mock(side_effect=lambda request: asyncio.sleep(0.2, {"openapi": "3.1.0"}))
    monkeypatch.setattr(openapi, "document", document)
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda _: client.get("/openapi.json").json(), range(3)))
    assert found == [{"openapi": "3.1.0"}] * 3 and document.call_count == 1


def test_a_model_that_cannot_be_loaded_is_an_error_of_the_server_and_openapi_leaves_it_out(echo):
    client = TestClient(
        create_app({"echo": served(echo), "bad": Served("bad", "1", fail, {})}, LIMITS)
    )
    paths = client.get("/openapi.json").json()["paths"]
    answer = client.get("/v1/models/bad")
    assert (answer.status_code, answer.json()) == (500, {"error": "damaged"})
    assert "/v2/models/echo/infer" in paths and "/v2/models/bad/infer" not in paths


def test_tensors_of_the_open_inference_protocol_are_answered(client):
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/echo/ready"):
        assert client.get(path).status_code == 200
    described = client.get("/v2/models/echo/versions/2").json()
    assert described["inputs"][0] == {"name": "text", "datatype": "BYTES", "shape": [-1]}
    text = {"name": "text", "shape": [2], "datatype": "BYTES", "data": ["ab", "abc"]}
    inside = {**text, "name": "inside", "data": ['[{"text": "x"}]', "[]"]}
    answer = client.post("/v2/models/echo/infer", json={"id": "7", "inputs": [text, inside]}).json()
    assert answer["id"] == "7" and answer["outputs"] == [
        {"name": "length", "shape": [2], "datatype": "INT64", "data": [2, 3]},
        {"name": "text", "shape": [2], "datatype": "BYTES", "data": ["ab", "abc"]},
    ]
    changes = [
        *({"shape": shape} for shape in ([3], [0], [1, 1, 2])),
        {"datatype": "FP8"},
        {"data": "a"},
        {"name": 1},
    ]
    wrong_inputs = [[{**text, **change}] for change in changes]
    for shape in ([10**7, 0], [10**30, 0]):  # without data
        inputs = [{**text, "shape": shape, "data": []}]
        assert client.post("/v2/models/echo/infer", json={"inputs": inputs}).status_code == 413
    for wrong in (
        {},
        *(
            {"inputs": each}
            for each in ([], [text, {**inside, "data": ["[", "[]"]}], *wrong_inputs)
        ),
    ):
        assert client.post("/v2/models/echo/infer", json=wrong).status_code == 400


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        *(
            (body, 400, "must be JSON")
            for body in (b"{", b"\xff{}", b'{"text": "\\ud800"}', b'{"\\ud800": 1}')
        ),
        (b"[" * 2900, 400, "must be JSON|nested"),
        (b'{"instances": [{"text": NaN}]}', 400, "must be JSON: .*column 25"),
        (b'{"instances": [{"text": 1e999}]}', 400, "a number beyond"),
        (b"[]", 400, "JSON object. Received: list"),
        (b"{}", 400, "one of `instances` and `inputs`"),
        (b'{"instances": [{}], "inputs": {"text": []}}', 400, "one of `instances` and `inputs`"),
        (
            b'{"signature_name": "rank", "inputs": {"text": []}}',
            400,
            "signature_name: .*serving_default.*ed: rank",
        ),
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
        ([{"text": "!" * 12}], 413, "0: `text` may have 11 tokens at most. Received: 12"),
        (
            [{"text": "a " * 9, "inside": [{"text": "b " * 5}]}],
            413,
            "instance 0 may have 13 tokens .* Received: 14",
        ),
        (
            [{"text": "a " * 10}, *[{"text": "a"}] * 4],
            413,
            r"\(5 rows of 11 x 1, padded\) may have 50 cells .*: 55",
        ),
        (b" " * 3001, 413, "3,000 bytes at most"),
        # without a length it is read no further
        (iter([b"x" * 1000] * 9), 413, "3,000 bytes at most"),
    ],
)
def test_a_wrong_request_gets_its_status_and_one_sentence_before_it_waits(
    client, echo, body, status, message
):
    content = json.dumps({"instances": body}).encode() if isinstance(body, list) else body
    answer = client.post("/v1/models/echo:predict", content=content)
    assert answer.status_code == status and echo.calls == []
    [(key, text)] = answer.json().items()
    assert key == "error" and len(text) < 400
    assert re.search(message, text), text


@pytest.mark.parametrize(
    ("status", "request_line"),
    [
        *(
            (404, f"POST /v1/models/{model}:predict")
            for model in ("other", "echo/versions/3", "echo/labels/canary")
        ),
        *(
            (404, f"GET /{path}")
            for path in ("nothing", "v1/models/other", "v1/models/echo/versions/3")
        ),
        *((404, f"GET /pages/{file}") for file in ("../app.py", "%2e%2e%2fapp.py", "missing.js")),
        *((405, f"{each} /v1/models/echo") for each in ("POST", "DELETE")),
        (405, "GET /v1/models/echo:predict"),
    ],
)
def test_unknown_paths_are_refused(client, status, request_line):
    method, path = request_line.split()
    answer = client.request(
        method, path, json={"instances": [{"text": "a"}]} if method == "POST" else None
    )
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert ("allow" in answer.headers) == (status == 405)


def test_an_answer_that_takes_too_long_is_given_up(app, client, echo):
    app.state.limits = HASTY
    answer = predict(client, instances=[{"text": "a", "wait": True}])
    echo.event.set()
    assert (answer.status_code, answer.json()) == (504, {"error": "no answer within 0.5 seconds"})


def test_a_model_is_loaded_once_when_somebody_asks_for_it(echo):
    model, loads = Served("echo", "2", lambda: loads.append(echo) or echo, {"task": "echo"}), []
    with TestClient(create_app({"echo": model})) as client:
        assert not client.get("/v1/models").json()["data"][0]["ready"] and not loads
        assert client.get("/v2/models/echo/ready").status_code == 503
        assert [predict(client, instances=[{"text": "a"}]).status_code for _ in range(2)] == [
            200,
            200,
        ]
        assert client.get("/v1/models").json()["data"][0]["ready"] and loads == [echo]


def test_a_model_that_is_being_loaded_holds_up_no_other(echo):
    event = threading.Event()
    cold = Served("cold", "1", lambda: event.wait(5) and Echo(), {})
    app = create_app({"echo": served(echo), "cold": cold})
    with TestClient(app) as client, concurrent.futures.ThreadPoolExecutor(40) as threads:
        predict(client, instances=[{"text": "a"}])  # loads it
        found = [threads.submit(client.get, "/v1/models/cold") for _ in range(40)]
        until(lambda: app.state.requests == 40)
        assert predict(client, instances=[{"text": "a"}]).status_code == 200
        assert not any(each.done() for each in found)
        event.set()
        assert {each.result().status_code for each in found} == {200}


def test_models_are_loaded_and_warmed_up_while_nobody_asks_until_the_end(echo, capsys):
    good, bad = served(echo, examples=[{"instance": {"text": "a"}}]), Served("bad", "1", fail, {})
    busy = threading.Event()
    busy.set()
    with warming([good, bad], busy.is_set):
        assert not good.ready
        busy.clear()
        until(lambda: echo.calls)
        busy.set()
    assert "bad cannot answer: damaged" in capsys.readouterr().err and not bad.ready


def test_a_model_without_a_replica_is_unavailable():
    model = types.SimpleNamespace(
        **{name: AsyncMock() for name in ("start", "predict", "close")}, version="1"
    )
    model.predict.side_effect = RequestError(503, "no replica of gone answers now: try again later")
    with TestClient(app_of({"gone": model})) as client:
        assert model.start.await_count == 1
        answer = client.post("/v1/models/gone:predict", json={"instances": [{"text": "a"}]})
    assert (answer.status_code, answer.headers["retry-after"], model.close.await_count) == (
        503,
        "1",
        1,
    )
    assert answer.json() == {"error": "no replica of gone answers now: try again later"}


def test_prometheus_counts_requests_by_status(client):
    predict(client, instances=[{"text": "a"}, {"text": "b"}])
    predict(client, instances=[])
    lines = client.get("/metrics").text.splitlines()
    assert any(
        line.startswith("process_resident_memory_bytes ") and float(line.split()[1]) > 1e7
        for line in lines
    )
    for status in ("200", "400"):
        assert (
            f'colloquy_requests_total{{model="echo",status="{status}",verb="predict"}} 1.0' in lines
        )
    assert 'colloquy_batch_instances_sum{model="echo",verb="predict"} 2.0' in lines
    client.post("/v1/models/echo:explain", json={"instances": [{"text": "a"}]})
    assert (
        'colloquy_model_seconds_count{model="echo",verb="explain"} 1.0'
        in client.get("/metrics").text
    )
    assert 'colloquy_queue_instances{model="echo"} 0.0' in lines


def test_the_page_runs_only_scripts_of_this_server(client):
    page = client.get("/", headers={"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"})
    assert client.get("/").json() == {"status": "alive"}
    assert (
        "script-src 'self'" in page.headers["content-security-policy"] and "Colloquy" in page.text
    )
    assert "Accept" in page.headers["vary"]
    assert client.get("/pages/app.js").headers["content-type"].startswith("text/javascript")
    assert "http://" not in page.text and "https://" not in page.text


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
    }
    scope["headers"], sent = [(b"content-type", b"application/json")], AsyncMock()
    events = iter([{"type": "http.request", **body}, then])
    app.state.limits = HASTY if status == 408 else LIMITS

    async def receive():
        return next(events) or await asyncio.sleep(5)

    asyncio.run(app(scope, receive, sent))
    assert sent.await_args_list[0].args[0]["status"] == status and echo.calls == []


def test_an_answer_with_nan_is_refused_and_so_is_a_model_that_warms_up_with_it(
    client, echo, monkeypatch
):
    broken = types.SimpleNamespace(model_dump=lambda exclude_unset: {"score": float("nan")})
    monkeypatch.setattr(echo, "answer", lambda instances: [broken])
    answer = predict(client, instances=[{"text": "a"}])
    assert answer.status_code == 422 and "NaN, which JSON" in answer.json()["error"]
    model = served(echo, "m", examples=[{"instance": {"text": "a"}}])
    assert "m answers its examples with NaN or infinity" in refusal(model.warm_up)


# === Who may ask ===

KEY = "Ünlösbar"
POST = "POST", "/v1/models/echo:predict"


def basic(password):
    return f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        *((POST, {"Host": host}, 200) for host in ("here", "127.0.0.1:8501", "[::1]:8501")),
        *((POST, {"Host": host}, 421) for host in ("evil.example", "[:")),
        *((POST, {"Origin": origin}, 200) for origin in ("http://here", "https://friend.example")),
        *(
            (POST, {"Origin": origin}, 403)
            for origin in ("https://evil.example", "null", "http://[")
        ),
        (POST, {"Content-Type": "application/json; charset=utf-8"}, 200),
        *(
            (POST, {"Content-Type": kind}, 415)
            for kind in ("text/plain", "application/x-www-form-urlencoded")
        ),
        (POST, {"Authorization": basic(KEY)}, 200),
        *(
            (POST, {"Authorization": key}, 401)
            for key in ("Bearer wrong", basic("wrong"), "Basic %")
        ),
        (POST, {"Authorization": f"Basic {KEY}".encode()}, 401),  # not in Base64
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
    with TestClient(app) as client:
        body = b'{"instances": [{"text": "a"}]}' if request_line == POST else None
        answer = client.request(*request_line, content=body, headers={**usual, **headers})
    assert answer.status_code == status and (status == 200 or list(answer.json()) == ["error"])
    assert ("access-control-allow-origin" in answer.headers) == (
        headers.get("Origin") == "https://friend.example"
    )
    assert ("www-authenticate" in answer.headers) == (status == 401)


def test_more_requests_than_may_be_open_are_refused(app, client):
    app.state.requests = LIMITS.requests
    answer = predict(client, instances=[{"text": "a"}])
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert client.get("/healthz").status_code == 200


# === OpenAI's chat completions ===


def chat(client, text="one two", **more):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    return client.post("/v1/chat/completions", json={"model": "echo", "messages": messages, **more})


def test_a_conversation_gets_a_reply_at_once_or_word_by_word(client):
    answer = chat(client, temperature=0.5, max_tokens=7, frequency_penalty=0, stream=None).json()
    assert (
        answer["choices"][0]["message"]["content"] == "one two"
        and answer["choices"][0]["finish_reason"] == "stop"
    )
    assert (answer["object"], answer["model"], answer["usage"]["completion_tokens"]) == (
        "chat.completion",
        "echo",
        2,
    )
    assert "explanation" not in answer
    assert chat(client, explain=True).json()["explanation"] == {"length": 7, "text": "one two"}
    answer = chat(client, stream=True, explain=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, done, rest = answer.text.split("\n\n")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    assert (done, rest) == ("data: [DONE]", "") and {chunk["object"] for chunk in chunks} == {
        "chat.completion.chunk"
    }
    deltas = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    assert deltas == ["", "one", " two", None] and chunks[-1]["explanation"]["text"] == "one two"


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        ({"model": "other"}, 404, "there is no model 'other'"),
        ({"model": ""}, 404, "there is no model"),
        ({"messages": []}, 400, "messages"),
        (
            {"messages": [{"role": "assistant", "content": "a"}]},
            400,
            "the last one to be the user's",
        ),
        ({"n": 2}, 400, "n: .*Received: 2"),
        ({"text": "a " * 12}, 413, "may have 11 tokens at most"),
        ({"text": "a " * 12, "stream": True}, 413, "may have 11 tokens at most"),
        ({"text": "boom", "stream": True}, 400, "no boom"),
    ],
)
def test_a_wrong_conversation_gets_an_error_as_openais(client, more, status, message):
    answer = chat(client, **more)
    assert answer.status_code == status and re.search(message, answer.json()["error"]["message"])


def test_an_error_after_the_first_word_ends_the_stream(client):
    *_, last, rest = chat(client, "one boom", stream=True).text.split("\n\n")
    assert json.loads(last.removeprefix("data: "))["error"]["message"] == "no boom" and rest == ""
