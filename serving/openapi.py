"""The OpenAPI document, from which clients are generated, and a page of it.

Paths and their descriptions are FastAPI's; a path with a model is there for each one, with the
schemas of its instances and answers. Each answer in it is what the application answers to the
request beside it, the first example of the model.
"""

import asyncio
import contextlib
import html
import http
import json
import re

from colloquy.base.files import UserError
from colloquy.serving.chat_completions import ChatRequest
from colloquy.serving.limits import CHAT, HEALTH, error_body
from colloquy.serving.open_inference import Inputs, Outputs, tensor_of

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
# lists in examples of answers that are longer than the first are cut to the second
LONGEST, SHOWN = 12, 3


def _object(**fields):
    return {"type": "object", "properties": fields, "required": list(fields)}


def _list(items):
    return {"type": "array", "items": items}


def _ref(name, kind="schemas"):
    return {"$ref": f"#/components/{kind}/{name}"}


TEXT = {"type": "string"}
SCHEMAS = {
    "Any": {"type": "object"},
    "Error": _object(error=TEXT),
    "OpenAIError": _object(error=_object(message=TEXT, type=TEXT)),
    "Map": _object(
        title=TEXT, rows=_list(TEXT), columns=_list(TEXT), weights=_list(_list({"type": "number"}))
    ),
}


async def document(request):
    """The document of the application that got a request."""
    models, schemas, responses, paths = [], dict(SCHEMAS), {}, {}
    for model in request.app.state.models.values():
        with contextlib.suppress(UserError):  # one that cannot be loaded is left out
            models.append(await model.metadata())
    for kind, path in (("Error", ""), ("OpenAIError", CHAT)):
        for code, sentence in ERRORS.items():
            example = {"first": error_body(code, sentence, path)}
            responses[f"{kind}{code}"] = _content(http.HTTPStatus(code).phrase, kind, example)
    for kind in (ChatRequest, Inputs, Outputs):
        _add_schema(schemas, kind.__name__, kind.model_json_schema())
    said = [{"role": "user", "content": "Hello"}]
    bodies = {
        "chat": (
            "ChatRequest",
            {each["name"]: {"model": each["name"], "messages": said} for each in models},
        )
    }
    for model in models:
        bodies |= _add_model(schemas, model)
    described = request.app.openapi()
    for path, [(method, operation)] in (
        (path, each.items()) for path, each in described["paths"].items()
    ):
        for model in models if "{model}" in path else [{}]:
            place, id = path.format(model=model.get("name")), operation["operationId"]
            id = f"{id}_{_word(model)}" if model else id
            known = {"operationId": id, "summary": operation["description"]}
            paths[place] = {
                method: known | await _operation(request, method, place, *bodies.get(id, ()))
            }
    return {**described, "paths": paths, "components": {"schemas": schemas, "responses": responses}}


def _word(model):
    return re.sub(r"\W", "_", model["name"])


def _add_schema(schemas, name, schema, prefix=""):
    """Adds a schema of pydantic's and those that it refers to, whose names get a prefix."""
    schema = json.loads(json.dumps(schema).replace("#/$defs/", f"#/components/schemas/{prefix}"))
    inner = {prefix + key: value for key, value in schema.pop("$defs", {}).items()}
    for key, value in {name: schema, **inner}.items():
        schemas[key] = {field: part for field, part in value.items() if field != "title"}


def _add_model(schemas, model):
    """Adds the schemas of a model; returns `{operation: (schema of requests, their examples, schema
    of answers)}`.
    """
    of, answer = _word(model), model["answer"]
    explanation = {
        **answer,
        "properties": {**answer["properties"], "attention": _list(_ref("Map"))},
    }
    for name, one, schema in (
        ("instances", f"{of}_instance", model["instance"]),
        ("predictions", f"{of}_answer", answer),
        ("explanations", f"{of}_explanation", explanation),
    ):
        _add_schema(schemas, one, schema, f"{of}_")
        schemas[f"{of}_{name}"] = _object(**{name: {**_list(_ref(one)), "minItems": 1}})
    found = [example["instance"] for example in model.get("examples", [])[:1]]
    tensors = [tensor_of(field, [value]) for instance in found for field, value in instance.items()]
    instances = f"{of}_instances", {"first": {"instances": found}}
    return {
        f"predict_{of}": (*instances, f"{of}_predictions"),
        f"explain_{of}": (*instances, f"{of}_explanations"),
        f"infer_{of}": ("Inputs", {"first": {"inputs": tensors}}, "Outputs"),
    }


async def _operation(request, method, path, body=None, asked=None, answer="Any"):
    """The body and the responses at a path; `body` and `answer` name schemas, `asked` has bodies by
    name.
    """
    answers = {
        name: await _ask(request, method, path, each)
        for name, each in (asked or {"first": None}).items()
    }
    answers = {name: each for name, each in answers.items() if each is not None}
    responses = {"200": _content("The answer", answer, answers)}
    if path.startswith(CHAT):
        responses["200"]["content"]["text/event-stream"] = {"schema": TEXT}
    kind = "OpenAIError" if path.startswith(CHAT) else "Error"
    errors = {403, 421} if path in HEALTH else {401, 403, 421, 503}
    errors |= {400, 404} if body or "/models/" in path else set()
    errors |= {408, 413, 415, 422, 429, 504} if body else set()
    responses |= {str(code): _ref(f"{kind}{code}", "responses") for code in sorted(errors)}
    if path in HEALTH or path.endswith("/ready"):
        responses["503"] = _content("Stopping, not loaded, or too many requests", "Any", {})
    if body is None:
        return {"responses": responses}
    shown = {name: asked[name] for name in answers}
    return {"requestBody": {**_content("", body, shown), "required": True}, "responses": responses}


async def _ask(request, method, path, body):
    """The answer of the application, cut to a readable length; `None` if it refuses."""
    events, sent = (
        [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}],
        [],
    )

    async def receive():
        return events.pop() if events else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    line = {
        "method": method.upper(),
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
    }
    await request.app.router({**request.scope, **line, "state": {}}, receive, send)
    if sent[0]["status"] != 200:
        return None
    text = b"".join(message.get("body", b"") for message in sent).decode("utf-8")
    return _cut(json.loads(text)) if text.startswith("{") else text[:200]


def _content(description, schema, examples):
    """A request or an answer: of a schema, or text if its examples are."""
    kind, of = "application/json", _ref(schema)
    if any(isinstance(each, str) for each in examples.values()):
        kind, of = "text/plain", TEXT
    shown = (
        {"examples": {name: {"value": value} for name, value in examples.items()}}
        if examples
        else {}
    )
    return {"description": description, "content": {kind: {"schema": of, **shown}}}


def _cut(value):
    if isinstance(value, dict):
        # $ref, of a model's own schemas
        return {key: _cut(each) for key, each in value.items() if key[:1] != "$"}
    if isinstance(value, list):
        return [_cut(each) for each in (value[:SHOWN] if len(value) > LONGEST else value)]
    return value[:300] + "..." if isinstance(value, str) and len(value) > 303 else value


# === Page ===


def page(document):
    """An HTML page of the document, which loads nothing from other sites."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Colloquy: REST</title>",
        "<meta name=viewport content='width=device-width'>",
        "<link rel=stylesheet href=pages/style.css><main><h1>REST</h1>",
        f"<p>{html.escape(document['info']['description'])}",
        "<p>For generated clients: <a href=openapi.json>openapi.json</a>. <a href=./>The pages</a>",
    ]
    for path, [(method, operation)] in (
        (path, each.items()) for path, each in document["paths"].items()
    ):
        parts.append(
            f"<h2>{method.upper()} {html.escape(path)}</h2><p>{html.escape(operation['summary'])}"
        )
        for each in (operation.get("requestBody", {"content": {}}), operation["responses"]["200"]):
            for content in list(each["content"].values())[:1]:
                parts += [
                    _shown(example["value"])
                    for example in list(content.get("examples", {}).values())[:1]
                ]
        parts.append(f"<p><small>Errors: {', '.join(sorted(operation['responses'])[1:])}</small>")
    for name, schema in document["components"]["schemas"].items():
        parts.append(f"<h2 id={html.escape(name)}>{html.escape(name)}</h2><dl>")
        for field, value in schema.get("properties", {}).items():
            parts.append(
                f"<dt><code>{html.escape(field)}</code> {html.escape(str(value.get('type', '')))}"
            )
            parts.append(f"<dd>{html.escape(value.get('description', ''))}")
        parts.append("</dl>")
    return "".join(parts)


def _shown(value):
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    return f"<pre>{html.escape(text)}</pre>"
