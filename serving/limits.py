"""A request from its headers to its answer: who may ask, how much, and for how long.

`Guard` checks the headers and counts the answers, `read` reads the body, `check_size` checks the
instances, `while_wanted` waits for the answer.
"""

import asyncio
import base64
import concurrent.futures
import contextlib
import dataclasses
import hmac
import ipaddress
import math
import time
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, ValidationError
from pydantic_core import from_json
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from colloquy.base.config import Config, Positive, sentence
from colloquy.base.files import UserError
from colloquy.engine.predictor import work_of

STOPPING = "the server is stopping: ask again"
HEALTH = ("/healthz", "/v2/health/live", "/v2/health/ready")
"""Paths that need no key and answer while the server stops."""
LABEL = "stable"  # of the only version
CHAT = "/v1/chat/"  # where errors have the form of OpenAI's
LARGE_BODY = 30_000  # bytes of a body from which on it is large, see `Lane`
LANE = 16  # large bodies that may wait
# pause after a large body: a multiple of its time, and the most seconds
REST, LONGEST_REST = 4, 1.0


class RequestError(UserError):
    """A request that gets no answer but an HTTP status, 4xx or 5xx, some headers, and one
    sentence.
    """

    def __init__(self, status, message, headers=None):
        super().__init__(message)
        self.status, self.headers = status, headers or {}


class Limits(Config):
    """Largest sizes of a request and of a batch."""

    max_body_bytes: Positive = 1_000_000
    """Bytes of a request's body; more get status 413."""
    instances: Positive = 64
    """Instances per request."""
    items: Positive = 2_000
    """Items of a list in an instance: turns, candidates, facts."""
    characters: Positive = 200_000
    """Characters of one text."""
    max_tokens: Positive = 20_000
    """Tokens of a field of an instance, as the model's own tokenizer counts them; more get status
    413.
    """
    instance_tokens: Positive = 30_000
    """Tokens of an instance."""
    max_work: Positive = 20_000_000
    """Cells that the model computes for a request, padding included; more get status 413. See
    `engine.predictor.work_of`."""
    large: Positive = 400_000
    """Cells from which on a request is large and waits in a queue of its own."""
    max_batch: Positive = 32
    """Instances per call of a model."""
    batch_milliseconds: Annotated[float, Field(ge=0)] = 2.0
    """Time that a batch waits for further requests, from the arrival of its first one."""
    max_queue: Positive = 256
    """Instances that may wait per model; more get status 429."""
    depth: Positive = 10
    """Nesting of lists and objects of a body."""
    requests: Positive = 512
    """Requests that are open at once; more get status 503."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Seconds for a body to arrive, and then for its answer; later it gets status 504."""
    grace_seconds: Annotated[float, Field(ge=0)] = 65.0
    """Seconds that open requests have after SIGTERM, at least those of one."""


class Lane:
    """One thread for the Python work of large bodies, which keeps the interpreter from small
    requests.

    Bodies are parsed and their tokens counted one after the other, during a fifth of the time at
    most.
    """

    def __init__(self):
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="lane")
        self._waiting, self._free = 0, 0.0

    async def do(self, function, *arguments):
        """The result of a function; a `RequestError` if too many wait for theirs."""
        if self._waiting >= LANE:
            raise RequestError(429, f"{LANE} large bodies wait already: try again later")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._do, function, *arguments
            )
        finally:
            self._waiting -= 1

    def _do(self, function, *arguments):
        time.sleep(max(0.0, self._free - time.monotonic()))
        begin = time.monotonic()
        try:
            return function(*arguments)
        finally:
            end = time.monotonic()
            self._free = end + min(REST * (end - begin), LONGEST_REST)


lane = Lane()


# === Sizes ===


def check_size(sizes, limits):
    """Refuses instances once their `engine.predictor.Size`s are beyond the limits; returns the
    sizes and their work.
    """
    found, work = [], 0
    for number, size in enumerate(sizes):
        for field, count in size.tokens.items():
            check_count(f"instance {number}: `{field}`", count, limits.max_tokens, "tokens")
        check_count(
            f"instance {number}", sum(size.tokens.values()), limits.instance_tokens, "tokens"
        )
        found.append(size)
        work = work_of(found)
        lengths = " x ".join(
            f"{max(axis):,}" for axis in zip(*(size.shape for size in found), strict=True)
        )
        rows = f"{sum(size.rows for size in found):,} rows of {lengths}, padded"
        check_count(f"a request ({rows})", work, limits.max_work, "cells")
    return found, work


def check_count(where, count, most, unit):
    """Refuses a `count` above `most`, by status 413."""
    if count > most:
        raise RequestError(413, f"{where} may have {most:,} {unit} at most. Received: {count:,}")


def instances_of(columns):
    """The instances of `{field: [value of each instance]}`."""
    if len({len(column) for column in columns.values()}) > 1:
        raise RequestError(400, "the lists of `inputs` must be equally long, one item per instance")
    instances = [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
    if not instances:
        raise RequestError(400, "expected at least one instance")
    return instances


def read_value(where, text, limits):
    """The value of a text or of bytes in JSON, if its texts, lists and nesting are within the
    limits.
    """
    try:
        value = from_json(text, allow_inf_nan=False) if isinstance(text, str | bytes) else text
    except ValueError as error:
        raise RequestError(400, f"{where} must be JSON: {str(error)[:200]}") from error
    _check(where, value, limits, limits.depth)
    return value


def _check(where, value, limits, depth):
    if isinstance(value, str):
        check_count(f"a text of {where}", len(value), limits.characters, "characters")
    if isinstance(value, float) and not math.isfinite(value):
        raise RequestError(400, f"{where} has a number beyond the range of a float")
    if isinstance(value, list | dict):
        if depth == 0:
            raise RequestError(400, f"lists and objects may be nested {limits.depth} deep at most")
        check_count(where, len(value), limits.items, "items")
        for item in value:  # or the name of one
            _check(where, item, limits, depth - 1)
        for name, item in value.items() if isinstance(value, dict) else ():
            _check(f"`{name[:40]}`", item, limits, depth - 1)


# === Senders ===


def error(refusal, path):
    """The response to a `RequestError` or `UserError` at a path; a request that may be repeated is
    told when.
    """
    status, headers = getattr(refusal, "status", 400), getattr(refusal, "headers", {})
    headers = {**headers, **({"Retry-After": "1"} if status in (429, 503) else {})}
    return JSONResponse(error_body(status, str(refusal), path), status, headers)


def error_body(status, message, path):
    """`{"error": message}`, or where OpenAI's clients ask `{"error": {"message", ...}}`."""
    message = message.encode("utf-8", "replace").decode("utf-8")
    if not path.startswith(CHAT):
        return {"error": message}
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


@dataclasses.dataclass(frozen=True)
class Access:
    """Who may ask."""

    hosts: frozenset = frozenset(["*"])
    """Names by which the server may be addressed beside IP addresses, so that no web page reaches
    it by a name of its own that it points here (DNS rebinding); `*`: any."""
    origins: frozenset = frozenset()
    """Origins of other servers' pages that may ask, as `https://example.org`."""
    api_key: str | None = None
    """The key that all but /healthz need, as `Authorization: Bearer KEY` or the password of HTTP
    Basic.
    """


class Guard:
    """ASGI middleware: answers requests that it refuses; counts the others, while they are open,
    and their answers.
    """

    def __init__(self, app, access):
        self.app, self.access = app, access

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if scope["method"] == "HEAD":  # the server leaves out the body
            scope = {**scope, "method": "GET"}
        state, begin, sent = scope["app"].state, time.perf_counter(), []

        async def note(message):
            if message["type"] == "http.response.start":
                sent[:] = message["status"], time.perf_counter() - begin
            await send(message)

        try:
            self._check(scope, Headers(scope=scope), state)
        except RequestError as refusal:
            return await error(refusal, scope["path"])(scope, receive, send)
        state.requests += 1
        try:
            await self.app(scope, receive, note)
        finally:
            state.requests -= 1
            if scope["method"] == "POST" and "endpoint" in scope:
                status, seconds = sent or (500, time.perf_counter() - begin)
                labels = scope.get("state", {}).get("model", "unknown"), scope["endpoint"].__name__
                state.metrics.answered(*labels, status, seconds)

    def _check(self, scope, headers, state):
        if not self._is_known(host := headers.get("host", "")):
            raise RequestError(
                421, f"{host[:100]!r} is not a name of this server: see --allowed_hosts"
            )
        origin = headers.get("origin")
        if origin and origin not in self.access.origins and origin.partition("://")[2] != host:
            raise RequestError(
                403, f"pages of {origin[:100]!r} may not send requests here: see --cors_origins"
            )
        if scope["path"] in HEALTH:
            return
        if state.stopping:
            raise RequestError(503, STOPPING, {"Connection": "close"})
        if self.access.api_key and not self._has_key(headers.get("authorization", "")):
            raise RequestError(
                401, "expected the server's key", {"WWW-Authenticate": 'Basic realm="Colloquy"'}
            )
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json" and not kind.endswith("+json"):
            raise RequestError(
                415, f"expected Content-Type: application/json. Received: {kind[:100]!r}"
            )
        if state.requests >= (most := state.limits.requests):
            raise RequestError(503, f"{most} requests are open: ask again")

    def _is_known(self, host):
        with contextlib.suppress(ValueError):
            name = urlsplit(f"//{host}").hostname or ""
            return bool({name, "*"} & self.access.hosts or ipaddress.ip_address(name))
        return False

    def _has_key(self, authorization):
        kind, _, given = authorization.encode("latin-1").decode("utf-8", "replace").partition(" ")
        if kind.lower() == "basic":
            try:
                given = base64.b64decode(given).decode("utf-8").partition(":")[2]
            except ValueError:
                return False
        return hmac.compare_digest(
            given.encode("utf-8", "replace"), self.access.api_key.encode("utf-8")
        )


# === Routes ===


class ModelPath(StringConvertor):
    """Part of a path, `{model:model}`, that names a model, and perhaps its version or label."""

    regex = "[^/:]+(?:/(?:versions|labels)/[^/:]+)?"


register_url_convertor("model", ModelPath())


def find_model(request, name=None):
    """The model that a request's path names, or one of a name, in the version that it asks for."""
    models = request.app.state.models
    name, _, version = (request.path_params["model"] if name is None else name).partition("/")
    if name not in models:
        raise RequestError(404, f"there is no model {name[:100]!r}; there are {', '.join(models)}")
    model, request.state.model = models[name], name
    if version not in ("", f"versions/{model.version}", f"labels/{LABEL}"):
        raise RequestError(
            404,
            f"{name} has version {model.version} and label {LABEL} alone. Received: {version[:40]}",
        )
    return model


def as_json(found):
    """The response to a request; an answer with NaN is refused."""
    try:
        return JSONResponse(found)
    except ValueError as wrong:
        raise RequestError(
            422, "the model's answer contains infinity or NaN, which JSON cannot represent"
        ) from wrong


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


async def read(request, kind):
    """The body of a request, a JSON object, as a `base.config.Config`, read no further than the
    limit.
    """
    limits, length = request.app.state.limits, request.headers.get("content-length", "0")
    check_count("a body", int(length) if length.isdigit() else 0, limits.max_body_bytes, "bytes")
    body = bytearray()
    try:
        # slow clients must not hold a request open
        async with asyncio.timeout(limits.timeout_seconds):
            async for part in request.stream():
                body += part
                check_count("a body", len(body), limits.max_body_bytes, "bytes")
    except TimeoutError as late:
        raise RequestError(
            408, f"the body did not arrive within {limits.timeout_seconds:g} seconds"
        ) from late
    except ClientDisconnect as left:
        # for the counts alone
        raise RequestError(499, "the client left before its body had arrived") from left
    if len(body) < LARGE_BODY:
        return _parse(bytes(body), kind, limits)
    return await while_wanted(request, lane.do(_parse, bytes(body), kind, limits))


def _parse(body, kind, limits):
    value = read_value("the body", body, limits)
    if not isinstance(value, dict):
        raise RequestError(400, f"the body must be a JSON object. Received: {type(value).__name__}")
    try:
        return kind.model_validate(value)
    except ValidationError as wrong:
        raise RequestError(400, sentence(wrong, kind)) from wrong
