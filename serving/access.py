"""Who may send requests: by the server's name, the origin of a page, and a key."""

import base64
import dataclasses
import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from colloquy.serving.answers import RequestError, respond_error
from colloquy.serving.places import HEALTH

STOPPING = "the server is stopping: ask again"


@dataclasses.dataclass(frozen=True)
class Access:
    """Who may send requests."""

    hosts: frozenset = frozenset(["*"])
    """Names of the server apart from IP addresses; `*`: any. Without this check a web page could
    point a name of its own at this server and read its answers (DNS rebinding)."""
    origins: frozenset = frozenset()
    """Origins of other servers' pages that may send requests, as `https://example.org`."""
    api_key: str | None = None
    """The key that all but /healthz need, as `Authorization: Bearer KEY` or as the password of HTTP
    Basic."""


class Guard:
    """ASGI middleware that refuses requests by their headers."""

    def __init__(self, app, access):
        self.app = app
        self.access = access

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            try:
                self._check(scope, Headers(scope=scope), scope["app"].state)
            except RequestError as error:
                return await respond_error(error, scope["path"])(scope, receive, send)
        return await self.app(scope, receive, send)

    def _check(self, scope, headers, state):
        host = headers.get("host", "")
        if not self._is_own_name(host):
            name = _hostname(host) or "NAME"
            flag = f"start it with --allowed_hosts={name[:100]}"
            raise RequestError(421, f"{host[:100]!r} is not a name of this server: {flag}")
        origin = headers.get("origin")
        if origin and origin not in self.access.origins and origin.partition("://")[2] != host:
            flag = f"start it with --cors_origins={origin[:100]}"
            raise RequestError(403, f"pages of {origin[:100]!r} may not send requests: {flag}")
        if scope["path"] == HEALTH:
            return

        if state.stopping:
            raise RequestError(503, STOPPING, {"Connection": "close"})
        if self.access.api_key and not self._has_key(headers.get("authorization", "")):
            challenge = {"WWW-Authenticate": 'Basic realm="Colloquy"'}
            raise RequestError(401, "expected the server's key", challenge)
        if scope["method"] == "POST":
            _check_content_type(headers.get("content-type", ""))

    def _is_own_name(self, host):
        if "*" in self.access.hosts or _hostname(host) in self.access.hosts:
            return True
        try:
            ipaddress.ip_address(_hostname(host))
        except ValueError:
            return False
        return True

    def _has_key(self, authorization):
        # Starlette decodes headers as Latin-1; keys are UTF-8.
        text = authorization.encode("latin-1").decode("utf-8", "replace")
        scheme, _, key = text.partition(" ")
        if scheme.lower() == "basic":
            try:
                key = base64.b64decode(key).decode("utf-8").partition(":")[2]
            except ValueError:
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(key.encode("utf-8"), self.access.api_key.encode("utf-8"))


def _hostname(host):
    """Returns the name in a `Host` header, empty if it has none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _check_content_type(header):
    content_type = header.partition(";")[0].strip().lower()
    if content_type != "application/json" and not content_type.endswith("+json"):
        message = f"expected Content-Type: application/json. Received: {content_type[:100]!r}"
        raise RequestError(415, message)
