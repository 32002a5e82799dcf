"""A real browser on the pages, served by models that answer at once: `make test-browser`.

All tests share one browser, one context and one server; `own_server` is for tests that stop it, or
hold up its loading.
"""

import contextlib
import shutil
import threading
import time

import pytest
import uvicorn

from colloquy.serving.access import Access
from colloquy.serving.app import create_app
from tests.browser.fakes import make_models
from tests.browser.steps import open_tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
]
WIDE = {"width": 1400, "height": 900}
PHONE = {"width": 390, "height": 844}
TIMEOUT_MS = 30_000  # a loaded machine is slow; nothing waits this long where all is well


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.browser)
        item.add_marker(pytest.mark.skipif(not CHROMIUM, reason="no Chromium here"))


class Server:
    """The app on a port of this machine, on a thread; can be stopped and started again there."""

    def __init__(self, models):
        self.models = models
        self.port = 0
        self.start()

    def start(self, key=None):
        """Listens again where it did; with a key it asks for it."""
        app = create_app(self.models, access=Access(api_key=key))
        config = uvicorn.Config(app, port=self.port, log_level="error", lifespan="on")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"

    def stop(self):
        for model in self.models.values():
            getattr(model, "held", set()).clear()
        self.server.should_exit = True
        self.server.force_exit = True
        self.thread.join(10)


@pytest.fixture(scope="session")
def shared_server():
    server = Server(make_models())
    yield server
    server.stop()


@pytest.fixture
def server(shared_server):
    yield shared_server
    for model in shared_server.models.values():
        model.held.clear()
        model.asked.clear()


@pytest.fixture
def models(server):
    return server.models


@pytest.fixture
def own_server():
    server = Server(make_models())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=TIMEOUT_MS)
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def context(browser):
    context = browser.new_context(viewport=WIDE)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    return context


@pytest.fixture
def open_page(context):
    """`open_page(url)` opens a page, on which nothing may fail."""
    with contextlib.ExitStack() as stack:
        yield lambda url: stack.enter_context(opened(context, url))


@contextlib.contextmanager
def opened(context, url):
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
    page.goto(url)
    yield page
    page.close()
    assert problems == []


@pytest.fixture
def reading(server, open_page):
    page = open_page(server.url)
    page.locator("#panel-reading_comprehension mark").wait_for()
    return page.get_by_role("tabpanel")


@pytest.fixture
def talk(server, open_page):
    return open_tab(open_page(f"{server.url}#generation"), "Talk")


@pytest.fixture
def dialog(server, open_page):
    return open_tab(open_page(f"{server.url}#dialog"), "Dialog bAbI")


@pytest.fixture
def ranking(server, open_page):
    return open_tab(open_page(f"{server.url}#selection"), "Pick a response")
