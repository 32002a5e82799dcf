"""The web application: TensorFlow Serving's REST dialect, KServe's `:explain`, metrics, health, and the pages.

    GET  /v1/models                        all models
    GET  /v1/models/NAME                   state, as in TensorFlow Serving
    GET  /v1/models/NAME/metadata          task, corpus, scores, examples, JSON schemas of instance and answer
    POST /v1/models/NAME:predict           {"instances": [{...}]} -> {"predictions": [...]}
                                           {"inputs": {field: [...]}} -> {"outputs": {field: [...]}}
    POST /v1/models/NAME:explain           {"instances": [{...}]} -> {"explanations": [...]}
    GET  /healthz  /metrics  /openapi.json  /

`NAME` may be followed by `/versions/N`. An error is `{"error": "one sentence"}` with its HTTP status.
"""

import contextlib
import functools
import json
import pathlib

import prometheus_client
from fastapi import APIRouter, FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse, Response

from serving import chat_completions
from serving.answering import answers, find_model, read_body, while_wanted
from serving.batching import Batched
from serving.limits import Access, Door, Guard, Limits, RequestError, error, read_instances

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


class Metrics:
    """Counters and histograms that Prometheus reads at /metrics."""

    def __init__(self):
        self.registry = prometheus_client.CollectorRegistry()
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

    app = FastAPI(title="Colloquy", docs_url=None, redoc_url=None, lifespan=lifespan, description=__doc__)
    app.openapi = lambda: _openapi(app, models)
    app.state.models, app.state.limits, app.state.metrics = models, limits, metrics or Metrics()
    app.state.door, app.state.give_up = Door(), lambda: [model.give_up() for model in models.values()]
    app.add_middleware(Guard, access=access, door=app.state.door, most=limits.requests)
    if access.origins:
        allowed = {"allow_methods": ["GET", "POST"], "allow_headers": ["authorization", "content-type"]}
        app.add_middleware(CORSMiddleware, allow_origins=list(access.origins), **allowed)
    _add_errors(app)
    app.include_router(router)
    app.include_router(chat_completions.router)
    return app


def _add_errors(app):
    @app.exception_handler(RequestError)
    async def refuse(request, refusal):
        return error(refusal, request.url.path)

    @app.exception_handler(404)
    async def unknown(request, _):
        return error(RequestError(404, f"there is nothing at {request.url.path[:200]}"), request.url.path)

    @app.exception_handler(405)
    async def wrong_method(request, _):
        refusal = RequestError(405, f"{request.method} is not answered at {request.url.path[:200]}")
        return error(refusal, request.url.path)


# === GET ===


@router.get("/healthz", summary="Is the server up?")
async def health(request: Request):
    if request.app.state.door.stopping:
        return JSONResponse({"status": "stopping"}, 503, {"Retry-After": "1"})
    return {"status": "ok", "models": list(request.app.state.models)}


@router.get("/metrics", summary="Counters and histograms for Prometheus")
async def prometheus(request: Request):
    metrics = request.app.state.metrics
    for name, model in request.app.state.models.items():
        metrics.queue.labels(name).set(model.queued)
    text = prometheus_client.generate_latest(metrics.registry)
    return Response(text, media_type=prometheus_client.CONTENT_TYPE_LATEST)


@router.get("/v1/models", summary="All models")
async def all_models(request: Request):
    return {"models": [model.metadata() for model in request.app.state.models.values()]}


@router.get("/v1/models/{name}", summary="The state of a model")
@router.get("/v1/models/{name}/versions/{version}", include_in_schema=False)
async def state(request: Request, name: str, version: str | None = None):
    model = find_model(request, name, version)
    status = {"error_code": "OK", "error_message": ""}
    return {"model_version_status": [{"version": model.version, "state": "AVAILABLE", "status": status}]}


@router.get("/v1/models/{name}/metadata", summary="Task, corpus, scores, examples, schemas of instance and answer")
async def metadata(request: Request, name: str):
    model = find_model(request, name)
    return {"model_spec": {"name": name, "version": model.version}, "metadata": model.metadata()}


# === POST ===


@router.post("/v1/models/{name}:predict", summary="Answers instances")
@router.post("/v1/models/{name}/versions/{version}:predict", include_in_schema=False)
@answers("predict")
async def predict(request: Request, name: str, version: str | None = None):
    model, instances, columns = await _read(request, name, version)
    found = await while_wanted(request, model.predict(instances))
    if columns:
        return _json({"outputs": {field: [each.get(field) for each in found] for field in found[0]}})
    return _json({"predictions": found})


@router.post("/v1/models/{name}:explain", summary="Answers an instance, with what the model attended to")
@router.post("/v1/models/{name}/versions/{version}:explain", include_in_schema=False)
@answers("explain")
async def explain(request: Request, name: str, version: str | None = None):
    model, instances, _ = await _read(request, name, version)
    if len(instances) > 1:
        raise RequestError(413, f"one instance is explained per request. Received: {len(instances)}")
    return _json({"explanations": [await while_wanted(request, model.explain(instances[0]))]})


async def _read(request, name, version):
    model = find_model(request, name, version)
    return model, *read_instances(await read_body(request), request.app.state.limits)


def _json(found):
    try:
        return JSONResponse(found)
    except ValueError as wrong:
        raise RequestError(422, "the model's answer has infinity or NaN, which JSON lacks") from wrong


@router.get("/", include_in_schema=False)
@router.get("/pages/{file}", include_in_schema=False)
async def page(file: str = "index.html"):
    path = PAGES / file
    if path.parent != PAGES or path.suffix not in TYPES or not path.is_file():
        raise RequestError(404, f"there is no page {file[:100]!r}")
    return FileResponse(path, media_type=f"{TYPES[path.suffix]}; charset=utf-8", headers=HEADERS)


def _openapi(app, models):
    """The document at /openapi.json: the routes, and for each model those with the schemas of its instances."""
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = document["components"]["schemas"]
    for name, model in models.items():
        metadata, here = model.metadata(), f"#/components/schemas/{name}."
        for kind in ("instance", "answer"):
            schema = json.loads(json.dumps(metadata[kind]).replace("#/$defs/", here))
            schemas |= {f"{name}.{inner}": value for inner, value in schema.pop("$defs", {}).items()}
            schemas[f"{name}.{kind}"] = schema
        document["paths"][f"/v1/models/{name}:predict"] = {
            "post": {
                "summary": f"Answers instances by {name}",
                "requestBody": {"required": True, **_content("instances", f"{here}instance")},
                "responses": {"200": {"description": "Answers", **_content("predictions", f"{here}answer")}},
            }
        }
    return document


def _content(field, reference):
    items = {"type": "array", "items": {"$ref": reference}}
    return {"content": {"application/json": {"schema": {"type": "object", "properties": {field: items}}}}}
