"""A real browser on the pages, served by models that answer at once: `make test-browser`."""

import contextlib
import shutil
import threading
import time

import pytest
import uvicorn

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.serving.access import Access
from colloquy.serving.app import create_app
from colloquy.serving.limits import Limits

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Fake:
    """A model of one task with a fixed answer; keeps the instances that it was given.

    While `held` has "loading", "answer" or "attention", that is not finished.
    """

    version, ready = "1", True
    damage = ""
    """Why it cannot be loaded."""

    def __init__(self, task, answer, examples=(), name=None, knowledge=(), **more):
        self.knowledge = list(knowledge)
        self.name, self.task, self.answer, self.asked = name or f"fake-{task}", task, answer, []
        self.examples, self.more, self.predictor, self.held = list(examples), more, self, set()

    def wait(self, step):
        while step in self.held:
            time.sleep(0.01)

    def valid(self, instance, where):
        return instance

    def padded_rows(self, instance):
        return 1

    def count_tokens(self, text):
        return len(text.split())

    Instance = Config  # whose fields the application asks for

    def answers(self, instances):
        self.asked += instances
        self.wait("answer")
        return [self.answer(instance) for instance in instances]

    def conversation(self, said, decode=""):
        return {"turns": [text for _, text in said], "decode": decode}

    def reply(self, answer):
        return answer["response"]

    def explain(self, instance):
        """The answer and maps as the task's: of a response's words, of a passage's, of a reply's,
        of memories.
        """
        [found] = self.answers([instance])
        self.wait("attention")
        maps = {"selection": self.matches, "reading_comprehension": self.flow}.get(
            self.task, self.weights
        )
        return {**found, "attention": maps(instance, found)}

    def matches(self, instance, found):
        rows, columns = instance["turns"][-1].split(), instance["candidates"][0].split()
        weights = [[float(row == column) for column in columns] for row in rows]
        return [{"title": "turn 1", "rows": rows, "columns": columns, "weights": weights}]

    def flow(self, instance, found):
        words, question = instance["passage"].split(), instance["question"].split()
        here = [float(word.strip(".") == found["answer"]) for word in words]
        return [
            {
                "title": "probabilities",
                "rows": ["start", "end"],
                "columns": words,
                "weights": [here, here],
            },
            {
                "title": "p to q",
                "rows": words,
                "columns": question,
                "weights": [[0.01] * len(question)] * len(words),
            },
        ]

    def weights(self, instance, found):
        if self.task == "dialog":
            rows = [f"{each['speaker']}: {each['text']}" for each in instance["history"]]
            return [
                {
                    "title": "memories",
                    "rows": rows,
                    "columns": ["hop 1"],
                    "weights": [[1 / len(rows)]] * len(rows),
                }
            ]
        rows, columns = found["response"].split(), instance["turns"][-1].split()
        weights = [
            [float(j == i % len(columns)) for j in range(len(columns))] for i in range(len(rows))
        ]
        return [{"title": "source", "rows": rows, "columns": columns, "weights": weights}]

    def summary(self):
        return {
            name: value
            for name, value in self.metadata.items()
            if name in ("task", "title", "default")
        }

    def describe(self):
        metadata = {"metadata": self.metadata}
        return {
            "metadata": metadata,
            "state": self.metadata,
            "knowledge": {"knowledge": self.knowledge},
        }

    @property
    def metadata(self):
        self.wait("loading")
        if self.damage:
            raise UserError(self.damage)
        facts = {
            "name": self.name,
            "version": "1",
            "task": self.task,
            "model": "fake",
            "corpus": "a test",
        }
        facts |= {"title": f"Title of {self.name}", "default": False, "card": CARD}
        return {**facts, "scores": {"dev": {"R10@1": 0.5}}, "examples": self.examples, **self.more}


def rank(instance):
    found = (
        {}
        if "candidates" in instance
        else {
            "candidates": ["of the index", "too"],
            "said_to": [["hi"], ["oh", "so"]],
            "totals": [-12.0, -3.0],
        }
    )
    candidates = instance.get("candidates") or found["candidates"]
    scores = [1 / (1 + len(text)) for text in candidates]
    logits = {} if found else {"logits": [-float(len(text)) for text in candidates]}
    return {
        **found,
        **logits,
        "scores": scores,
        "order": sorted(range(len(scores)), key=lambda i: -scores[i]),
    }


def read(instance):
    text, word = instance["passage"], instance["question"].split()[-1].strip("?")
    start = max(text.find(word), 0)
    answer = {
        "answer": word,
        "start": start,
        "end": start + len(word),
        "score": 0.9,
        "confidence": 0.75,
    }
    doubtful = {"good": not word.startswith("x"), "unknown_percent": 12.5}
    return {
        **answer,
        **doubtful,
        "n_best": [answer, {**answer, "answer": "Ann", "confidence": 0.125}],
    }


def write(instance):
    texts = [f"you said: {instance['turns'][-1]}", "something else"]
    best = [{"text": text, "score": score} for text, score in zip(texts, (0.5, -1.0), strict=True)]
    return {"response": texts[0], "best": best}


def book(instance):
    response, said = f"turn {len(instance['history'])}: noted", []
    if instance["history"][-1]["text"] == "search":
        response = "api_call italian"
        after = [("fact", "casa R_cuisine italian"), ("user", ""), ("bot", "what about casa")]
        said = [{"speaker": speaker, "text": text} for speaker, text in after]
    best = [{"text": response, "score": 0.8}, {"text": "hello", "score": 0.2}]
    return {
        "response": response,
        "best": best,
        "said": [{"speaker": "bot", "text": response}, *said],
    }


EXAMPLES = {
    "selection": {
        "turns": ["hi", "which table ?"],
        "candidates": ["the one at the window", "no", "perhaps"],
    },
    "reading_comprehension": {
        "passage": "Ann lives in Rome. Bob lives in Paris.",
        "question": "Who lives in Paris",
    },
}
SECOND = {"turns": ["is it cold ?"], "candidates": ["very cold", "yes"]}
CARD = "# A card\n\nWhat it cannot do."


@pytest.fixture
def models():
    rank_examples = [
        {
            "title": "A table",
            "instance": EXAMPLES["selection"],
            "expected": ["perhaps"],
            "source": "dev, context 1",
        },
        {"title": "Weather", "instance": SECOND, "expected": ["yes"]},
    ]
    read_examples = [
        {
            "title": "Two people",
            "instance": EXAMPLES["reading_comprehension"],
            "expected": ["Paris"],
        }
    ]
    facts = ["la_mirabelle R_cuisine french", "casa R_cuisine italian"]
    found = [
        Fake("selection", rank, rank_examples, responses=2345),
        Fake("reading_comprehension", read, read_examples),
        Fake("generation", write, [], name="a-other-talk"),
        Fake(
            "generation",
            write,
            [{"title": "Tea", "instance": {"turns": ["hi", "hello", "tea ?"]}}],
            default=True,
        ),
        Fake("dialog", book, knowledge=facts),
    ]
    return {model.name: model for model in found}


class Server:
    """The app on a port of this machine, on a thread; can be stopped and started again on the same
    port.
    """

    def __init__(self, models):
        self.models, self.port = models, 0
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
def server(models):
    running = Server(models)
    yield running
    for model in models.values():
        model.held.clear()
    running.stop()


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    flags = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
    ]
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(
            executable_path=CHROMIUM, args=[*flags, "--disable-component-update"]
        )
        yield chromium
        chromium.close()


@contextlib.contextmanager
def opened(browser, url, **options):
    """A page of its own; nothing on it may fail or open a dialog of the browser."""
    context, problems = browser.new_context(**options), []
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
    page.goto(url)
    page.locator("#panel-selection .about:not(:empty)").wait_for(state="attached")
    yield page
    with contextlib.suppress(Exception):
        context.close()
    assert problems == []


@pytest.fixture(params=[(1440, 900), (390, 844)], ids=["wide", "narrow"])
def page(browser, server, request):
    width, height = request.param
    with opened(browser, server.url, viewport={"width": width, "height": height}) as page:
        yield page


def open_tab(page, name):
    page.get_by_role("tab", name=name).click()
    panel = page.get_by_role("tabpanel")
    panel.locator(".about:not(:empty)").wait_for(state="attached")
    return panel


def tab(name):
    return pytest.fixture(lambda page: open_tab(page, name))


TABS = {"Pick a response": "Rank", "Ask a text": "Ask", "Talk": "Say", "Book a table": "Say"}
ranking, reading, talk, booking = map(tab, TABS)
