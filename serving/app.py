"""The web application: REST as TensorFlow Serving, KServe and OpenAI have it, metrics and pages.

    GET  /v1/models                   names, tasks and titles; which models are loaded
    GET  /v1/models/NAME              state and metadata of a model
    GET  /v1/models/NAME/metadata     the metadata as TensorFlow Serving has it
    GET  /v1/models/NAME/knowledge    what a dialog model knows
    GET  /v1/models/NAME/card         title, scores, examples and card; loads nothing
    POST /v1/models/NAME:predict      {"instances": [{...}]} -> {"predictions": [...]}
                                      {"inputs": {field: [...]}} -> {"outputs": {field: [...]}}
    POST /v1/models/NAME:explain      {"instances": [{...}]} -> {"explanations": [...]}
    POST /v1/chat/completions         see serving/chat_completions.py
    GET  /healthz  /metrics  /openapi.json  /docs
    GET  /                            the pages; {"status": "alive"} if HTML is not accepted

`/versions/N` or `/labels/stable` may follow `NAME`. An error is `{"error": "one sentence"}`.
"""

import asyncio
import contextlib
import functools
from typing import Annotated, Literal

import prometheus_client
from fastapi import APIRouter, FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from pydantic import Field, model_validator
from starlette.exceptions import HTTPException

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.serving import chat_completions, openapi
from colloquy.serving.access import Access, Guard
from colloquy.serving.batching import BatchedModel
from colloquy.serving.limits import (
    Limits,
    RequestError,
    check_instances,
    find_model,
    make_content,
    make_json,
    read_body,
    respond,
    respond_error,
    wait_for_answer,
)
from colloquy.serving.models import openai_model
from colloquy.serving.page_files import DOCS, INDEX, find_pages, headers_of, media_type

DESCRIPTION = (
    "Models that rank, read, talk and book tables. `/versions/N` or `/labels/stable` may follow a "
    "model's name."
)
BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64]
router = APIRouter()


class Metrics:
    """Counters and histograms that Prometheus reads at /metrics, of this process."""

    def __init__(self):
        self.registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)
        options = {"namespace": "colloquy", "registry": self.registry}
        self._requests = prometheus_client.Counter(
            "requests", "Requests answered.", ["model", "verb", "status"], **options
        )
        self._request_seconds = prometheus_client.Histogram(
            "request_seconds",
            "From a request's arrival to its answer.",
            ["model", "verb"],
            **options,
        )
        self._batch_instances = prometheus_client.Histogram(
            "batch_instances",
            "Instances per call of a model.",
            ["model", "verb"],
            buckets=BATCH_SIZES,
            **options,
        )
        self._model_seconds = prometheus_client.Histogram(
            "model_seconds", "Seconds per call of a model.", ["model", "verb"], **options
        )
        self._queued = prometheus_client.Gauge(
            "queue_instances", "Instances that wait.", ["model"], **options
        )

    def count_request(self, model, verb, status, seconds):
        self._requests.labels(model, verb, status).inc()
        self._request_seconds.labels(model, verb).observe(seconds)

    def count_batch(self, model, verb, instances, seconds):
        self._batch_instances.labels(model, verb).observe(instances)
        self._model_seconds.labels(model, verb).observe(seconds)

    def as_text(self, queued):
        """Everything as Prometheus reads it; `queued` is `{model: instances that wait}`."""
        for model, count in queued.items():
            self._queued.labels(model).set(count)
        return prometheus_client.generate_latest(self.registry)


def create_app(models, limits=None, access=None):
    """Makes the application.

    Args:
        models: `{name: serving.models.Served}`.
        limits: `serving.limits.Limits`.
        access: `serving.access.Access`.
    """
    limits = limits or Limits()
    access = access or Access()
    metrics = Metrics()
    batched_models = {}
    for name, model in models.items():
        count_batch = functools.partial(metrics.count_batch, name)
        batched_models[name] = BatchedModel(model, limits, count_batch)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        yield
        for model in batched_models.values():
            await model.close()

    app = FastAPI(
        title="Colloquy",
        version="1",
        description=DESCRIPTION,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        exception_handlers={UserError: handle_error, 404: handle_error, 405: handle_error},
    )
    app.state.routes = router.routes
    app.state.models = batched_models
    app.state.limits = limits
    app.state.metrics = metrics
    app.state.open_requests = 0
    app.state.stopping = False
    app.add_middleware(Guard, access=access)
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(access.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    app.include_router(router)
    app.include_router(chat_completions.router)
    return app


async def handle_error(request, error):
    """Answers a `UserError`, or a path or a method that no endpoint has."""
    path = request.url.path
    if isinstance(error, HTTPException):
        messages = {404: "not found:", 405: f"{request.method} is not allowed at"}
        message = f"{messages[error.status_code]} {path[:200]}"
        error = RequestError(error.status_code, message, error.headers)
    return respond_error(error, path)


# === GET ===


@router.get("/healthz")
async def health(request: Request):
    """Is the server up?"""
    if request.app.state.stopping:
        return JSONResponse({"status": "stopping"}, 503, {"Retry-After": "1"})
    return {"status": "ok", "models": list(request.app.state.models)}


@router.get("/metrics")
async def metrics(request: Request):
    """Counts and times, for Prometheus."""
    state = request.app.state
    queued = {model.name: model.queued for model in state.models.values()}
    text = state.metrics.as_text(queued)
    return Response(text, media_type=prometheus_client.CONTENT_TYPE_LATEST)


@router.get("/v1/models")
async def list_models(request: Request):
    """Names, tasks and titles of the models."""
    models = request.app.state.models
    rows = []
    for name, model in models.items():
        row = openai_model(name)
        for field, value in model.summary().items():
            if field in ("task", "title", "label", "default", "ready"):
                row[field] = value
        rows.append(row)
    # KServe reads `models`, OpenAI's clients read `data`.
    return {"models": list(models), "object": "list", "data": rows}


@router.get("/v1/models/{model:model}")
async def state(request: Request):
    """State, scores and examples of a model, which this loads."""
    return await _respond_part(request, "state")


@router.get("/v1/models/{model:model}/metadata")
async def metadata(request: Request):
    """Scores, examples and JSON schemas of a model, which this loads."""
    return await _respond_part(request, "metadata")


@router.get("/v1/models/{model:model}/knowledge")
async def knowledge(request: Request):
    """The facts that a dialog model knows, its restaurants, and the slots it searches by."""
    return await _respond_part(request, "knowledge")


@router.get("/v1/models/{model:model}/card")
async def card(request: Request):
    """Scores, examples and the card, as HTML, of a model that need not be loaded."""
    model = find_model(request)
    text_characters = request.app.state.limits.text_characters

    def make_card():
        return make_json({**model.card(), "text_characters": text_characters})

    return respond(request, await asyncio.to_thread(make_card))


async def _respond_part(request, part):
    description = await find_model(request).describe()
    return respond(request, description[part])


# === POST ===


class Body(Config, extra="ignore"):
    """Instances as a list, or `inputs`, a list for each field."""

    instances: Annotated[list[dict], Field(min_length=1)] | None = None
    inputs: Annotated[dict[str, list], Field(min_length=1)] | None = None
    signature_name: Literal["", "serving_default"] = ""

    @model_validator(mode="after")
    def check(self):
        if (self.instances is None) == (self.inputs is None):
            raise ValueError("expected one of `instances` and `inputs`")
        return self

    def make_instances(self):
        if self.instances is not None:
            return self.instances
        columns = self.inputs
        if len({len(column) for column in columns.values()}) > 1:
            message = "the lists of `inputs` must be equally long, one item per instance"
            raise RequestError(400, message)
        instances = []
        for row in zip(*columns.values(), strict=True):
            instances.append(dict(zip(columns, row, strict=True)))
        if not instances:
            raise RequestError(400, "expected at least one instance")
        return instances


@router.post("/v1/models/{model:model}:predict")
async def predict(request: Request):
    """Answers instances; lists by field, `inputs`, get `outputs`."""
    model = find_model(request)
    body = await read_body(request, Body)
    instances = body.make_instances()
    check_instances(instances, request.app.state.limits)
    write = write_outputs if body.instances is None else write_predictions
    content = await wait_for_answer(request, model.predict(instances, write))
    return respond(request, content)


@router.post("/v1/models/{model:model}:explain")
async def explain(request: Request):
    """Answers one instance, with attention."""
    model = find_model(request)
    body = await read_body(request, Body)
    instances = body.make_instances()
    check_instances(instances, request.app.state.limits)
    if len(instances) > 1:
        message = f"one instance is explained per request. Received: {len(instances)}"
        raise RequestError(413, message)
    content = await wait_for_answer(request, model.explain(instances[0], write_explanations))
    return respond(request, content)


def write_predictions(predictor, answers):
    return make_json({"predictions": answers})


def write_outputs(predictor, answers):
    outputs = {}
    for field in answers[0]:
        outputs[field] = [answer.get(field) for answer in answers]
    return make_json({"outputs": outputs})


def write_explanations(predictor, answers):
    return make_json({"explanations": answers})


# === Pages ===


@router.get("/")
async def root(request: Request):
    """Is the server up? Browsers get the pages."""
    if "text/html" in request.headers.get("accept", ""):
        return await page(request, INDEX)
    return {"status": "alive"}


@router.get("/pages/{file}", include_in_schema=False)
async def page(request: Request, file: str):
    path = find_pages().get(file)
    if path is None:
        raise RequestError(404, f"there is no page {file[:100]!r}")
    content = await asyncio.to_thread(_read_page, path)
    return respond(request, content, headers_of(file))


@router.get("/docs", include_in_schema=False)
async def docs(request: Request):
    return await page(request, DOCS)


@router.get("/openapi.json", include_in_schema=False)
async def openapi_document(request: Request):
    ready_models = []
    for model in request.app.state.models.values():
        if model.summary()["ready"]:
            ready_models.append((model.name, await model.load()))
    content = await asyncio.to_thread(openapi.make_document, request.app, tuple(ready_models))
    return respond(request, content)


@functools.cache
def _read_page(path):
    return make_content(path.read_bytes(), media_type(path))
