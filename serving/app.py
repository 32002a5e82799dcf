"""The web application: the REST APIs of TensorFlow Serving, KServe and OpenAI, metrics, pages.

    GET  /v1/models                   `data`: models that chat, as in OpenAI's API; `models`: all
    GET  /v1/models/NAME              loads a model; its state, scores and examples
    GET  /v1/models/NAME/card         title, scores, examples and card; does not load the model
    POST /v1/models/NAME:predict      {"instances": [{...}]} -> {"predictions": [...]}
    POST /v1/models/NAME:explain      {"instances": [{...}]} -> {"explanations": [...]}
    POST /v1/chat/completions         see serving/chat_completions.py
    GET  /healthz  /metrics  /openapi.json  /docs
    GET  /  /pages/FILE               the web pages

An error is `{"error": "one sentence"}`. Below /v1, apart from `:predict` and `:explain`, it has the
form of OpenAI's API.
"""

import asyncio
import contextlib
import json
from typing import Annotated

import prometheus_client
from fastapi import APIRouter, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from colloquy.base.config import sentence
from colloquy.base.files import UserError, in_one_line
from colloquy.serving import chat_completions, model_routes
from colloquy.serving.access import Access, Guard
from colloquy.serving.answers import JSON, OpenAIError, RequestError, make_json, respond_error
from colloquy.serving.batching import BatchedModel
from colloquy.serving.limits import Limits
from colloquy.serving.metrics import QUEUED
from colloquy.serving.model_routes import find_model
from colloquy.serving.models import openai_model
from colloquy.serving.page_files import DOCS, INDEX, find_pages, headers_of, media_type
from colloquy.serving.places import HEALTH, Places

ERRORS = {
    404: {"model": OpenAIError, "description": "There is no such model."},
    "default": {"model": OpenAIError, "description": "Another error."},
}


def create_app(models, limits=None, access=None):
    """Makes the application.

    Args:
        models: The models to serve, `{name: serving.models.Served}`.
        limits: Sizes and times of requests, `serving.limits.Limits`.
        access: Who may send requests, `serving.access.Access`; default: everybody.
    """
    limits = limits or Limits()
    access = access or Access()
    batched_models = {name: BatchedModel(model, limits) for name, model in models.items()}

    @contextlib.asynccontextmanager
    async def lifespan(_):
        yield
        for model in batched_models.values():
            await model.close()

    app = FastAPI(
        title="Colloquy",
        version="1",
        description="Models that rank, read, talk and follow dialogs.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers={
            UserError: handle_error,
            RequestValidationError: handle_error,
            HTTPException: handle_error,
            Exception: handle_error,  # outside the middleware below; the server logs it, too
        },
    )
    app.state.models = batched_models
    app.state.limits = limits
    app.state.open_requests = 0
    app.state.stopping = False
    # The middleware that is added last sees a request first: CORS answers preflight requests, which
    # have no key; `Guard` refuses a request by its headers before `Places` receives its body.
    app.add_middleware(Places)
    app.add_middleware(Guard, access=access)
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(access.origins),
            allow_methods=["GET", "POST"],
            # OpenAI's client sends a dozen headers `x-stainless-*`.
            allow_headers=["*"],
            expose_headers=["Retry-After", chat_completions.SKIPPED],
        )
    app.include_router(make_server_router())
    app.include_router(make_models_router(list(models)))
    for model in batched_models.values():
        app.include_router(model_routes.make_router(model))
    app.include_router(chat_completions.make_router(models.values()))
    return app


async def handle_error(request, error):
    """Answers a failed request with one sentence that says what is wrong."""
    path = request.url.path
    if isinstance(error, RequestValidationError):
        error = describe_invalid(error)
    elif isinstance(error, HTTPException):
        error = describe_http_error(error, request)
    elif not isinstance(error, UserError):
        error = RequestError(500, "the server failed to answer; its log has the reason")
    return respond_error(error, path)


def describe_http_error(error, request):
    """Makes the `RequestError` for an unknown path, or a method that the path does not have."""
    path = request.url.path
    status = error.status_code
    headers = error.headers
    # `/v1/models/NAME:VERB` fits the route `GET /v1/models/{model}`, so Starlette answers a POST
    # with 405 if NAME or VERB is unknown. The path is wrong, not the method: the answer is 404.
    has_verb = ":" in path.rpartition("/")[2]
    if status == 405 and has_verb and request.method == "POST":
        status = 404
        headers = None

    message = error.detail
    if status == 404:
        message = f"not found: {path[:200]}"
    elif status == 405:
        message = f"{request.method} is not allowed there"
    return RequestError(status, message, headers)


def describe_invalid(error):
    """Makes the `RequestError` for a body that its route's class refuses."""
    # The same choice as in `sentence`: the first problem that is not a missing field, if any.
    first = min(error.errors(), key=lambda problem: problem["type"] == "missing")
    # `loc` begins with "body", which is no part of the field's name.
    parts = first["loc"][1:]
    if not parts:
        received = in_one_line(json.dumps(first["input"], ensure_ascii=False))
        return RequestError(400, f"expected a JSON object as the body. Received: {received}")
    problem_in_body = {**first, "loc": parts}
    message = sentence(RequestValidationError([problem_in_body]))
    field = ".".join(str(part) for part in parts)
    return RequestError(400, message, field=field)


# === Routes ===


def make_server_router():
    """Makes the routes of the server and its pages."""
    router = APIRouter(tags=["server"])

    @router.get(HEALTH)
    async def health(request: Request):
        """The state of the server and the names of its models; needs no key."""
        if request.app.state.stopping:
            return JSONResponse({"status": "stopping"}, 503, {"Retry-After": "1"})
        return {"status": "ok", "models": list(request.app.state.models)}

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request):
        """Counts and times, for Prometheus."""
        for name, model in request.app.state.models.items():
            QUEUED.labels(name).set(model.queued)
        text = prometheus_client.generate_latest()
        return Response(text, media_type=prometheus_client.CONTENT_TYPE_LATEST)

    @router.get("/pages/{file}", include_in_schema=False)
    async def page(file: str):
        path = find_pages().get(file)
        if path is None:
            raise RequestError(404, f"there is no page {file[:100]!r}")
        return FileResponse(path, media_type=media_type(path), headers=headers_of(file))

    @router.get("/", include_in_schema=False)
    async def index():
        return await page(INDEX)

    @router.get("/docs", include_in_schema=False)
    async def docs():
        return await page(DOCS)

    return router


def make_models_router(names):
    """Makes the routes that describe models."""
    router = APIRouter(prefix="/v1/models", tags=["models"], responses=ERRORS)
    example = names[0]
    ModelName = Annotated[
        str,
        Path(
            openapi_examples={example: {"value": example}},
            description=f"One of {', '.join(names)}.",
        ),
    ]

    @router.get("")
    async def list_models(request: Request):
        """Lists the models: `data` has those that chat, as in OpenAI's API; `models` has the names
        of all, as in KServe's; `details` describes all, for the pages.
        """
        models = [model.served for model in request.app.state.models.values()]
        return {
            "object": "list",
            "data": [openai_model(model.name) for model in models if model.chats],
            "models": [model.name for model in models],
            "details": [describe_briefly(model) for model in models],
        }

    @router.get("/{model}")
    async def describe(request: Request, model: ModelName):
        """Loads a model if necessary, and returns its state, scores and examples."""
        name, _, verb = model.rpartition(":")
        if name in request.app.state.models and verb in ("predict", "explain"):
            raise HTTPException(405, headers={"Allow": "POST"})
        batched = find_model(request, model)
        await batched.load()
        return Response(make_json(batched.served.describe()), media_type=JSON)

    @router.get("/{model}/card")
    async def card(request: Request, model: ModelName):
        """Scores, examples and the card, as HTML, of a model. Does not load it."""
        served = find_model(request, model).served
        text_characters = request.app.state.limits.text_characters

        def make_card():
            return make_json({**served.card(), "text_characters": text_characters})

        return Response(await asyncio.to_thread(make_card), media_type=JSON)

    return router


def describe_briefly(served):
    """Describes a model for the pages: its name, task and titles, whether the pages open with it
    (`default`) and whether it is loaded (`ready`).
    """
    summary = served.summary()
    fields = ("task", "title", "label", "default", "ready")
    return {"name": served.name, **{field: summary[field] for field in fields}}
