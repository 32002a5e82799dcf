"""Receives the body of each request, and answers a limited number of requests at once."""

import re
import time

from starlette.datastructures import Headers

from colloquy.serving import metrics
from colloquy.serving.answers import RequestError, respond_error
from colloquy.serving.limits import check_count

# The path of the health check. It needs no key, and is answered even if every place is taken.
HEALTH = "/healthz"


class Places:
    """ASGI middleware that gives a request one of `Limits.requests` places while it is answered.

    The request gets its place when its whole body has arrived, so slow clients take no places from
    the others; `serving.connections` closes their connections. Without a free place it gets status
    503.
    """

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        app_state = scope["app"].state
        limits = app_state.limits
        try:
            body = await _receive_body(scope, receive, limits.max_body_bytes)
            if app_state.open_requests >= limits.requests and scope["path"] != HEALTH:
                raise RequestError(503, f"{limits.requests} requests are open: ask again")
        except RequestError as error:
            return await respond_error(error, scope["path"])(scope, receive, send)

        async def receive_again():
            """Gives the application the whole body, and later what the client sends after it."""
            nonlocal body
            if body is None:
                return await receive()
            message = {"type": "http.request", "body": body, "more_body": False}
            body = None  # frees its memory while the request is answered
            return message

        begin = time.perf_counter()
        status = 500  # stays if the application fails before its answer begins
        seconds = None

        async def send_and_note(message):
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                status = message["status"]
                seconds = time.perf_counter() - begin
            await send(message)

        app_state.open_requests += 1
        try:
            await self.app(scope, receive_again, send_and_note)
        finally:
            app_state.open_requests -= 1
            # The router has put its route, the route's function as `endpoint`, and the state of the
            # request into `scope`. POST requests that have a route for POST are counted. Their time
            # ends when the answer begins.
            methods = getattr(scope.get("route"), "methods", None) or ()
            if scope["method"] == "POST" and "POST" in methods:
                model = scope.get("state", {}).get("model", "unknown")
                verb = scope["endpoint"].__name__
                if seconds is None:
                    seconds = time.perf_counter() - begin
                metrics.REQUESTS.labels(model, verb, status).inc()
                metrics.REQUEST_SECONDS.labels(model, verb).observe(seconds)


async def _receive_body(scope, receive, max_bytes):
    """Receives the whole body of a request.

    Raises:
        RequestError: The body is larger than `max_bytes`, its length is ambiguous, or the client
            left.
    """
    headers = Headers(scope=scope)
    # With both headers, a proxy and this server could find different ends of the body. A client
    # could hide a second request from the proxy that way ("request smuggling").
    if "transfer-encoding" in headers and "content-length" in headers:
        message = "expected one of the headers Content-Length and Transfer-Encoding"
        raise RequestError(400, message, {"Connection": "close"})
    # A body that is announced as too large is refused before it arrives.
    announced_bytes = headers.get("content-length", "0")
    if re.fullmatch("[0-9]{1,18}", announced_bytes):
        check_count("a body", int(announced_bytes), max_bytes, "bytes")

    body = bytearray()
    more_body = True
    while more_body:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError(499, "the client left before its body had arrived")
        body += message.get("body", b"")
        check_count("a body", len(body), max_bytes, "bytes")
        more_body = message.get("more_body", False)
    return bytes(body)
