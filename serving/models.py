"""Models to serve: a run under a name and a version."""

import contextlib
import functools
import gc
import json
import os
import pathlib
import sys
import threading
import time

import keras
from markdown_it import MarkdownIt

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.text_files import read_json
from colloquy.engine import parallel
from colloquy.engine.records import Example
from colloquy.engine.run import CARD, PAGE, Run
from colloquy.tasks import load_predictor
from colloquy.tasks.dialog.predictor import DialogPredictor
from colloquy.tasks.selection.retrieval.answers import AnsweringPredictor

RETRY_SECONDS = 60.0  # until a model that could not be loaded is tried again
TENSORFLOW_NICENESS = 5
# Fields of a row of `history.jsonl` that are no metric.
PROGRESS = {"step", "epoch", "loss", "steps_per_second", "seconds"}
# The metric by which the best validation of each task is chosen.
MAIN_METRICS = ("R10@1", "F1", "per_response", "perplexity")
# The searches that the pages ask for, beside the run's own.
DECODES = ("beam=1", "sample=true,temperature=0.8,top_p=0.9")


class Page(Config):
    """`page.json` of a run, which is optional: how the pages present it."""

    title: str = ""
    label: str = ""
    """Short name, such as a language, in a switch between the models of a task."""
    default: bool = False
    """True: the pages open with this model of its task."""
    examples: list[Example] = []


class Served:
    """An `engine.predictor.Predictor` that is loaded when it is first needed.

    If loading fails, it is not tried again for a minute, unless a file in `paths` changes.

    Args:
        name: Its name for clients.
        version: Its version, a text.
        load: Zero-argument callable that returns the predictor.
        facts: What clients are told of it, also before it is loaded.
        paths: Directories that `load` reads.
    """

    loading = threading.Lock()
    """Models are loaded one at a time."""

    def __init__(self, name, version, load, facts, paths=()):
        self.name = name
        self.version = version
        self.ready = False
        self._load = load
        self._facts = facts
        self._paths = paths
        self._predictor = None
        self._failure = ""
        self._failed_times = None  # when the files were changed that could not be loaded
        self._retry_at = 0.0

    @property
    def predictor(self):
        """The predictor, loaded. A `UserError` says why it cannot be."""
        if not self.ready:
            with self.loading:
                if not self.ready:
                    self._try_to_load()
        return self._predictor

    def _try_to_load(self):
        times = {}
        for directory in self._paths:
            for file in pathlib.Path(directory).rglob("[!.]*"):
                times[file] = file.lstat().st_mtime_ns
        if times == self._failed_times and time.monotonic() <= self._retry_at:
            raise UserError(self._failure)
        try:
            self._predictor = self._load()
        except UserError as error:
            self._failure = str(error)
            self._failed_times = times
            self._retry_at = time.monotonic() + RETRY_SECONDS
            raise
        self.ready = True

    def summary(self):
        """What is known without loading the model, and whether it is `ready`."""
        return {**self._facts, "ready": self.ready}

    def card(self):
        """The `summary`, and the card as HTML."""
        html = render_markdown(self._facts.get("card", ""))
        return {"name": self.name, "version": self.version, **self.summary(), "card_html": html}

    @property
    def metadata(self):
        """What clients are told of the loaded model, with the JSON schemas of `Predictor`."""
        predictor = self.predictor
        metadata = {
            "name": self.name,
            "version": self.version,
            **self._facts,
            "instance": predictor.Instance.model_json_schema(),
            "answer": predictor.Answer.model_json_schema(),
        }
        if isinstance(predictor, AnsweringPredictor):
            metadata["responses"] = predictor.responses
        return metadata

    def describe(self):
        """What the application answers at each path of a model, `{path: value}`."""
        metadata = self.metadata
        version = {
            "version": self.version,
            "state": "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
        return {
            "state": {
                **openai_model(self.name),
                **metadata,
                "ready": True,
                "model_version_status": [version],
            },
            "metadata": {
                "model_spec": {"name": self.name, "signature_name": "", "version": self.version},
                "metadata": metadata,
            },
            "knowledge": self._knowledge(),
        }

    def _knowledge(self):
        """Facts and slots of a model of dialogs; empty for another one."""
        predictor = self.predictor
        if not isinstance(predictor, DialogPredictor):
            return {"knowledge": [], "slots": []}
        return {
            "knowledge": predictor.knowledge,
            "slots": list(predictor.domain.slot_values),
        }

    @property
    def examples(self):
        """Instances, dicts, that the pages show."""
        return [example["instance"] for example in self._facts.get("examples", [])]

    def warm_up(self, pause=lambda: None):
        """Answers and explains examples, so that nothing is compiled when the first client asks.

        They are answered alone, together, longer, and by each search of the pages. `pause()` is
        called before each. An answer with NaN is a `UserError`.
        """
        predictor = self.predictor
        instances = list(self.examples)
        if instances:
            instances.append(_lengthen(instances[0]))
        if "decode" in predictor.Instance.model_fields:
            for instance in list(instances):
                instances += [{**instance, "decode": decode} for decode in DECODES]
        for instance in instances:
            pause()
            answers = predictor.predict([instance])
            try:
                json.dumps(answers, allow_nan=False)
            except ValueError as error:
                message = f"{self.name} answers its examples with NaN or infinity: it is damaged"
                raise UserError(message) from error
            predictor.explain(instance)
        predictor.predict(instances)


@functools.cache
def render_markdown(text):
    """Renders Markdown as HTML. Markup in the text stays text, and links have safe schemes alone.

    >>> render_markdown("# A <b>card</b>")
    '<h1>A &lt;b&gt;card&lt;/b&gt;</h1>\\n'
    """
    return MarkdownIt("commonmark", {"html": False}).enable("table").render(text)


def openai_model(name):
    """A model as OpenAI's API lists it."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "colloquy"}


def _lengthen(instance):
    longer = {}
    for name, value in instance.items():
        longer[name] = " ".join([value] * 8) if isinstance(value, str) else value * 8
    return longer


# === Opening a run ===


def open_model(name, path, index=None):
    """Opens a run as a `Served`. Whatever is wrong with it is a `UserError` of one sentence.

    Args:
        name: Its name for clients.
        path: A run directory.
        index: Directory of an index of responses, for a model of selection; default: that of
            `index_of_run`, if any. An index that does not fit is refused when it is loaded.
    """
    try:
        run = Run.open(path)
        path = run.path
        facts = _describe_run(run)
    except UserError:
        raise
    except Exception as error:  # a run of a stranger may be wrong in any way
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"{path} cannot be opened as a run: {reason[:200]}") from error

    paths = [path] if index is None else [path, index]
    load = functools.partial(load_predictor, run, index=index)
    return Served(name, "1", load, facts, paths)


def _describe_run(run):
    """Where a run comes from, its scores, the text of its model card, and its page."""
    page_file = run.path / PAGE
    if page_file.is_file():
        page = read_json(page_file, Page)
    else:
        page = Page(examples=run.examples())
    card_file = run.path / CARD
    card = ""
    if card_file.is_file():
        card = card_file.read_text(encoding="utf-8", errors="replace")
    corpus = run.dataset.get("name") or ""
    return {
        "task": run.task,
        "model": run.model,
        "corpus": corpus,
        "note": run.note,
        "scores": _scores(run),
        **page.model_dump(),
        "title": page.title or f"{run.model}, {corpus or None}",
        "card": card,
    }


def _scores(run):
    """The metrics of the splits that evaluate.py scored; without dev, of the best validation."""
    scores = {split: record["metrics"] for split, record in run.metrics().items()}
    best = _best_validation(run)
    if best and "dev" not in scores:
        scores["dev"] = best
    return scores


def _best_validation(run):
    rows = []
    for row in run.history():
        metrics = {name: value for name, value in row.items() if name not in PROGRESS}
        if metrics:
            rows.append(metrics)
    for metric in MAIN_METRICS:
        scored = [row for row in rows if metric in row]
        if scored:
            choose = min if metric == "perplexity" else max
            return choose(scored, key=lambda row: row[metric])
    return None


# === The process ===


@contextlib.contextmanager
def warming(models, is_busy):
    """Loads and warms up the models on a thread, while `is_busy()` is false."""
    cold_models = [model for model in models if not model.ready]
    stopped = threading.Event()

    def pause():
        while is_busy() and not stopped.wait(0.1):
            pass
        if stopped.is_set():
            raise InterruptedError

    def prepare(model, step):
        pause()
        try:
            step(model)
        except InterruptedError:
            raise
        except Exception as error:  # the other models are still to be warmed up
            print(f"{model.name} cannot answer: {error}", file=sys.stderr, flush=True)

    def prepare_all():
        with contextlib.suppress(InterruptedError):
            for model in cold_models:
                prepare(model, lambda model: model.predictor)
            for model in cold_models:
                if model.ready:
                    prepare(model, lambda model: model.warm_up(pause))
            freeze()

    thread = threading.Thread(target=prepare_all)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def start_tensorflow():
    """Starts TensorFlow's threads with a lower priority than those of the server.

    The server needs the cores for moments only, and answers small requests meanwhile.
    """

    def start():
        if sys.platform == "linux":
            os.nice(TENSORFLOW_NICENESS)  # of this thread and those that it starts
        keras.ops.zeros(())

    parallel.MOST = 1  # a request's batches are computed one after the other
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()


def freeze():
    """Hides loaded objects from the garbage collector.

    There are half a million of them; a full collection would take 250 ms each time.
    """
    gc.collect()
    gc.freeze()
