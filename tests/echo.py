"""For tests of serving: a model that answers at once, and a server on a thread."""

import contextlib
import http.client
import json
import threading

from helpers import until

from colloquy.base.config import Config
from colloquy.engine.predictor import Predictor
from colloquy.serving.app import create_app
from colloquy.serving.models import Served
from colloquy.serving.server import Server, listen


class Letter(Config):
    text: str


class Echo(Predictor):
    """Answers with the length of `text`; `wait` holds it up until `event` is set."""

    class Instance(Config):
        text: str
        wait: bool = False
        inside: list[Letter] = []

    class Answer(Config):
        length: int
        text: str
        letters: list[Letter] = []

    def __init__(self):
        self.event, self.calls = threading.Event(), []

    def answer(self, instances):
        self.calls.append(len(instances))
        if any(instance.wait for instance in instances):
            self.event.wait(20)
        return [
            self.Answer(length=len(instance.text), text=instance.text) for instance in instances
        ]

    def conversation(self, said, decode=""):
        return {"text": said[-1][1]}

    def reply(self, answer):
        return answer["text"]

    def padded_rows(self, instance):
        return max(1, len(instance.text))

    def answer_with_attention(self, instance, details):
        letters = {
            "title": "letters",
            "rows": list(instance.text),
            "columns": ["x"],
            "weights": [[1.0]] * len(instance.text),
        }
        return self.answer([instance])[0], [letters]


FACTS = {
    "task": "echo",
    "title": "An echo",
    "label": "",
    "default": False,
    "examples": [],
    "card": "",
}
"""The facts of a run that the server reads, see `serving.run_facts.describe_run`."""


def served(predictor, name="echo", **facts):
    """A `Served` of a predictor."""
    return Served(name, lambda: predictor, {**FACTS, **facts}, type(predictor))


class Running:
    """A server on a thread, at a free port, with an `Echo`."""

    def __init__(self, limits, name="echo", grace_seconds=20):
        self.echo = Echo()
        app = create_app({name: served(self.echo, name)}, limits)
        self.server = Server(app, listen("127.0.0.1", 0), grace_seconds)
        self.port = self.server.listening.getsockname()[1]
        self.thread = threading.Thread(target=self.server.open, daemon=True)
        self.thread.start()
        until(lambda: self.server.started)

    def end(self):
        self.server.should_exit = True
        self.echo.event.set()
        self.thread.join(20)
        assert not self.thread.is_alive()


def ask(port, path, body=None):
    """Status, headers and JSON, or text, of an answer; a body is posted."""
    sent = None if body is None else json.dumps(body)
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    ) as connection:
        connection.request(
            "POST" if sent else "GET", path, sent, {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        text = response.read().decode()
        return response.status, response.headers, json.loads(text) if text.startswith("{") else text


def try_out(client, document):
    """Sends what Swagger UI prefills for each route; returns `{(method, path): status}`."""
    statuses = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            url = path
            for parameter in operation.get("parameters", []):
                example = next(iter(parameter["examples"].values()))
                url = url.replace(f"{{{parameter['name']}}}", example["value"])
            body = None
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                body = next(iter(content["examples"].values()))["value"]
            statuses[method, path] = client.request(method, url, json=body).status_code
    return statuses
