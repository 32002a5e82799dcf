"""serving/starting.py: what a server answers and prints before its models are there."""

import json
import re
import urllib.error
import urllib.request

from helpers import refusal, until

from colloquy.serving.page_files import PAGE_HEADERS
from colloquy.serving.server import bind, listen
from colloquy.serving.starting import Progress, starting


def get(port, path, **headers):
    """Returns the status, headers and body of an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def test_the_pages_are_shown_while_the_models_load_and_a_line_each_second_says_what_is_done(capfd):
    listening = bind("127.0.0.1", 0)
    listen(listening)
    port = listening.getsockname()[1]
    progress = Progress()
    printed = []

    def two_lines():
        printed.append(capfd.readouterr().out)
        return "".join(printed).count("\n") >= 2

    with listening, starting(listening, progress):
        progress.step = "loading a model"
        until(lambda: "loading a model" in get(port, "/v1/models")[2])
        status, headers, page = get(port, "/", Accept="text/html")
        assert status == 200 and 'src="pages/app.js"' in page
        csp = "Content-Security-Policy"
        assert headers[csp] == PAGE_HEADERS[csp]
        assert get(port, "/pages/app.js")[0] == 200
        for path in ("/", "/v1/models", "/pages/..%2fapp.py", "/pages/../app.py", "/pages/none.js"):
            status, headers, body = get(port, path)
            assert status == 503 and headers["Retry-After"] == "1"
            assert json.loads(body) == {"error": "the server is starting: loading a model"}
        until(two_lines)
    first, second, *_ = "".join(printed).splitlines()
    remark = f"; the pages are at port {port} already"
    assert re.fullmatch(rf"\d+ s: loading a model{remark}", first)
    assert re.fullmatch(r"\d+ s: loading a model", second)
    assert listening.fileno() == -1


def test_a_port_that_another_server_uses_is_refused():
    first = bind("127.0.0.1", 0)
    with first, bind("127.0.0.1", first.getsockname()[1]) as second:
        listen(first)
        assert "Address already in use" in refusal(listen, second)
