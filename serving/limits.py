"""A request's body: how large it may be, how long it may take, and the form of every answer.

`read_body` reads and checks it, `wait_for_answer` waits for the model, `respond` sends an answer.
"""

import asyncio
import concurrent.futures
import gzip
import json
import math
from typing import Annotated, NamedTuple

from pydantic import Field, ValidationError
from pydantic_core import from_json
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from colloquy.base.config import Config, Positive, sentence
from colloquy.base.files import UserError

LABEL = "stable"  # the label of the only version of a model
CHAT_PATH = "/v1/chat/"  # errors below it have OpenAI's form
SMALL_BODY = 10_000  # bytes that are parsed in less than a millisecond
COMPRESSED_FROM = 2_000  # bytes

_parser = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="parser")


class RequestError(UserError):
    """An answer with an HTTP status of 400 or more, and one sentence."""

    def __init__(self, status, message, headers=None):
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


class Limits(Config):
    """Largest sizes of a request and of a batch. What exceeds a size gets status 413."""

    max_body_bytes: Positive = 200_000
    """Bytes of a request's body."""
    instances: Positive = 32
    """Instances per request."""
    items: Positive = 2_000
    """Items of a list or an object."""
    text_characters: Positive = 100_000
    """Characters of one text."""
    instance_characters: Positive = 120_000
    """Characters of all texts of an instance."""
    depth: Positive = 10
    """Nesting of lists and objects of a body."""
    max_rows: Positive = 1_000
    """Rows that the model computes for a request, see `engine.predictor.Predictor.padded_rows`."""
    max_batch: Positive = 32
    """Instances per call of a model."""
    batch_milliseconds: Annotated[float, Field(ge=0)] = 2.0
    """Time that a batch waits for further requests, from the arrival of its first one."""
    max_queue: Positive = 256
    """Instances that may wait per model; more get status 429."""
    requests: Positive = 512
    """Requests that are open at once; more get status 503."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Seconds for a body to arrive, and then for its answer; later it gets status 504."""
    grace_seconds: Annotated[float, Field(ge=0)] = 65.0
    """Seconds that open requests have after SIGTERM."""


# === Sizes ===


def check_count(where, count, most, unit):
    """Refuses a `count` above `most`, by status 413."""
    if count > most:
        raise RequestError(413, f"{where} may have {most:,} {unit} at most. Received: {count:,}")


def check_instances(instances, limits):
    """Refuses too many instances, and an instance with too much text."""
    check_count("`instances`", len(instances), limits.instances, "items")
    for number, instance in enumerate(instances):
        characters = _count_characters(instance)
        check_count(f"instance {number}", characters, limits.instance_characters, "characters")


def _count_characters(value):
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return 0
    return sum(_count_characters(item) for item in value)


def _check_value(where, value, limits, depth):
    """Refuses a text, a list or nesting beyond the limits, and numbers that are not finite."""
    if isinstance(value, str):
        check_count(f"a text of {where}", len(value), limits.text_characters, "characters")
        return
    if isinstance(value, float) and not math.isfinite(value):
        raise RequestError(400, f"{where} has a number beyond the range of a float")
    if not isinstance(value, list | dict):
        return

    if depth == 0:
        raise RequestError(400, f"lists and objects may be nested {limits.depth} deep at most")
    check_count(where, len(value), limits.items, "items")
    if isinstance(value, list):
        for item in value:
            _check_value(where, item, limits, depth - 1)
        return
    for name, item in value.items():
        _check_value(where, name, limits, depth - 1)
        _check_value(f"`{name[:40]}`", item, limits, depth - 1)


# === Reading ===


async def read_body(request, body_class):
    """Reads a body, a JSON object, into a `base.config.Config`, no further than the limit."""
    limits = request.app.state.limits
    announced = request.headers.get("content-length", "0")
    if announced.isdigit():
        check_count("a body", int(announced), limits.max_body_bytes, "bytes")

    body = bytearray()
    try:
        # A slow client must not hold a request open.
        async with asyncio.timeout(limits.timeout_seconds):
            async for part in request.stream():
                body += part
                check_count("a body", len(body), limits.max_body_bytes, "bytes")
    except TimeoutError as late:
        message = f"the body did not arrive within {limits.timeout_seconds:g} seconds"
        raise RequestError(408, message) from late
    except ClientDisconnect as left:
        # Nobody reads this answer; its status is counted.
        raise RequestError(499, "the client left before its body had arrived") from left

    if len(body) <= SMALL_BODY:
        return _parse(bytes(body), body_class, limits)
    # The event loop goes on with small requests meanwhile.
    loop = asyncio.get_running_loop()
    parsing = loop.run_in_executor(_parser, _parse, bytes(body), body_class, limits)
    return await wait_for_answer(request, parsing)


def _parse(body, body_class, limits):
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise RequestError(400, f"the body must be JSON: {str(error)[:200]}") from error
    if not isinstance(value, dict):
        raise RequestError(400, f"the body must be a JSON object. Received: {type(value).__name__}")
    _check_value("the body", value, limits, limits.depth)
    try:
        return body_class.model_validate(value)
    except ValidationError as error:
        raise RequestError(400, sentence(error, body_class)) from error


async def wait_for_answer(request, answer):
    """Awaits an answer. Cancels it if the client leaves or its time is over."""
    seconds = request.app.state.limits.timeout_seconds
    answering = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_wait_until_left(request))
    tasks = [answering, leaving]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answering in done:
            return answering.result()
        if leaving in done:
            raise RequestError(499, "the client left before its answer")
        raise RequestError(504, f"no answer within {seconds:g} seconds")
    finally:
        for task in tasks:
            task.cancel()


async def _wait_until_left(request):
    message = await request.receive()
    while message["type"] != "http.disconnect":
        message = await request.receive()


# === The model of a request ===


class ModelPath(StringConvertor):
    """Part of a path, `{model:model}`, that names a model, and perhaps its version or label."""

    regex = "[^/:]+(?:/(?:versions|labels)/[^/:]+)?"


register_url_convertor("model", ModelPath())


def find_model(request, name=None):
    """Finds the model that a request's path names, or the one called `name`."""
    if name is None:
        name = request.path_params["model"]
    models = request.app.state.models
    name, _, version = name.partition("/")
    if name not in models:
        raise RequestError(404, f"there is no model {name[:100]!r}; there are {', '.join(models)}")
    model = models[name]
    request.state.model = name  # for the metrics
    if version not in ("", f"versions/{model.version}", f"labels/{LABEL}"):
        only = f"{name} has version {model.version} and label {LABEL} alone"
        raise RequestError(404, f"{only}. Received: {version[:40]}")
    return model


# === Answers ===


class Content(NamedTuple):
    """The body of an answer. It is made once, on a thread if it may be large."""

    body: bytes
    compressed: bytes | None
    media_type: str


def make_content(body, media_type):
    compressed = None
    if len(body) >= COMPRESSED_FROM:
        compressed = gzip.compress(body, compresslevel=5)
    return Content(body, compressed, media_type)


def make_json(value):
    """Makes the `Content` of a value; one with infinity or NaN is refused."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        message = "the model's answer contains infinity or NaN, which JSON cannot represent"
        raise RequestError(422, message) from error
    return make_content(text.encode("utf-8"), "application/json")


def respond(request, content, headers=None):
    """Makes the response of a `Content`, compressed if the client accepts it."""
    headers = {"Vary": "Accept, Accept-Encoding", **(headers or {})}
    if content.compressed and "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(content.compressed, headers=headers, media_type=content.media_type)
    return Response(content.body, headers=headers, media_type=content.media_type)


def respond_error(error, path):
    """Makes the response to a `UserError` at a path; says when a request may be repeated."""
    status = getattr(error, "status", 400)
    headers = dict(getattr(error, "headers", {}))
    if status in (429, 503):
        headers["Retry-After"] = "1"
    return JSONResponse(error_body(status, str(error), path), status, headers)


def error_body(status, message, path):
    """Returns `{"error": message}`, for OpenAI's clients `{"error": {"message", ...}}`."""
    message = message.encode("utf-8", "replace").decode("utf-8")
    if not path.startswith(CHAT_PATH):
        return {"error": message}
    error_type = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": error_type, "param": None, "code": status}}
