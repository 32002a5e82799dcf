"""What the server sends: JSON, made once and compressed where that saves much, and errors."""

import gzip
import json
from typing import Literal, NamedTuple

from starlette.responses import JSONResponse, Response

from colloquy.base.config import Config
from colloquy.base.files import UserError

COMPRESSED_FROM = 2_000  # bytes


class RequestError(UserError):
    """An answer with an HTTP status of 400 or more, and one sentence.

    Args:
        status: The HTTP status.
        message: The sentence.
        headers: Headers of the answer.
        field, code: For OpenAI's clients: the wrong field of the body, and a name of the error.
    """

    def __init__(self, status, message, headers=None, field=None, code=None):
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.field = field
        self.code = code


class OpenAIProblem(Config):
    """What went wrong, in one sentence, and where."""

    message: str
    type: Literal["invalid_request_error", "server_error"]
    param: str | None
    """The wrong field of the body."""
    code: str | None


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
    return make_content(text.encode("utf-8", "replace"), "application/json")


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
    message = str(error).encode("utf-8", "replace").decode("utf-8")
    if not is_openai_path(path):
        return JSONResponse({"error": message}, status, headers)
    body = {
        "message": message,
        "type": "server_error" if status >= 500 else "invalid_request_error",
        "param": getattr(error, "field", None),
        "code": getattr(error, "code", None),
    }
    return JSONResponse({"error": body}, status, headers)


class Error(Config):
    """What went wrong, in one sentence."""

    error: str


class OpenAIError(Config):
    """What went wrong, as OpenAI has it."""

    error: OpenAIProblem


def is_openai_path(path):
    """True for the paths below /v1 that OpenAI's clients may call.

    A path with a verb, as `/v1/models/NAME:predict`, is one of TensorFlow Serving.
    """
    return path.startswith("/v1/") and ":" not in path
