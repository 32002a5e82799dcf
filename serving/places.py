"""A place for each request: first while its body arrives, then while it is answered."""

import time

from starlette.datastructures import Headers

from colloquy.serving.answers import RequestError, respond_error
from colloquy.serving.limits import check_count

HEALTH = "/healthz"  # answers also when every place is taken, needs no key


class Places:
    """ASGI middleware that receives a whole body before anything parses it, and counts requests.

    A body has a largest size. One that has not arrived takes no place from those that are answered;
    `serving.server` closes connections that are slow.
    """

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        state = scope["app"].state
        try:
            body = await _receive_body(scope, receive, state.limits.max_body_bytes)
            if state.open_requests >= state.limits.requests and scope["path"] != HEALTH:
                raise RequestError(503, f"{state.limits.requests} requests are open: ask again")
        except RequestError as error:
            return await respond_error(error, scope["path"])(scope, receive, send)

        async def receive_again():
            nonlocal body
            if body is None:
                return await receive()
            message = {"type": "http.request", "body": body, "more_body": False}
            body = None
            return message

        state.open_requests += 1
        try:
            await _count(self.app, scope, receive_again, send)
        finally:
            state.open_requests -= 1


async def _receive_body(scope, receive, most):
    """Receives the body of a request, of `most` bytes at most."""
    headers = Headers(scope=scope)
    if "transfer-encoding" in headers and "content-length" in headers:
        message = "expected one of the headers Content-Length and Transfer-Encoding"
        raise RequestError(400, message, {"Connection": "close"})
    announced = headers.get("content-length", "0")
    if announced.isdigit():
        check_count("a body", int(announced), most, "bytes")

    body = bytearray()
    more_body = True
    while more_body:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError(499, "the client left before its body had arrived")
        body += message.get("body", b"")
        check_count("a body", len(body), most, "bytes")
        more_body = message.get("more_body", False)
    return bytes(body)


async def _count(app, scope, receive, send):
    """Calls the application, and counts a request that it answered, with its status and time."""
    begin = time.perf_counter()
    status = 500
    seconds = None

    async def send_and_note(message):
        nonlocal status, seconds
        if message["type"] == "http.response.start":
            status = message["status"]
            seconds = time.perf_counter() - begin
        await send(message)

    try:
        await app(scope, receive, send_and_note)
    finally:
        if scope["method"] == "POST" and "endpoint" in scope:
            if seconds is None:
                seconds = time.perf_counter() - begin
            model = scope.get("state", {}).get("model", "unknown")
            verb = scope["endpoint"].__name__
            scope["app"].state.metrics.count_request(model, verb, status, seconds)
