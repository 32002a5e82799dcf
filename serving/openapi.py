"""The OpenAPI document, from which clients are generated: each model's paths with its instances, answers and errors."""

import html
import json
import re

from serving.chat_completions import ChatRequest

TITLE = "Colloquy"
REFUSED = {401: "no key", 403: "a foreign page", 421: "another host", 503: "stopping, or too many requests"}
GET = {404: "no such model or version", **REFUSED}
POST = {
    **{400: "a wrong request", **GET, 408: "the body was late", 413: "too large", 415: "no JSON"},
    **{422: "an answer with NaN", 429: "the queue is full", 504: "no answer in time"},
}
FREE = {"type": "object", "additionalProperties": True}
ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
OPENAI_ERROR = {"type": "object", "properties": {"error": FREE}, "required": ["error"]}
EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}
ATTENTION = {"attention": {"type": "array", "items": FREE}}
TENSOR = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "datatype": {"type": "string", "enum": ["BYTES", "FP64", "INT64", "BOOL"]},
        "data": {"type": "array", "items": {}},
    },
    "required": ["name", "shape", "datatype", "data"],
}


def document(models):
    """The document for models, described by their `metadata`."""
    schemas = {"Error": ERROR, "OpenAIError": OPENAI_ERROR, "Tensor": TENSOR}
    _add(schemas, "ChatRequest", ChatRequest.model_json_schema(), "Chat")
    names = [model["name"] for model in models]
    chat = {"model": (names or ["NAME"])[0], "messages": [{"role": "user", "content": "Hello"}]}
    paths = {
        "/healthz": {"get": _operation("health", "Is the server up?", FREE, REFUSED, error=FREE)},
        "/v1/models": {"get": _operation("models", "Names, tasks and titles of the models", FREE, GET)},
        "/v1/chat/completions": {
            "post": _operation(
                "chat", "Replies to a conversation", FREE, POST, _ref("ChatRequest"), chat, _ref("OpenAIError"), EVENTS
            )
        },
    }
    for model in models:
        of = _identifier(model["name"])
        for kind in ("instance", "answer"):
            _add(schemas, f"{of}_{kind}", model[kind], f"{of}_")
        paths |= _paths_of(model)
    info = {"title": TITLE, "version": "1", "description": "Models that rank, read, talk and book tables."}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _identifier(name):
    return re.sub(r"\W", "_", name)


def _paths_of(model):
    """The paths of a model, from its `metadata`."""
    name, of, examples = model["name"], _identifier(model["name"]), model.get("examples", [])[:1]
    request, v1, v2 = _lists("instances", _ref(f"{of}_instance")), f"/v1/models/{name}", f"/v2/models/{name}"
    answer = _lists("predictions", _ref(f"{of}_answer"))
    explained = _lists("explanations", {"allOf": [_ref(f"{of}_answer")], "type": "object", "properties": ATTENTION})
    example = tensors = None
    if examples:
        instance = examples[0]["instance"]
        example = {"instances": [instance]}
        tensors = {"inputs": [_example_tensor(*each) for each in instance.items()]}
    of_tensors = _lists("outputs", _ref("Tensor")), POST, _lists("inputs", _ref("Tensor")), tensors
    ready = _operation(f"ready_{of}", "Is the model loaded?", FREE, GET, error=FREE)
    return {
        v1: {"get": _operation(f"state_{of}", f"State, scores and examples of {name}", FREE, GET)},
        f"{v1}/metadata": {"get": _operation(f"metadata_{of}", "The same, with signatures", FREE, GET)},
        f"{v1}:predict": {"post": _operation(f"predict_{of}", "Answers instances", answer, POST, request, example)},
        f"{v1}:explain": {
            "post": _operation(f"explain_{of}", "An answer with attention", explained, POST, request, example)
        },
        v2: {"get": _operation(f"tensors_{of}", "Tensors of the model", FREE, GET)},
        f"{v2}/ready": {"get": ready},
        f"{v2}/infer": {"post": _operation(f"infer_{of}", "Answers tensors", *of_tensors)},
    }


def _example_tensor(field, value):
    return {"name": field, "shape": [1], "datatype": "BYTES", "data": [_text(value)]}


def _text(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


def _lists(field, items):
    return {"type": "object", "properties": {field: {"type": "array", "items": items}}, "required": [field]}


def _add(schemas, name, schema, prefix):
    """Adds a schema of pydantic's and those that it refers to, under names of their own."""
    schema = json.loads(json.dumps(schema).replace("#/$defs/", f"#/components/schemas/{prefix}"))
    inner = schema.pop("$defs", {})
    found = {name: schema} | {prefix + inner_name: value for inner_name, value in inner.items()}
    schemas |= {key: {k: v for k, v in value.items() if k != "title"} for key, value in found.items()}


def _operation(id, summary, answer, errors, request=None, example=None, error=None, other_content=None):
    content = {"application/json": {"schema": answer}, **(other_content or {})}
    responses = {"200": {"description": "The answer", "content": content}}
    for status, reason in errors.items():
        content = {"application/json": {"schema": error or _ref("Error")}}
        responses[str(status)] = {"description": reason, "content": content}
    body = {"schema": request, **({"example": example} if example else {})}
    more = {"requestBody": {"required": True, "content": {"application/json": body}}} if request else {}
    return {"operationId": id, "summary": summary, "responses": responses, **more}


def page(document):
    """An HTML page of the document, which loads nothing from other sites."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Colloquy: REST</title>",
        "<link rel=stylesheet href=pages/style.css><main><h1>REST</h1>",
        "<p>For generated clients: <a href=openapi.json>openapi.json</a>. <a href=./>The pages</a>",
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<h2>{method.upper()} {html.escape(path)}</h2><p>{html.escape(operation['summary'])}")
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if "example" in body:
                parts.append(f"<pre>{html.escape(json.dumps(body['example'], indent=1, ensure_ascii=False))}</pre>")
            errors = (f"{status} {response['description']}" for status, response in operation["responses"].items())
            parts.append(f"<p><small>{html.escape('; '.join(errors))}</small>")
    for name, schema in document["components"]["schemas"].items():
        parts.append(f"<h2 id={html.escape(name)}>{html.escape(name)}</h2><dl>")
        for field, value in schema.get("properties", {}).items():
            parts.append(f"<dt><code>{html.escape(field)}</code> {html.escape(str(value.get('type', '')))}")
            parts.append(f"<dd>{html.escape(value.get('description', ''))}")
        parts.append("</dl>")
    return "".join(parts)
