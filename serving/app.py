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

import asyncio
import contextlib
import functools
import json
import pathlib

import prometheus_client
from fastapi import FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.requests import ClientDisconnect

from base.files import UserError
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
    limits, access, metrics = limits or Limits(), access or Access(), metrics or Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(_):
        for model in models.values():
            await model.start()
        yield
        for model in models.values():
            await model.close()

    app = FastAPI(title="Colloquy", docs_url=None, redoc_url=None, lifespan=lifespan, description=__doc__)
    app.openapi = lambda: _openapi(app, models)
    app.state.door, app.state.give_up = Door(), lambda: [model.give_up() for model in models.values()]
    app.add_middleware(Guard, access=access, door=app.state.door, most=limits.requests)
    if access.origins:
        allowed = {"allow_methods": ["GET", "POST"], "allow_headers": ["authorization", "content-type"]}
        app.add_middleware(CORSMiddleware, allow_origins=list(access.origins), **allowed)
    _add_errors(app)
    _add_reading(app, models, metrics)
    _add_verbs(app, models, metrics, limits)
    _add_pages(app)
    return app


def _find(models, name, version=None):
    if name not in models:
        raise RequestError(404, f"there is no model {name[:100]!r}; there are {', '.join(models)}")
    model = models[name]
    if version not in (None, model.version):
        raise RequestError(404, f"{name} is served in version {model.version}. Received: {version[:20]}")
    return model


def _add_errors(app):
    @app.exception_handler(RequestError)
    async def refuse(_, refusal):
        return error(refusal.status, str(refusal))

    @app.exception_handler(404)
    async def unknown(request, _):
        return error(404, f"there is nothing at {request.url.path[:200]}")

    @app.exception_handler(405)
    async def wrong_method(request, _):
        return error(405, f"{request.method} is not answered at {request.url.path[:200]}")


def _add_reading(app, models, metrics):
    """Adds the routes for GET."""

    @app.get("/healthz", summary="Is the server up?")
    async def health():
        return {"status": "ok", "models": list(models)}

    @app.get("/metrics", summary="Counters and histograms for Prometheus")
    async def prometheus():
        for name, model in models.items():
            metrics.queue.labels(name).set(model.queued)
        text = prometheus_client.generate_latest(metrics.registry)
        return Response(text, media_type=prometheus_client.CONTENT_TYPE_LATEST)

    @app.get("/v1/models", summary="All models")
    async def all_models():
        return {"models": [model.metadata() for model in models.values()]}

    @app.get("/v1/models/{name}", summary="The state of a model")
    @app.get("/v1/models/{name}/versions/{version}", include_in_schema=False)
    async def state(name: str, version: str | None = None):
        model = _find(models, name, version)
        status = {"error_code": "OK", "error_message": ""}
        return {"model_version_status": [{"version": model.version, "state": "AVAILABLE", "status": status}]}

    @app.get("/v1/models/{name}/metadata", summary="Task, corpus, scores, examples, schemas of instance and answer")
    async def metadata(name: str):
        model = _find(models, name)
        return {"model_spec": {"name": name, "version": model.version}, "metadata": model.metadata()}


def _add_verbs(app, models, metrics, limits):
    """Adds the routes for POST."""

    async def answer(request, name, verb, version, compute):
        labels = name if name in models else "unknown", verb
        with metrics.seconds.labels(*labels).time():
            response = await _guarded(request, models, name, version, limits, compute)
        metrics.requests.labels(*labels, response.status_code).inc()
        return response

    @app.post("/v1/models/{name}:predict", summary="Answers instances")
    @app.post("/v1/models/{name}/versions/{version}:predict", include_in_schema=False)
    async def predict(request: Request, name: str, version: str | None = None):
        async def compute(model, instances, columns):
            found = await model.predict(instances)
            if columns:
                return {"outputs": {field: [each.get(field) for each in found] for field in found[0]}}
            return {"predictions": found}

        return await answer(request, name, "predict", version, compute)

    @app.post("/v1/models/{name}:explain", summary="Answers an instance, with what the model attended to")
    @app.post("/v1/models/{name}/versions/{version}:explain", include_in_schema=False)
    async def explain(request: Request, name: str, version: str | None = None):
        async def compute(model, instances, _):
            if len(instances) > 1:
                raise RequestError(413, f"one instance is explained per request. Received: {len(instances)}")
            return {"explanations": [await model.explain(instances[0])]}

        return await answer(request, name, "explain", version, compute)


async def _guarded(request, models, name, version, limits, compute):
    """The response to a request: the result of `compute(model, instances, columns)`, or an error with its status."""
    try:
        model = _find(models, name, version)
        instances, columns = read_instances(await _body(request, limits), limits)
        found = await _while_wanted(request, compute(model, instances, columns), limits.timeout_seconds)
    except RequestError as refusal:
        return error(refusal.status, str(refusal))
    except UserError as refusal:
        return error(400, str(refusal))
    except TimeoutError:
        return error(504, f"no answer within {limits.timeout_seconds:g} seconds")
    try:
        return JSONResponse(found)
    except ValueError:
        return error(422, "the model's answer has infinity or NaN, which JSON has not")


async def _while_wanted(request, answer, seconds):
    """Awaits an answer; cancels it if the client leaves, or its time is over."""

    async def left():
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = answer, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(left())
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answer in done:
            return answer.result()
        if leaving in done:
            raise RequestError(499, "the client left before its answer")  # for the counts alone
        raise TimeoutError
    finally:
        for task in tasks:
            task.cancel()


async def _body(request, limits):
    """The body, read no further than the limit."""
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > limits.body_bytes:
        raise RequestError(413, f"a body may have {limits.body_bytes:,} bytes at most. Received: {int(length):,}")
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.timeout_seconds):  # a client that sends a byte now and then holds nothing up
            async for part in request.stream():
                size += len(part)
                if size > limits.body_bytes:
                    raise RequestError(413, f"a body may have {limits.body_bytes:,} bytes at most")
                parts.append(part)
    except TimeoutError as late:
        raise RequestError(408, f"the body did not arrive within {limits.timeout_seconds:g} seconds") from late
    except ClientDisconnect as left:
        raise RequestError(499, "the client left before its body had arrived") from left  # for the counts alone
    return b"".join(parts)


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


def _add_pages(app):
    @app.get("/", include_in_schema=False)
    @app.get("/pages/{file}", include_in_schema=False)
    async def page(file: str = "index.html"):
        path = PAGES / file
        if path.parent != PAGES or path.suffix not in TYPES or not path.is_file():
            return error(404, f"there is no page {file[:100]!r}")
        return FileResponse(path, media_type=f"{TYPES[path.suffix]}; charset=utf-8", headers=HEADERS)
