"""Handles a request: reads the body, finds the model, awaits the answer until the client leaves."""

import asyncio
import functools
import time

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from base.files import UserError
from serving.limits import RequestError, error

LABEL = "stable"


def answers(verb):
    """Decorates a route: errors become responses; counts and times it under a verb and `request.state.model`."""

    def decorate(route):
        @functools.wraps(route)
        async def answer(request):
            begin, status = time.perf_counter(), 500
            try:
                response = await route(request)
                status = response.status_code
            except (RequestError, UserError) as refusal:
                response = error(refusal, request.url.path)
                status = response.status_code
            finally:
                labels, metrics = (getattr(request.state, "model", "unknown"), verb), request.app.state.metrics
                metrics.seconds.labels(*labels).observe(time.perf_counter() - begin)
                metrics.requests.labels(*labels, status).inc()
            return response

        return answer

    return decorate


def find_model(request, name=None):
    """The model that a request's path names, or one of a name, in the version that it asks for."""
    models, asked = request.app.state.models, request.path_params
    name = asked["name"] if name is None else name
    if name not in models:
        raise RequestError(404, f"there is no model {name[:100]!r}; there are {', '.join(models)}")
    model, request.state.model = models[name], name
    if (version := asked.get("version", model.version)) != model.version:
        raise RequestError(404, f"{name} is served in version {model.version}. Received: {version[:20]}")
    if (label := asked.get("label", LABEL)) != LABEL:
        raise RequestError(404, f"{name} has the label {LABEL} alone. Received: {label[:40]}")
    return model


def as_json(found):
    """The response to a request; an answer with NaN is refused."""
    try:
        return JSONResponse(found)
    except ValueError as wrong:
        raise RequestError(422, "the model's answer contains infinity or NaN, which JSON cannot represent") from wrong


async def while_wanted(request, answer):
    """Awaits an answer; cancels it if the client leaves, or its time is over."""

    async def left():
        while (await request.receive())["type"] != "http.disconnect":
            pass

    seconds = request.app.state.limits.timeout_seconds
    tasks = answer, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(left())
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answer in done:
            return answer.result()
        if leaving in done:
            raise RequestError(499, "the client left before its answer")  # for the counts alone
        raise RequestError(504, f"no answer within {seconds:g} seconds")
    finally:
        for task in tasks:
            task.cancel()


async def read_body(request):
    """The body, read no further than the limit."""
    limits, length = request.app.state.limits, request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > limits.body_bytes:
        raise RequestError(413, f"a body may have {limits.body_bytes:,} bytes at most. Received: {int(length):,}")
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.timeout_seconds):  # slow clients must not hold a request open
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
