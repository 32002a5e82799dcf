"""What the server sends: JSON and errors."""

import json
from typing import Literal

from starlette.responses import JSONResponse

from colloquy.base.config import Config
from colloquy.base.files import UserError

JSON = "application/json"


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


def make_json(value):
    """Writes a value as JSON, in bytes; one with infinity or NaN is refused."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        message = "the model's answer contains infinity or NaN, which JSON cannot represent"
        raise RequestError(422, message) from error
    return text.encode("utf-8", "replace")


def respond_error(error, path):
    """Makes the response to a `UserError` at a path; says when a request may be repeated."""
    if not isinstance(error, RequestError):
        error = RequestError(400, str(error))
    status = error.status
    headers = dict(error.headers)
    if status in (429, 503):
        headers["Retry-After"] = "1"
    message = str(error).encode("utf-8", "replace").decode("utf-8")
    if not is_openai_path(path):
        return JSONResponse({"error": message}, status, headers)
    body = {
        "message": message,
        "type": "server_error" if status >= 500 else "invalid_request_error",
        "param": error.field,
        "code": error.code,
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
