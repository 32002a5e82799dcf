"""The web application: TensorFlow Serving's REST dialect, KServe's and OpenAI's, metrics, health, and the pages.

    GET  /v1/models                        names, tasks and titles; which are loaded
    GET  /v1/models/NAME                   state, and all that is known of a model
    GET  /v1/models/NAME/metadata          the same as TensorFlow Serving has it, with `signature_def`
    POST /v1/models/NAME:predict           {"instances": [{...}]} -> {"predictions": [...]}
                                           {"inputs": {field: [...]}} -> {"outputs": {field: [...]}}
    POST /v1/models/NAME:explain           {"instances": [{...}]} -> {"explanations": [...]}
    GET  /healthz  /metrics  /openapi.json  /docs  /
    /v1/chat/completions                   serving/chat_completions.py
    /v2/...                                serving/open_inference.py

`NAME` may be followed by `/versions/N` or `/labels/stable`. An error is `{"error": "one sentence"}` with its status.
"""

import asyncio
import contextlib
import functools
import pathlib

import prometheus_client
from fastapi import APIRouter, FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.middleware.gzip import GZipMiddleware

from base.files import UserError
from serving import chat_completions, open_inference, openapi
from serving.batching import Batched
from serving.limits import (
    Access,
    Door,
    Guard,
    Limits,
    RequestError,
    as_json,
    error,
    find_model,
    read,
    read_instances,
    while_wanted,
)

PAGES = pathlib.Path(__file__).parent / "pages"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""A page runs only scripts of this server, whatever text it shows."""
router = APIRouter()
get = functools.partial(router.api_route, methods=["GET", "HEAD"])
VERSIONS = ("", "/versions/{version}", "/labels/{label}")


class Metrics:
    """Counters and histograms that Prometheus reads at /metrics."""

    def __init__(self):
        self.registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)  # memory, CPU seconds, open files
        options = {"namespace": "colloquy", "registry": self.registry}
        counter, histogram = prometheus_client.Counter, prometheus_client.Histogram
        of_request, of_model = ["model", "verb"], ["model"]
        self.requests = counter("requests", "Requests answered.", [*of_request, "status"], **options)
        self.seconds = histogram("request_seconds", "From a request's arrival to its answer.", of_request, **options)
        sizes = {"buckets": [1, 2, 4, 8, 16, 32, 64], **options}
        self.batch = histogram("batch_instances", "Instances per call of a model.", of_model, **sizes)
        self.compute = histogram("model_seconds", "Seconds per call of a model.", of_model, **options)
        self.queue = prometheus_client.Gauge("queue_instances", "Instances that wait.", of_model, **options)

    def observe(self, model, count, seconds):
        """Notes a batch of `count` instances."""
        self.batch.labels(model).observe(count)
        self.compute.labels(model).observe(seconds)


def create_app(models, limits=None, access=None, **sizes):
    """The `fastapi.FastAPI` that serves models, `{name: serving.models.Served}`, within `serving.limits.Limits` to
    those that have `serving.limits.Access`.

    `sizes` are `milliseconds`, `max_batch` and `max_queue` of each model's `serving.batching.Batched`.
    """
    metrics = Metrics()
    observe = {name: functools.partial(metrics.observe, name) for name in models}
    batched = {name: Batched(model, limits, observe=observe[name], **sizes) for name, model in models.items()}
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

    app = FastAPI(openapi_url=None, lifespan=lifespan)
    app.state.models, app.state.limits, app.state.metrics = models, limits, metrics or Metrics()
    app.state.door, app.state.give_up = Door(), lambda: [model.give_up() for model in models.values()]
    app.add_middleware(GZipMiddleware, minimum_size=2000)
    app.add_middleware(Guard, access=access)
    if access.origins:
        allowed = {"allow_methods": ["GET", "POST"], "allow_headers": ["authorization", "content-type"]}
        app.add_middleware(CORSMiddleware, allow_origins=list(access.origins), **allowed)
    _add_errors(app)
    for each in (router, chat_completions.router, open_inference.router):
        app.include_router(each)
    return app


def _add_errors(app):
    @app.exception_handler(UserError)
    @app.exception_handler(RequestError)
    async def refuse(request, refusal):
        return error(refusal, request.url.path)

    @app.exception_handler(404)
    async def unknown(request, _):
        return error(RequestError(404, f"not found: {request.url.path[:200]}"), request.url.path)

    @app.exception_handler(405)
    async def wrong_method(request, refusal):
        return error(_wrong_method(request, refusal.headers), request.url.path)


def _wrong_method(request, headers):
    return RequestError(405, f"{request.method} is not allowed at {request.url.path[:200]}", headers)


# === GET ===


@get("/healthz")
async def health(request: Request):
    if request.app.state.door.stopping:
        return JSONResponse({"status": "stopping"}, 503, {"Retry-After": "1"})
    return {"status": "ok", "models": list(request.app.state.models)}


@get("/metrics")
async def prometheus(request: Request):
    metrics = request.app.state.metrics
    for name, model in request.app.state.models.items():
        metrics.queue.labels(name).set(model.queued)
    text = prometheus_client.generate_latest(metrics.registry)
    return Response(text, media_type=prometheus_client.CONTENT_TYPE_LATEST)


@get("/v1/models")
async def all_models(request: Request):
    models = request.app.state.models
    rows = await asyncio.gather(*(model.summary() for model in models.values()))
    return {
        "models": list(models),  # as KServe has it; `data` as OpenAI
        "object": "list",
        "data": [{**_as_openai(name), **row} for name, row in zip(models, rows, strict=True)],
    }


def _as_openai(name):
    return {"id": name, "object": "model", "created": 0, "owned_by": "colloquy"}


def _of_versions(path, method=get, **options):
    """Decorates a route of a model, of one of its versions, or of a label."""

    def decorate(route):
        for version in VERSIONS:
            method(f"/v1/models/{{name}}{version}{path}", **options)(route)
        return route

    return decorate


@_of_versions("")
async def state(request: Request):
    if ":" in request.path_params["name"]:  # a verb
        raise _wrong_method(request, {"Allow": "POST"})
    model = find_model(request)
    metadata, status = await model.metadata(), {"error_code": "OK", "error_message": ""}
    return {
        **_as_openai(model.name),
        **metadata,
        "ready": True,
        "model_version_status": [{"version": model.version, "state": "AVAILABLE", "status": status}],
    }


@_of_versions("/metadata")
async def metadata(request: Request):
    model = find_model(request)
    found = await model.metadata()
    spec = {"name": model.name, "signature_name": "", "version": model.version}
    return {"model_spec": spec, "metadata": {**found, "signature_def": open_inference.signatures(found)}}


@get("/openapi.json")
async def openapi_document(request: Request):
    return openapi.document([await model.metadata() for model in request.app.state.models.values()])


@get("/docs")
async def docs(request: Request):
    return HTMLResponse(openapi.page(await openapi_document(request)), headers=HEADERS)


# === POST ===


@_of_versions(":predict", router.post)
async def predict(request: Request):
    model, instances, columns = await _read(request)
    found = await while_wanted(request, model.predict(instances))
    if columns:
        return as_json({"outputs": {field: [each.get(field) for each in found] for field in found[0]}})
    return as_json({"predictions": found})


@_of_versions(":explain", router.post)
async def explain(request: Request):
    model, instances, _ = await _read(request)
    if len(instances) > 1:
        raise RequestError(413, f"one instance is explained per request. Received: {len(instances)}")
    return as_json({"explanations": [await while_wanted(request, model.explain(instances[0]))]})


async def _read(request):
    return find_model(request), *await read(request, read_instances)


# === Pages ===


@get("/")
@get("/pages/{file}")
async def page(file: str = "index.html"):
    path = PAGES / file
    if path.parent != PAGES or path.suffix not in TYPES or not path.is_file():
        raise RequestError(404, f"there is no page {file[:100]!r}")
    return FileResponse(path, media_type=f"{TYPES[path.suffix]}; charset=utf-8", headers=HEADERS)
