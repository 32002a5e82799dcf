"""The OpenAPI document, from which clients are generated, and a page of it.

Each answer in it is what the application answers to the request beside it, the first example of the model.
"""

import asyncio
import contextlib
import html
import http
import json
import re

from base.files import UserError
from serving.chat_completions import ChatRequest
from serving.limits import CHAT, LABEL, error_body

JSON = "application/json"
HEALTH = (403, 421)
GET = (*HEALTH, 401, 503)
OF_MODEL = (*GET, 400, 404)
POST = (*OF_MODEL, 408, 413, 415, 422, 429, 504)
ERRORS = {
    400: "instance 0: text is missing",
    401: "expected the server's key",
    403: "pages of 'https://example.org' may not send requests here: see --cors_origins",
    404: "there is no model 'other'",
    408: "the body did not arrive within 30 seconds",
    413: "`instances` may have 64 items at most. Received: 65",
    415: "expected Content-Type: application/json. Received: 'text/plain'",
    421: "'example.org' is not a name of this server: see --allowed_hosts",
    422: "the model's answer contains infinity or NaN, which JSON cannot represent",
    429: "256 instances wait already, at most 256 may: try again later",
    503: "512 requests are open: ask again",
    504: "no answer within 30 seconds",
}
LONGEST, SHOWN = 12, 3
"""Lists in examples of answers that are longer than the first are cut to the second."""


def _object(**fields):
    return {"type": "object", "properties": fields, "required": list(fields)}


def _list(items):
    return {"type": "array", "items": items}


def _ref(name, kind="schemas"):
    return {"$ref": f"#/components/{kind}/{name}"}


TEXT, FREE = {"type": "string"}, {"type": "object", "additionalProperties": True}
SCHEMAS = {
    "Any": FREE,
    "Error": _object(error=TEXT),
    "OpenAIError": _object(error=_object(message=TEXT, type=TEXT)),
    "Map": _object(title=TEXT, rows=_list(TEXT), columns=_list(TEXT), weights=_list(_list({"type": "number"}))),
    "Tensor": _object(
        name=TEXT,
        shape=_list({"type": "integer"}),
        datatype={"type": "string", "enum": ["BYTES", "FP64", "INT64", "BOOL"]},
        data=_list({}),
    ),
    "Inputs": _object(inputs=_list(_ref("Tensor"))),
    "Outputs": _object(outputs=_list(_ref("Tensor"))),
}


async def document(request):
    """The document of the application that got a request."""
    made, models = _Document(request), []
    for model in request.app.state.models.values():
        with contextlib.suppress(UserError):  # one that cannot be loaded is left out
            models.append(await model.metadata())
    for path, id, summary, codes in (
        ("/", "alive", "Is the server up?", GET),
        ("/healthz", "health", "Is the server up?", HEALTH),
        ("/v1/models", "models", "Names, tasks and titles of the models", GET),
        ("/v2", "server", "The server", GET),
        ("/v2/health/live", "live", "Is the server up?", HEALTH),
        ("/v2/health/ready", "ready", "Does the server answer?", HEALTH),
    ):
        await made.add(path, "", id, summary, "Any", codes)
    await made.add("/metrics", "", "metrics", "Counts and times, for Prometheus", "", GET)
    made.add_schema("ChatRequest", ChatRequest.model_json_schema(), "Chat")
    said = [{"role": "user", "content": "Hello"}]
    chats = {model["name"]: {"model": model["name"], "messages": said} for model in models}
    await made.add(CHAT + "completions", "", "chat", "Replies to a conversation", "Any", POST, "ChatRequest", chats)
    for model in models:
        await _add_model(made, model)
    return made.document


async def _add_model(made, model):
    """Adds the paths of a model that is described by its `metadata`."""
    name, of = model["name"], re.sub(r"\W", "_", model["name"])
    v1, v2, answer = f"/v1/models/{name}", f"/v2/models/{name}", model["answer"]
    explained = {**answer, "properties": {**answer["properties"], "attention": _list(_ref("Map"))}}
    for kind, schema in (("instance", model["instance"]), ("answer", answer), ("explanation", explained)):
        made.add_schema(f"{of}_{kind}", schema, f"{of}_")
    for list_name, kind in (("instances", "instance"), ("predictions", "answer"), ("explanations", "explanation")):
        made.schemas[f"{of}_{list_name}"] = _object(**{list_name: {**_list(_ref(f"{of}_{kind}")), "minItems": 1}})
    found = [example["instance"] for example in model.get("examples", [])[:1]]
    instances = {"first": {"instances": found}} if found else {}
    tensors = {"first": {"inputs": [_tensor(*field) for field in found[0].items()]}} if found else {}
    await made.add(v1, "", f"state_{of}", f"State, scores and examples of {name}", "Any", OF_MODEL, of=model)
    await made.add(v1, "/metadata", f"metadata_{of}", "The same, with signatures", "Any", OF_MODEL, of=model)
    for verb, summary, answers in (
        ("predict", "Answers instances; lists by field, `inputs`, get `outputs`", "predictions"),
        ("explain", "Answers one instance, with attention", "explanations"),
    ):
        asked = f"{of}_{answers}", POST, f"{of}_instances", instances, model
        await made.add(v1, f":{verb}", f"{verb}_{of}", summary, *asked)
    await made.add(v2, "", f"tensors_{of}", f"Tensors of {name}", "Any", OF_MODEL, of=model)
    await made.add(v2, "/ready", f"ready_{of}", f"Is {name} loaded?", "Any", OF_MODEL, of=model)
    await made.add(v2, "/infer", f"infer_{of}", "Answers tensors", "Outputs", POST, "Inputs", tensors, model)


def _tensor(field, value):
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return {"name": field, "shape": [1, len(value)], "datatype": "BYTES", "data": value}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"name": field, "shape": [1], "datatype": "BYTES", "data": [text]}


class _Document:
    """A document to which paths are added; what several paths share is a component."""

    def __init__(self, request):
        self._request, self._paths, self.schemas = request, {}, dict(SCHEMAS)
        self._responses, self._bodies = {}, {}
        for kind, path in (("Error", ""), ("OpenAIError", CHAT)):
            for code, sentence in ERRORS.items():
                self._responses[f"{kind}{code}"] = _content(
                    http.HTTPStatus(code).phrase, kind, {"first": error_body(code, sentence, path)}
                )
        self._responses["Unready"] = _content("Stopping, not loaded, or too many requests", "Any", {})

    @property
    def document(self):
        """The document."""
        components = {"schemas": self.schemas, "responses": self._responses, "requestBodies": self._bodies}
        info = {"title": "Colloquy", "version": "1", "description": "Models that rank, read, talk and book tables."}
        return {"openapi": "3.1.0", "info": info, "paths": self._paths, "components": components}

    def add_schema(self, name, schema, prefix):
        """Adds a schema of pydantic's and those that it refers to, under names of their own."""
        schema = json.loads(json.dumps(schema).replace("#/$defs/", f"#/components/schemas/{prefix}"))
        inner = {prefix + key: value for key, value in schema.pop("$defs", {}).items()}
        for key, value in {name: schema, **inner}.items():
            self.schemas[key] = {field: part for field, part in value.items() if field != "title"}

    async def add(self, path, rest, id, summary, answer, errors, body=None, bodies=None, of=None):
        """Adds the operation at a path and, `of` a model, of its version and label, which come before the `rest`.

        `answer` and `body` name schemas; `""` is plain text. `bodies` are examples of requests, by name.
        """
        method, kind = "post" if body else "get", "OpenAIError" if path.startswith(CHAT) else "Error"
        asked = bodies if body else {"first": None}
        answers = {key: await self._ask(method, path + rest, value) for key, value in asked.items()}
        answers = {key: value for key, value in answers.items() if value is not None}
        self._responses[id] = _content("The answer", answer, answers)
        if kind == "OpenAIError":
            self._responses[id]["content"]["text/event-stream"] = {"schema": TEXT}
        responses = {"200": _ref(id, "responses")}
        responses |= {str(code): _ref(f"{kind}{code}", "responses") for code in errors}
        if "health" in path or rest == "/ready":
            responses["503"] = _ref("Unready", "responses")
        if body:
            self._bodies[id] = {"required": True, **_content("", body, {key: bodies[key] for key in answers or bodies})}
        for name, value in {"": "", "version": of["version"], "label": LABEL}.items() if of else [("", "")]:
            values = {"name": name, "in": "path", "required": True, "schema": {"type": "string", "enum": [value]}}
            self._paths[path + (f"/{name}s/{{{name}}}" if name else "") + rest] = {
                method: {
                    "operationId": f"{id}_{name}".strip("_"),
                    "summary": summary,
                    "parameters": [values] if name else [],
                    "responses": responses,
                    **({"requestBody": _ref(id, "requestBodies")} if body else {}),
                }
            }

    async def _ask(self, method, path, body):
        """The answer of the application, cut to a readable length; `None` if it refuses."""
        events, sent = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}], []

        async def receive():
            return events.pop() if events else await asyncio.Event().wait()

        async def send(message):
            sent.append(message)

        line = {"method": method.upper(), "path": path, "raw_path": path.encode(), "query_string": b"", "headers": []}
        await self._request.app.router({**self._request.scope, **line, "state": {}}, receive, send)
        if sent[0]["status"] != 200:
            return None
        text = b"".join(message.get("body", b"") for message in sent).decode("utf-8")
        return _cut(json.loads(text)) if text.startswith("{") else text[:200]


def _content(description, schema, examples):
    kind, schema = (JSON, _ref(schema)) if schema else ("text/plain", TEXT)
    examples = {"examples": {key: {"value": value} for key, value in examples.items()}} if examples else {}
    return {"description": description, "content": {kind: {"schema": schema, **examples}}}


def _cut(value):
    if isinstance(value, dict):
        return {key: _cut(each) for key, each in value.items() if key[:1] != "$"}  # $ref, of a model's own schemas
    if isinstance(value, list):
        return [_cut(each) for each in (value[:SHOWN] if len(value) > LONGEST else value)]
    return value[:300] + "..." if isinstance(value, str) and len(value) > 303 else value


# === Page ===


def page(document):
    """An HTML page of the document, which loads nothing from other sites."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Colloquy: REST</title>",
        "<link rel=stylesheet href=pages/style.css><main><h1>REST</h1>",
        "<p>For generated clients: <a href=openapi.json>openapi.json</a>. <a href=./>The pages</a>",
    ]
    for path, [(method, operation)] in ((path, operations.items()) for path, operations in document["paths"].items()):
        parts.append(f"<h2>{method.upper()} {html.escape(path)}</h2><p>{html.escape(operation['summary'])}")
        if not operation["parameters"]:
            shown = [operation["requestBody"]] if "requestBody" in operation else []
            shown.append(operation["responses"]["200"])
            parts += [_shown(document, reference["$ref"]) for reference in shown]
            parts.append(f"<p><small>Errors: {', '.join(sorted(operation['responses'])[1:])}</small>")
    for name, schema in document["components"]["schemas"].items():
        parts.append(f"<h2 id={html.escape(name)}>{html.escape(name)}</h2><dl>")
        for field, value in schema.get("properties", {}).items():
            parts.append(f"<dt><code>{html.escape(field)}</code> {html.escape(str(value.get('type', '')))}")
            parts.append(f"<dd>{html.escape(value.get('description', ''))}")
        parts.append("</dl>")
    return "".join(parts)


def _shown(document, reference):
    """The first example of a request or an answer."""
    _, _, kind, id = reference.split("/")
    [content, *_] = document["components"][kind][id]["content"].values()
    values = [example["value"] for example in content.get("examples", {}).values()]
    texts = [value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False) for value in values]
    return "".join(f"<pre>{html.escape(text)}</pre>" for text in texts[:1])
