"""Models to serve: a run, or an exported SavedModel, under a name."""

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
import numpy as np
from pydantic import create_model

from colloquy.base.config import Config
from colloquy.base.files import UserError, is_sealed
from colloquy.data.text_files import read_json
from colloquy.engine import parallel
from colloquy.engine.predictor import Predictor
from colloquy.engine.records import Example
from colloquy.engine.run import CARD, CONFIG, PAGE, Run
from colloquy.tasks import TASKS
from colloquy.tasks.reading_comprehension.predictor import ReadingComprehensionPredictor
from colloquy.tasks.selection.predictor import SelectionPredictor
from colloquy.tasks.selection.retrieval.answers import AnsweringPredictor
from colloquy.tasks.selection.retrieval.build import index_of_run

# seconds until a model that could not be loaded is tried again: a full disk may have room
RETRY = 60.0
# what is no metric in `history.jsonl`
PROGRESS = {"step", "epoch", "loss", "steps_per_second", "seconds"}
# the metric of each task that chooses the best row of it
FIRST = ("R10@1", "F1", "per_response", "perplexity")
# of some predictors, which clients get
ATTRIBUTES = ("knowledge", "responses", "signature", "examples")
SIGNATURES = {"rank", "answer", "reply", "respond"}  # of export.py
# as the pages ask
DECODES = ("beam=5,length_penalty=1,block_ngrams=3", "sample=true,temperature=0.8,top_p=0.9")


class Served:
    """An `engine.predictor.Predictor` under a name and a version for clients.

    `load()` makes it when somebody asks for it. `facts` describe it to clients, also before that.
    If it cannot be loaded, it is not tried again for a minute, unless a file of the directories
    `paths` changes.
    """

    loading = threading.Lock()  # one at a time

    def __init__(self, name, version, load, facts, *paths):
        self.name, self.version, self._load, self._facts, self._paths = (
            name,
            version,
            load,
            facts,
            paths,
        )
        self.ready = False  # until it is loaded
        self._tried, self._failure, self._again = None, "", 0.0

    @functools.cached_property
    def predictor(self):
        """The predictor, loaded."""
        with self.loading:
            files = (file for path in self._paths for file in pathlib.Path(path).rglob("[!.]*"))
            found = {file: file.stat().st_mtime_ns for file in files}
            if not self.ready and (found != self._tried or time.monotonic() > self._again):
                try:
                    vars(self)["predictor"], self.ready = self._load(), True
                except UserError as error:
                    self._tried, self._failure, self._again = (
                        found,
                        str(error),
                        time.monotonic() + RETRY,
                    )
        if not self.ready:
            raise UserError(self._failure)
        return vars(self)["predictor"]

    def by_one_thread(self, compute):
        """`compute` for large requests: by one of TensorFlow's threads, so that small ones have the
        others.

        One thread cannot compute the loops of the other models.
        """
        if not isinstance(
            self.predictor, (SelectionPredictor, AnsweringPredictor, ReadingComprehensionPredictor)
        ):
            return compute
        import tensorflow as tf  # takes seconds to load

        return tf.experimental.function_executor_type("SINGLE_THREADED_EXECUTOR")(compute)

    def warm_up(self, pause=lambda: None):
        """Answers and explains the examples alone, together, longer and as the pages ask, so that
        nothing is compiled when the first client asks. An answer with NaN is a `UserError`.
        `pause()` is called before each."""
        predictor = self.predictor
        instances = [example["instance"] for example in self.metadata.get("examples", [])]
        instances += [_longer(instance) for instance in instances[:1]]
        if "decode" in predictor.Instance.model_fields:
            instances += [
                {**instance, "decode": decode} for instance in list(instances) for decode in DECODES
            ]
        for instance in instances:
            pause()
            try:
                json.dumps(predictor.predict([instance]), allow_nan=False)
            except ValueError as error:
                raise UserError(
                    f"{self.name} answers its examples with NaN or infinity: it is damaged"
                ) from error
            if not isinstance(predictor, SavedModel):
                predictor.explain(instance)
        predictor.predict(instances)

    def summary(self):
        """The facts known without loading the model, and whether it is `ready`."""
        return {**self._facts, "ready": self.ready}

    @functools.cached_property
    def metadata(self):
        """Describes the model to a client, with the JSON schemas of `instance` and `answer`."""
        kinds = {"instance": self.predictor.Instance, "answer": self.predictor.Answer}
        schemas = {name: kind.model_json_schema() for name, kind in kinds.items()}
        facts = {
            name: getattr(self.predictor, name)
            for name in ATTRIBUTES
            if hasattr(self.predictor, name)
        }
        return {"name": self.name, "version": self.version, **self._facts, **facts, **schemas}


@contextlib.contextmanager
def warming(models, busy):
    """Loads the models that are not loaded, then warms them up, on a thread, while nobody asks
    (`busy()`).
    """
    cold, stopped = [model for model in models if not model.ready], threading.Event()

    def pause():
        while busy() and not stopped.wait(0.1):
            pass
        if stopped.is_set():
            raise InterruptedError

    def warm():
        with contextlib.suppress(InterruptedError):
            for work in (lambda model: model.predictor, lambda model: model.warm_up(pause)):
                for model in cold:
                    pause()
                    try:
                        work(model)
                    except UserError as error:
                        print(f"{model.name} cannot answer: {error}", file=sys.stderr, flush=True)
            freeze()

    thread = threading.Thread(target=warm)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


class SavedModel(Predictor):
    """An exported SavedModel, `OUT/VERSION` of export.py, called by its signature, of a selection
    model `rank`.
    """

    class Answer(Config, extra="allow"):
        """The outputs of the signature."""

    def __init__(self, path, trusted=False):
        import tensorflow as tf  # takes seconds to load

        if not (trusted or is_sealed(path)):
            raise UserError(
                f"{path} was not written by export.py or was changed. A SavedModel can read and write files: if you "
                "trust its author, give --trust_saved_models"
            )
        try:
            # the signatures live as long as this does
            self._loaded = tf.saved_model.load(str(path))
        except Exception as error:  # TensorFlow's and protobuf's own, of many kinds
            raise UserError(
                f"TensorFlow cannot load {path} as a SavedModel: {str(error)[:200]!r}"
            ) from error
        names = [name for name in self._loaded.signatures if name != "serving_default"]
        if not (trusted and names) and not set(names) & SIGNATURES:
            raise UserError(
                f"{path}: expected a signature of export.py, {', '.join(sorted(SIGNATURES))}"
            )
        self.signature = next((name for name in names if name in SIGNATURES), names[0])
        self._call = self._loaded.signatures[self.signature]
        self._inputs = {
            tensor.name: tensor for tensor in self._call.structured_input_signature[1].values()
        }
        fields = {
            name: str if len(spec.shape) == 1 else list[str] for name, spec in self._inputs.items()
        }
        self.Instance = create_model("Instance", __base__=Config, **fields)
        example = {name: "" if kind is str else [""] for name, kind in fields.items()}
        if self.signature == "rank":
            self.Instance, self.Answer = SelectionPredictor.Instance, SelectionPredictor.Answer
            example = TASKS["selection"].export_instance
        self.examples = [{"title": "", "instance": example}]

    def answer(self, instances):
        """Like `Predictor`'s; shorter lists of texts are padded with `""`, as the signature
        expects.
        """
        import tensorflow as tf

        columns = {}
        for name, spec in self._inputs.items():
            values = [getattr(instance, name) for instance in instances]
            if self.signature == "rank":  # where an empty text is " "
                values = [[text or " " for text in texts] for texts in values]
            columns[name] = tf.constant(_padded(values), spec.dtype)
        outputs = {name: tensor.numpy() for name, tensor in self._call(**columns).items()}
        rows = [{name: value[i] for name, value in outputs.items()} for i in range(len(instances))]
        if self.signature == "rank":  # the candidates that were padded are last
            sizes = [len(instance.candidates) for instance in instances]
            rows = [
                {name: row[name][:size] for name in row}
                for row, size in zip(rows, sizes, strict=True)
            ]
        return [self.Answer(**{name: _plain(value) for name, value in row.items()}) for row in rows]

    def answer_with_attention(self, instance, details):
        raise UserError("an exported model has no attention; serve its run to explain answers")


def open_model(name, path, index=None, trusted=False):
    """A `Served` of a run, or of the highest version of an exported model; a `UserError` if the
    path is neither.

    `index` is the directory of an index of responses for a run of selection; default:
    `index_of_run`, if any. An index that does not fit, damaged weights and, unless it is `trusted`,
    a SavedModel that is not of export.py, are a `UserError` when it is loaded.
    """
    path = pathlib.Path(path)
    if (path / CONFIG).is_file():
        run = Run.open(path)
        return Served(
            name, "1", lambda: _predictor(run, index), _facts_of(run), path, *filter(None, [index])
        )
    if index is not None:
        raise UserError(f"{name}: an index is for a run of selection. Received: {path}")
    candidates = [path, *(path.iterdir() if path.is_dir() else [])]
    versions = [p for p in candidates if p.name.isdigit() and (p / "saved_model.pb").is_file()]
    if not versions:
        raise UserError(
            f"expected DIR or NAME=DIR of a run or of an exported model. Received: {path}"
        )
    newest = max(versions, key=lambda p: int(p.name))
    facts = {"task": None, "model": "SavedModel", "corpus": None, "scores": {}}
    return Served(name, newest.name, lambda: SavedModel(newest, trusted), facts, newest)


def start_tensorflow():
    """Makes TensorFlow's threads, of lower priority than those of the server, which need the cores
    for moments only.
    """

    def start():
        if sys.platform == "linux":
            os.nice(5)  # this thread and those that it makes
        keras.ops.zeros(())

    parallel.MOST = 1  # batch of a request at once
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()


def freeze():
    """Hides half a million loaded objects from the garbage collector, whose full collections else
    take 250 ms each.
    """
    gc.collect()
    gc.freeze()


def _longer(instance):
    return {
        name: " ".join([each] * 8) if isinstance(each, str) else each * 8
        for name, each in instance.items()
    }


def _predictor(run, index):
    predictor = TASKS[run.task].predictor(run)
    if run.task == "selection":
        index = index or index_of_run(run.path, predictor)
        return AnsweringPredictor(predictor, index) if index else predictor
    if index is not None:
        raise UserError(f"{run.path}: an index is for a model of selection. Received: {run.task}")
    return predictor


class Page(Config):
    """`page.json` of a run, which is optional: how the pages present it."""

    title: str = ""
    default: bool = False
    """True: the pages open with this model of its task."""
    examples: list[Example] = []


def _facts_of(run):
    """Where a run comes from, its scores, the text of its model card, and its page."""
    file, card = run.path / PAGE, run.path / CARD
    page = read_json(file, Page) if file.is_file() else Page(examples=run.examples())
    title = page.title or f"{run.model}, {run.dataset.get('name')}"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    facts = {
        "task": run.task,
        "model": run.model,
        "corpus": run.dataset.get("name") or "",
        "note": run.note,
    }
    return {**facts, "scores": _scores(run), **page.model_dump(), "title": title, "card": text}


def _scores(run):
    """The metrics of the splits that evaluate.py scored; if dev is not among them, those of the
    best validation.
    """
    scores = {split: record["metrics"] for split, record in run.metrics().items()}
    rows = [
        {name: value for name, value in row.items() if name not in PROGRESS}
        for row in run.history()
    ]
    if rows and "dev" not in scores:
        first = next(name for name in FIRST if name in rows[0])
        scores["dev"] = (min if first == "perplexity" else max)(rows, key=lambda row: row[first])
    return scores


def _padded(values):
    """An array of texts, or of lists of texts padded to one length."""
    if isinstance(values[0], str):
        return np.array(values, object)
    longest = max(map(len, values))
    return np.array([value + [""] * (longest - len(value)) for value in values], object).reshape(
        len(values), longest
    )


def _plain(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    value = np.asarray(value)
    return [_plain(each) for each in value] if value.dtype == object else value.tolist()
