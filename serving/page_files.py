"""Files of the web pages, and the headers that they are sent with."""

import functools
import importlib.util
import pathlib

PAGES = pathlib.Path(__file__).parent / "pages"
INDEX = "index.html"
DOCS = "docs.html"
MEDIA_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
# A page runs only scripts of this server, whatever text it shows.
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # files of two versions do not fit each other
}
# Swagger UI sets styles of its elements.
DOCS_HEADERS = {
    **PAGE_HEADERS,
    "Content-Security-Policy": PAGE_HEADERS["Content-Security-Policy"].replace(
        "style-src 'self'", "style-src 'self' 'unsafe-inline'"
    ),
}


@functools.cache
def find_pages():
    """Finds the files, `{name: path}`; those of Swagger UI are in the package fastapi-offline."""
    # The package itself is not imported: it would change FastAPI.
    swagger_ui = pathlib.Path(importlib.util.find_spec("fastapi_offline").origin).parent / "static"
    files = [
        *PAGES.iterdir(),
        swagger_ui / "swagger-ui-bundle.js",
        swagger_ui / "swagger-ui.css",
    ]
    return {file.name: file for file in files if file.suffix in MEDIA_TYPES}


def media_type(path):
    return f"{MEDIA_TYPES[path.suffix]}; charset=utf-8"


def headers_of(name):
    return DOCS_HEADERS if name == DOCS else PAGE_HEADERS
