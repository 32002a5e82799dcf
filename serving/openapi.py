"""The OpenAPI document: FastAPI's own, in which each loaded model has typed routes.

The real routes read their bodies by `serving.limits.read_body`, so that a large body is refused
before it is parsed. The typed ones here are described and never called.
"""

import functools

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import Field, create_model

from colloquy.base.config import Config
from colloquy.serving.chat_completions import ChatRequest
from colloquy.serving.limits import make_json


class Error(Config):
    """What went wrong, in one sentence."""

    error: str


class AttentionMap(Config):
    """Weights of each row for each column."""

    title: str
    rows: list[str]
    columns: list[str]
    weights: list[list[float]]
    cut: bool = False
    """True: the model has more rows or columns than the map."""


# Routes that have typed ones in the document.
TYPED = ("predict", "explain", "chat")
# All that a client can do something about.
ERRORS = {
    400: {"model": Error, "description": "The body or an instance is wrong."},
    413: {"model": Error, "description": "The request is too large."},
    429: {"model": Error, "description": "Too many instances wait: try again later."},
    504: {"model": Error, "description": "The answer took too long."},
}


@functools.lru_cache(maxsize=4)
def make_document(app, ready_models):
    """Makes the document as a `serving.limits.Content`.

    Args:
        app: The application.
        ready_models: `(name, predictor)` of each loaded model.
    """
    routes = []
    for route in app.state.routes:
        if route.include_in_schema and route.name not in TYPED:
            routes.append(route)
    for name, predictor in ready_models:
        examples = app.state.models[name].summary().get("examples", [])
        routes += _typed_routes(name, predictor, examples[:1])
    routes.append(_route("/v1/chat/completions", "chat", ChatRequest, None, "Replies."))
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=routes
    )
    return make_json(document)


def _typed_routes(name, predictor, examples):
    identifier = "".join(c if c.isalnum() else "_" for c in name)
    bodies = [{"instances": [example["instance"]]} for example in examples]
    Instances = create_model(
        f"{identifier}_instances",
        __config__={"json_schema_extra": {"examples": bodies}},
        instances=(list[predictor.Instance], Field(min_length=1)),
    )
    Predictions = create_model(
        f"{identifier}_predictions", predictions=(list[predictor.Answer], ...)
    )
    Explanation = create_model(
        f"{identifier}_explanation",
        __base__=predictor.Answer,
        attention=(list[AttentionMap], ...),
    )
    Explanations = create_model(f"{identifier}_explanations", explanations=(list[Explanation], ...))
    path = f"/v1/models/{name}"
    return [
        _route(
            f"{path}:predict",
            f"predict_{identifier}",
            Instances,
            Predictions,
            "Answers instances.",
        ),
        _route(
            f"{path}:explain",
            f"explain_{identifier}",
            Instances,
            Explanations,
            "Answers one instance, with attention.",
        ),
    ]


def _route(path, name, body_class, answer_class, summary):
    async def endpoint(body: body_class):
        raise NotImplementedError

    return APIRoute(
        path,
        endpoint,
        methods=["POST"],
        name=name,
        operation_id=name,
        summary=summary,
        response_model=answer_class,
        responses=ERRORS,
    )
