"""A real browser on the pages, served by models that answer at once: `make test-browser`."""

import contextlib
import shutil
import threading
import time

import pytest
import uvicorn

from colloquy.serving.access import Access
from colloquy.serving.app import create_app
from colloquy.serving.limits import Limits
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
        app = create_app(self.models, Limits(), Access(api_key=key))
        config = uvicorn.Config(
            app, host="127.0.0.1", port=self.port, log_level="error", lifespan="on"
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"

    def stop(self):
        self.server.should_exit = True
        self.server.force_exit = True
        self.thread.join(10)


@pytest.fixture
def models():
    return make_models()


@pytest.fixture
def server(models):
    running = Server(models)
    yield running
    for model in models.values():
        model.held.clear()
    running.stop()


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=TIMEOUT_MS)
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """`open_page(url, **options)` is a page of its own, on which nothing may fail."""
    with contextlib.ExitStack() as stack:
        yield lambda url, **options: stack.enter_context(opened(browser, url, **options))


@contextlib.contextmanager
def opened(browser, url, **options):
    context = browser.new_context(**{"viewport": WIDE, **options})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
    page.goto(url)
    yield page
    with contextlib.suppress(Exception):
        context.close()
    assert problems == []


@pytest.fixture
def page(server, open_page):
    page = open_page(server.url)
    page.locator("#panel-reading_comprehension mark").wait_for()
    return page


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def sized_page(server, open_page, request):
    page = open_page(server.url, viewport=request.param)
    page.locator("#panel-reading_comprehension mark").wait_for()
    return page


@pytest.fixture
def reading(page):
    return open_tab(page, "Ask a text")


@pytest.fixture
def talk(page):
    return open_tab(page, "Talk")


@pytest.fixture
def dialog(page):
    return open_tab(page, "Dialog bAbI")


@pytest.fixture
def ranking(page):
    return open_tab(page, "Pick a response")
