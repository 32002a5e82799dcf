"""The web application: TensorFlow Serving's REST dialect, KServe's and OpenAI's, metrics, health,
and the pages.

    GET  /v1/models                        names, tasks and titles; which are loaded
    GET  /v1/models/NAME                   state, and all that is known of a model
    GET  /v1/models/NAME/metadata          the same as TensorFlow Serving has it, with
    `signature_def` POST /v1/models/NAME:predict           {"instances": [{...}]} -> {"predictions":
    [...]}
                                           {"inputs": {field: [...]}} -> {"outputs": {field: [...]}}
    POST /v1/models/NAME:explain           {"instances": [{...}]} -> {"explanations": [...]}
    GET  /healthz  /metrics  /openapi.json  /docs
    GET  /                                 the pages, or {"status": "alive"} for clients that do not
    accept HTML /v1/chat/completions                   serving/chat_completions.py /v2/...
    serving/open_inference.py

`NAME` may be followed by `/versions/N` or `/labels/stable`. An error is `{"error": "one sentence"}`
with its status.
"""

import asyncio
import contextlib
import functools
import pathlib
from typing import Annotated, Literal

import prometheus_client
from fastapi import APIRouter, FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from pydantic import Field, model_validator
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.serving import chat_completions, open_inference, openapi
from colloquy.serving.batching import Batched
from colloquy.serving.limits import (
    Access,
    Guard,
    Limits,
    RequestError,
    as_json,
    check_count,
    error,
    find_model,
    instances_of,
    read,
    while_wanted,
)

PAGES = pathlib.Path(__file__).parent / "pages"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
}
"""A page runs only scripts of this server, whatever text it shows."""
DESCRIPTION = "Models that rank, read, talk and book tables. `/versions/N` or `/labels/stable` may follow a model's name."
router = APIRouter()


class Metrics:
    """Counters and histograms that Prometheus reads at /metrics."""

    def __init__(self):
        self.registry = prometheus_client.CollectorRegistry()
        options = {"namespace": "colloquy", "registry": self.registry}
        counter, histogram = prometheus_client.Counter, prometheus_client.Histogram
        of, sizes = ["model", "verb"], {"buckets": [1, 2, 4, 8, 16, 32, 64], **options}
        self._requests = counter("requests", "Requests answered.", [*of, "status"], **options)
        self._seconds = histogram(
            "request_seconds", "From a request's arrival to its answer.", of, **options
        )
        self._batch = histogram("batch_instances", "Instances per call of a model.", of, **sizes)
        self._compute = histogram("model_seconds", "Seconds per call of a model.", of, **options)
        self._queue = prometheus_client.Gauge(
            "queue_instances", "Instances that wait.", of[:1], **options
        )

    def answered(self, model, verb, status, seconds):
        self._requests.labels(model, verb, status).inc()
        self._seconds.labels(model, verb).observe(seconds)

    def computed(self, model, verb, count, seconds):
        """Counts a batch of `count` instances."""
        self._batch.labels(model, verb).observe(count)
        self._compute.labels(model, verb).observe(seconds)

    async def text(self, queued):
        """All of it for Prometheus; `queued` is `{model: instances that wait}`."""
        for model, count in queued.items():
            self._queue.labels(model).set(count)
        return prometheus_client.generate_latest(self.registry)


def create_app(models, limits=None, access=None):
    """The `fastapi.FastAPI` that serves models, `{name: serving.models.Served}`, within
    `serving.limits.Limits` to those that have `serving.limits.Access`."""
    metrics = Metrics()
    prometheus_client.ProcessCollector(registry=metrics.registry)  # memory, CPU seconds, open files
    observe = {name: functools.partial(metrics.computed, name) for name in models}
    batched = {name: Batched(model, limits, observe[name]) for name, model in models.items()}
    return app_of(batched, limits, access, metrics)


def app_of(models, limits=None, access=None, metrics=None):
    """As `create_app`, of models that are `serving.batching.Batched` or have its methods."""
    limits, access = limits or Limits(), access or Access()

    @contextlib.asynccontextmanager
    async def lifespan(_):
        for model in models.values():
            await model.start()
        yield
        for model in models.values():
            await model.close()

    handlers = {UserError: refuse, 404: refuse, 405: refuse}
    about = {"title": "Colloquy", "version": "1", "description": DESCRIPTION}
    names = {"generate_unique_id_function": lambda route: route.name}
    app = FastAPI(
        **about, **names, openapi_url=None, lifespan=lifespan, exception_handlers=handlers
    )
    app.state.models, app.state.limits, app.state.metrics = models, limits, metrics or Metrics()
    app.state.requests, app.state.stopping = 0, False  # that are open; no more may come
    app.state.openapi, app.state.describing = None, asyncio.Lock()
    app.add_middleware(GZipMiddleware, minimum_size=2000)
    app.add_middleware(Guard, access=access)
    if access.origins:
        allowed = {
            "allow_methods": ["GET", "POST"],
            "allow_headers": ["authorization", "content-type"],
        }
        app.add_middleware(CORSMiddleware, allow_origins=list(access.origins), **allowed)
    for each in (router, chat_completions.router, open_inference.router):
        app.include_router(each)
    return app


async def refuse(request, refusal):
    """The response to a `UserError`, or to a path or a method that no endpoint has."""
    path = request.url.path
    if isinstance(refusal, HTTPException):
        messages = {404: "not found:", 405: f"{request.method} is not allowed at"}
        refusal = RequestError(
            refusal.status_code, f"{messages[refusal.status_code]} {path[:200]}", refusal.headers
        )
    return error(refusal, path)


# === GET ===


@router.get("/healthz")
async def health(request: Request):
    """Is the server up?"""
    if request.app.state.stopping:
        return JSONResponse({"status": "stopping"}, 503, {"Retry-After": "1"})
    return {"status": "ok", "models": list(request.app.state.models)}


@router.get("/metrics")
async def prometheus(request: Request):
    """Counts and times, for Prometheus."""
    text = await request.app.state.metrics.text(
        {model.name: model.queued for model in request.app.state.models.values()}
    )
    return Response(text, media_type=prometheus_client.CONTENT_TYPE_LATEST)


@router.get("/v1/models")
async def all_models(request: Request):
    """Names, tasks and titles of the models."""
    models, shown = request.app.state.models, ("task", "title", "default", "ready")
    facts = {name: model.summary().items() for name, model in models.items()}
    rows = [
        _as_openai(name) | {field: value for field, value in of if field in shown}
        for name, of in facts.items()
    ]
    # `models` as KServe has it, `data` as OpenAI
    return {"models": list(models), "object": "list", "data": rows}


def _as_openai(name):
    return {"id": name, "object": "model", "created": 0, "owned_by": "colloquy"}


@router.get("/v1/models/{model:model}")
async def state(request: Request):
    """State, scores and examples of a model."""
    model = find_model(request)
    metadata, status = await model.metadata(), {"error_code": "OK", "error_message": ""}
    version = {"version": model.version, "state": "AVAILABLE", "status": status}
    return {**_as_openai(model.name), **metadata, "ready": True, "model_version_status": [version]}


@router.get("/v1/models/{model:model}/metadata")
async def metadata(request: Request):
    """State, scores and examples, with signatures."""
    model = find_model(request)
    found = await model.metadata()
    spec = {"name": model.name, "signature_name": "", "version": model.version}
    return {
        "model_spec": spec,
        "metadata": {**found, "signature_def": open_inference.signatures(found)},
    }


@router.get("/openapi.json", include_in_schema=False)
async def openapi_document(request: Request):
    state = request.app.state
    async with state.describing:
        state.openapi = state.openapi or await openapi.document(request)
    return state.openapi


@router.get("/docs", include_in_schema=False)
async def docs(request: Request):
    return HTMLResponse(openapi.page(await openapi_document(request)), headers=HEADERS)


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


async def _read(request):
    """The model of a request, its instances, and whether they came by field."""
    model, body, limits = find_model(request), await read(request, Body), request.app.state.limits
    instances = body.instances or instances_of(body.inputs)
    check_count("`instances`", len(instances), limits.instances, "items")
    return model, instances, body.instances is None


@router.post("/v1/models/{model:model}:predict")
async def predict(request: Request):
    """Answers instances; lists by field, `inputs`, get `outputs`."""
    model, instances, by_field = await _read(request)
    found = await while_wanted(request, model.predict(instances))
    if by_field:
        return as_json(
            {"outputs": {field: [each.get(field) for each in found] for field in found[0]}}
        )
    return as_json({"predictions": found})


@router.post("/v1/models/{model:model}:explain")
async def explain(request: Request):
    """Answers one instance, with attention."""
    model, instances, _ = await _read(request)
    if len(instances) > 1:
        raise RequestError(
            413, f"one instance is explained per request. Received: {len(instances)}"
        )
    return as_json({"explanations": [await while_wanted(request, model.explain(instances[0]))]})


# === Pages ===


@router.get("/")
async def root(request: Request):
    """Is the server up? Browsers get the pages."""
    return await page() if "text/html" in request.headers.get("accept", "") else {"status": "alive"}


@router.get("/pages/{file}", include_in_schema=False)
async def page(file: str = "index.html"):
    path = PAGES / file
    if path.parent != PAGES or path.suffix not in TYPES or not path.is_file():
        raise RequestError(404, f"there is no page {file[:100]!r}")
    return FileResponse(path, media_type=f"{TYPES[path.suffix]}; charset=utf-8", headers=HEADERS)
