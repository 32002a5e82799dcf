"""The web application: TensorFlow Serving's REST dialect, KServe's `:explain`, metrics, health, and the pages.

    GET  /v1/models                        all models
    GET  /v1/models/NAME                   state, as TensorFlow Serving says it
    GET  /v1/models/NAME/metadata          fields of an instance, task, corpus, scores, examples
    POST /v1/models/NAME:predict           {"instances": [{...}]} -> {"predictions": [...]}
                                           {"inputs": {field: [...]}} -> {"outputs": {field: [...]}}
    POST /v1/models/NAME:explain           {"instances": [{...}]} -> {"explanations": [...]}
    GET  /healthz  /metrics  /openapi.json  /

`NAME` may be followed by `/versions/N`. An error is `{"error": "one sentence"}` with its HTTP status.
"""

import asyncio
import contextlib
import pathlib

import prometheus_client
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.requests import ClientDisconnect

from base.files import UserError
from serving.batching import Batched, Overloaded, Unavailable
from serving.limits import Limits, RequestError, check_instances, parse_json

PAGES = pathlib.Path(__file__).parent / "pages"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""A page runs only what comes from here, whatever text it shows."""


class Metrics:
    """What Prometheus reads at /metrics."""

    def __init__(self):
        self.registry = prometheus_client.CollectorRegistry()
        counter, histogram = prometheus_client.Counter, prometheus_client.Histogram
        labels = ["model", "verb", "status"]
        self.requests = counter("colloquy_requests", "Requests answered.", labels, registry=self.registry)
        self.seconds = histogram(
            "colloquy_request_seconds",
            "From a request's arrival to its answer.",
            ["model", "verb"],
            registry=self.registry,
        )
        self.batch = histogram(
            "colloquy_batch_instances",
            "Instances per call of a model.",
            ["model"],
            buckets=[1, 2, 4, 8, 16, 32, 64],
            registry=self.registry,
        )
        self.compute = histogram(
            "colloquy_model_seconds", "Seconds per call of a model.", ["model"], registry=self.registry
        )
        self.queue = prometheus_client.Gauge(
            "colloquy_queue_instances", "Instances that wait.", ["model"], registry=self.registry
        )

    def observer(self, model):
        """The function that a `Batcher` of a model reports to."""

        def observe(count, seconds):
            self.batch.labels(model).observe(count)
            self.compute.labels(model).observe(seconds)

        return observe

    def text(self):
        """The exposition format."""
        return prometheus_client.generate_latest(self.registry)


def create_app(models, limits=None, milliseconds=2.0, max_batch=32, max_queue=256):
    """The application.

    Args:
        models: `{name: serving.models.ServedModel}`.
        limits: `serving.limits.Limits`; `None`: its defaults.
        milliseconds, max_batch, max_queue: Of each model's `serving.batching.Batcher`.

    Returns:
        A `fastapi.FastAPI`.
    """
    metrics = Metrics()
    sizes = {"milliseconds": milliseconds, "max_batch": max_batch, "max_queue": max_queue}
    batched = {name: Batched(model, **sizes, observe=metrics.observer(name)) for name, model in models.items()}
    return app_of(batched, limits, metrics)


def app_of(models, limits=None, metrics=None):
    """The application, of models that batch their own calls.

    Args:
        models: `{name: model}`, each as `serving.batching.Batched`.
        limits, metrics: `serving.limits.Limits` and `Metrics`; `None`: new ones.
    """
    limits, metrics = limits or Limits(), metrics or Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(_):
        for model in models.values():
            await model.start()
        yield
        for model in models.values():
            await model.close()

    app = FastAPI(title="Colloquy", docs_url=None, redoc_url=None, lifespan=lifespan, description=__doc__)
    _add_reading(app, models, metrics)
    _add_verbs(app, models, metrics, limits)
    _add_pages(app)
    return app


def _find(models, name):
    if name not in models:
        raise RequestError(404, f"there is no model {name[:100]!r}; there are {', '.join(models)}")
    return models[name]


def _error(status, message):
    return JSONResponse({"error": message}, status_code=status)


def _add_reading(app, models, metrics):
    """What is asked by GET."""

    @app.exception_handler(RequestError)
    async def refuse(_, error):
        return _error(error.status, str(error))

    @app.exception_handler(404)
    async def unknown(request, _):
        return _error(404, f"there is nothing at {request.url.path[:200]}")

    @app.exception_handler(405)
    async def wrong_method(request, _):
        return _error(405, f"{request.method} is not answered at {request.url.path[:200]}")

    @app.get("/healthz", summary="Is the server up?")
    async def health():
        return {"status": "ok", "models": list(models)}

    @app.get("/metrics", summary="Counters and histograms for Prometheus")
    async def prometheus():
        for name, model in models.items():
            metrics.queue.labels(name).set(model.queued)
        return Response(metrics.text(), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    @app.get("/v1/models", summary="All models")
    async def all_models():
        return {"models": [model.metadata() for model in models.values()]}

    @app.get("/v1/models/{name}", summary="The state of a model")
    @app.get("/v1/models/{name}/versions/{version}", include_in_schema=False)
    async def state(name: str, version: str | None = None):
        model = _find(models, name)
        _check_version(model, version)
        status = {"error_code": "OK", "error_message": ""}
        return {"model_version_status": [{"version": model.version, "state": "AVAILABLE", "status": status}]}

    @app.get("/v1/models/{name}/metadata", summary="The fields of an instance, the task, the corpus, the scores")
    async def metadata(name: str):
        model = _find(models, name)
        return {"model_spec": {"name": name, "version": model.version}, "metadata": model.metadata()}


def _check_version(model, version):
    if version not in (None, model.version):
        raise RequestError(404, f"{model.name} is served in version {model.version}. Received: {version[:20]}")


def _add_verbs(app, models, metrics, limits):
    """What is asked by POST."""

    async def answer(request, name, verb, version, compute):
        with metrics.seconds.labels(name if name in models else "unknown", verb).time():
            response = await _guarded(request, models, name, version, limits, compute)
        metrics.requests.labels(name if name in models else "unknown", verb, response.status_code).inc()
        return response

    @app.post("/v1/models/{name}:predict", summary="Answers instances")
    @app.post("/v1/models/{name}/versions/{version}:predict", include_in_schema=False)
    async def predict(request: Request, name: str, version: str | None = None):
        async def compute(model, body):
            instances, columns = _instances_of(body)
            check_instances(instances, limits)
            found = await model.predict(instances)
            if columns:
                return {"outputs": {field: [each[field] for each in found] for field in found[0]}}
            return {"predictions": found}

        return await answer(request, name, "predict", version, compute)

    @app.post("/v1/models/{name}:explain", summary="What a model attended to")
    @app.post("/v1/models/{name}/versions/{version}:explain", include_in_schema=False)
    async def explain(request: Request, name: str, version: str | None = None):
        async def compute(model, body):
            instances, _ = _instances_of(body)
            check_instances(instances, limits)
            if len(instances) > 1:
                raise RequestError(413, f"one instance is explained per request. Received: {len(instances)}")
            return {"explanations": [await model.explain(instances[0])]}

        return await answer(request, name, "explain", version, compute)


def _instances_of(body):
    """The instances of a request, and whether they came as columns."""
    if ("instances" in body) == ("inputs" in body):
        raise RequestError(400, "expected one of `instances` and `inputs`")
    if "instances" in body:
        return body["instances"], False
    inputs = body["inputs"]
    if not isinstance(inputs, dict) or not inputs or not all(isinstance(column, list) for column in inputs.values()):
        raise RequestError(400, "`inputs` must be an object of lists, one per field")
    if len({len(column) for column in inputs.values()}) > 1:
        raise RequestError(400, "the lists of `inputs` must be equally long")
    return [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)], True


async def _guarded(request, models, name, version, limits, compute):
    """The response to a request: what `compute(model, body)` returns, or the error with its status."""
    try:
        model = _find(models, name)
        _check_version(model, version)
        body = parse_json(await _body(request, limits))
        return JSONResponse(await asyncio.wait_for(compute(model, body), limits.timeout_seconds))
    except RequestError as error:
        return _error(error.status, str(error))
    except UserError as error:
        return _error(400, str(error))
    except Overloaded as error:
        return JSONResponse({"error": str(error)}, status_code=429, headers={"Retry-After": "1"})
    except Unavailable as error:
        return JSONResponse({"error": str(error)}, status_code=503, headers={"Retry-After": "1"})
    except TimeoutError:
        return _error(504, f"no answer within {limits.timeout_seconds:g} seconds")


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
    except TimeoutError as error:
        raise RequestError(408, f"the body did not arrive within {limits.timeout_seconds:g} seconds") from error
    except ClientDisconnect as error:
        raise RequestError(499, "the client went before its body had arrived") from error  # for the counts alone
    return b"".join(parts)


def _add_pages(app):
    @app.get("/", include_in_schema=False)
    @app.get("/pages/{file}", include_in_schema=False)
    async def page(file: str = "index.html"):
        path = PAGES / file
        if path.parent != PAGES or path.suffix not in TYPES or not path.is_file():
            return _error(404, f"there is no page {file[:100]!r}")
        return FileResponse(path, media_type=TYPES[path.suffix], headers=HEADERS)
