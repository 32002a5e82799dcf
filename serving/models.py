"""Models to serve: a run under a name, which is loaded when it is first needed."""

import functools
import threading

from colloquy.base.files import UserError, in_one_line
from colloquy.engine.predictor import Predictor
from colloquy.engine.run import Run
from colloquy.engine.run_files import DIRECTORIES
from colloquy.serving.run_facts import describe_run, render_markdown
from colloquy.serving.warm_up import answer_first
from colloquy.tasks import TASKS, load_predictor
from colloquy.tasks.selection.retrieval.answers import AnsweringPredictor

VERSION = "1"
"""The version of every model: TensorFlow Serving's API asks for one."""


class Served:
    """An `engine.predictor.Predictor` that is loaded when it is first needed.

    If loading fails, it is not tried again.

    Args:
        name: Its name for clients.
        load: Zero-argument callable that returns the predictor.
        facts: The dict of `run_facts.describe_run`, which clients get before the model is loaded.
        predictor_class: The class of what `load` returns: routes and forms need its fields before
            the model is loaded.
    """

    _load_lock = threading.Lock()
    """All models share it, so that they are loaded one at a time."""

    def __init__(self, name, load, facts, predictor_class=Predictor):
        self.name = name
        self.predictor_class = predictor_class
        self.ready = False
        self._load = load
        self._facts = facts
        self._predictor = None
        self._failure = ""

    @property
    def chats(self):
        """True for a model that replies to conversations."""
        return self.predictor_class.conversation is not Predictor.conversation

    @property
    def predictor(self):
        """The predictor. The first use loads it and has it answer; any error is a `UserError`."""
        if self.ready:
            return self._predictor
        with self._load_lock:
            if self.ready:
                return self._predictor
            if self._failure:
                raise UserError(self._failure)
            try:
                predictor = self._load()
                answer_first(predictor)
            except Exception as error:  # an untrusted run or index may raise any error
                self._failure = _describe_failure(error)
                raise UserError(self._failure) from error
            self._predictor = predictor
            self.ready = True
            return predictor

    def summary(self):
        """Returns the facts, and whether the model is `ready`. Loads nothing."""
        return {**self._facts, "ready": self.ready}

    def card(self):
        """Returns name, version, the `summary` and the card as HTML. Loads nothing."""
        html = render_markdown(self._facts["card"])
        return {"name": self.name, "version": VERSION, **self.summary(), "card_html": html}

    def describe(self):
        """Describes the model with the fields of TensorFlow Serving and OpenAI. Loads it first."""
        predictor = self.predictor
        version = {
            "version": VERSION,
            "state": "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
        description = {
            **openai_model(self.name),
            "name": self.name,
            "version": VERSION,
            **self.summary(),
            "model_version_status": [version],
        }
        if isinstance(predictor, AnsweringPredictor):
            description["responses"] = predictor.responses
        return description


def openai_model(name):
    """A model as OpenAI's API lists it."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "colloquy"}


def open_model(name, path, index=None):
    """Opens a run as a `Served`. A run with a wrong file is a `UserError`.

    Weights and index are not read yet: wrong ones are refused when the model is loaded.

    Args:
        name: Its name for clients.
        path: A run directory.
        index: Directory of an index of responses, for a model of selection; default: the run's own,
            if any.
    """
    try:
        run = Run.open(path)
        facts = describe_run(run)
    except UserError:
        raise
    except Exception as error:  # an untrusted run may raise any error
        raise UserError(f"{path}: {_describe_failure(error)}") from error

    predictor_class = TASKS[run.task].predictor
    has_responses = any((run.path / directory).is_dir() for directory in DIRECTORIES)
    if run.task == "selection" and (index is not None or has_responses):
        predictor_class = AnsweringPredictor
    load = functools.partial(load_predictor, run, index=index)
    return Served(name, load, facts, predictor_class)


def _describe_failure(error):
    if isinstance(error, UserError):
        return str(error)
    reason = f"{type(error).__name__}: {in_one_line(error, length=200)}"
    return f"the run or its index cannot be used: {reason}"
