"""A real browser on the pages, served by models that answer at once: `make test-browser`."""

import contextlib
import shutil
import threading
import time

import pytest
import uvicorn

from engine.predictor import Size
from serving.app import create_app
from serving.limits import Limits

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Fake:
    """A model of one task with a fixed answer; keeps the instances that it was given."""

    version = "1"

    def __init__(self, task, answer, examples=(), **more):
        self.name, self.task, self.answer, self.asked = f"fake-{task}", task, answer, []
        self.examples, self.more = list(examples), more

    def valid(self, instance, where):
        return instance

    def size(self, instance):
        return Size({}, 1, ())

    def answers(self, instances):
        self.asked += instances
        return [self.answer(instance) for instance in instances]

    def explain(self, instance):
        words = next(iter(instance.values()))
        rows = [str(word)[:30] for word in (words if isinstance(words, list) else words.split())] or ["-"]
        weights = [[0.1 * (i + j) for j in range(3)] for i in range(len(rows))]
        shown = {"rows": rows, "columns": ["a", "b", "c"], "weights": weights}
        maps = [{"title": name, **shown} for name in ("level 0", "level 1")]
        return {**self.answers([instance])[0], "attention": maps}

    def metadata(self):
        facts = {"name": self.name, "version": "1", "task": self.task, "model": "fake", "corpus": "a test"}
        return {**facts, "scores": {"dev": {"score": 0.5}}, "examples": self.examples, **self.more}


def rank(instance):
    found = (
        {}
        if "candidates" in instance
        else {"candidates": ["of the index", "too"], "said_to": [["hi"], ["oh", "so"]], "totals": [-12.0, -3.0]}
    )
    candidates = instance.get("candidates") or found["candidates"]
    scores = [1 / (1 + len(text)) for text in candidates]
    logits = {} if found else {"logits": [-float(len(text)) for text in candidates]}
    return {**found, **logits, "scores": scores, "order": sorted(range(len(scores)), key=lambda i: -scores[i])}


def read(instance):
    text, word = instance["passage"], instance["question"].split()[-1].strip("?")
    start = max(text.find(word), 0)
    answer = {"answer": word, "start": start, "end": start + len(word), "score": 0.9, "confidence": 0.75}
    doubtful = {"good": not word.startswith("x"), "unknown_percent": 12.5}
    return {**answer, **doubtful, "n_best": [answer, {**answer, "answer": "Ann", "confidence": 0.125}]}


def write(instance):
    texts = [f"you said: {instance['turns'][-1]}", "something else"]
    return {"response": texts[0], "best": [{"text": text, "score": -1.0} for text in texts]}


def book(instance):
    response = f"turn {len(instance['history'])}: noted"
    facts = ["casa R_cuisine italian"] if instance["history"][-1]["text"] == "search" else []
    return {"response": response, "best": [{"text": response, "score": 0.8}], "facts": facts}


EXAMPLES = {
    "selection": {"turns": ["hi", "which table ?"], "candidates": ["the one at the window", "no", "perhaps"]},
    "reading_comprehension": {"passage": "Ann lives in Rome. Bob lives in Paris.", "question": "Who lives in Paris"},
}


@pytest.fixture
def models():
    found = {
        "selection": Fake("selection", rank, [{"title": "A table", "instance": EXAMPLES["selection"]}], responses=2345),
        "reading_comprehension": Fake(
            "reading_comprehension", read, [{"title": "Two people", "instance": EXAMPLES["reading_comprehension"]}]
        ),
        "generation": Fake("generation", write, [{"title": "Tea", "instance": {"turns": ["hi", "hello", "tea ?"]}}]),
        "dialog": Fake("dialog", book, knowledge=["la_mirabelle R_cuisine french", "casa R_cuisine italian"]),
    }
    return {model.name: model for model in found.values()}


class Server:
    """The app on a port of this machine, on a thread; can be stopped and started again on the same port."""

    def __init__(self, models):
        self.models, self.port = models, 0
        self.start()

    def start(self):
        app = create_app(self.models, Limits(body_bytes=1_000_000), milliseconds=1.0)
        config = uvicorn.Config(app, host="127.0.0.1", port=self.port, log_level="error", lifespan="on")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    def stop(self):
        self.server.should_exit = True
        self.server.force_exit = True
        self.thread.join(10)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"


@pytest.fixture
def server(models):
    running = Server(models)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=[*flags, "--disable-component-update"])
        yield chromium
        chromium.close()


@pytest.fixture(params=[(1280, 900), (390, 844)], ids=["wide", "narrow"])
def page(browser, server, request):
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.set_default_timeout(10_000)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
    page.goto(server.url)
    page.get_by_role("tab", name="Pick a response").wait_for()
    yield page
    with contextlib.suppress(Exception):
        context.close()
    assert problems == []
