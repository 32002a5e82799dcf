"""Loaded models behind one interface, whether a run or an exported SavedModel."""

import gc
import json
import pathlib

import numpy as np

from base.files import UserError
from engine.run import CONFIG, METRICS, Run
from tasks.selection.answering import AnsweringPredictor
from tasks.selection.retrieval.build import index_of_run

TOY = "A toy: it knows only the invented town of the embedded sample."
"""What is said of a model that was trained on a sample."""


PROGRESS = {"step", "epoch", "loss", "steps_per_second", "seconds"}
FIRST = ("R10@1", "F1", "per_response", "perplexity")
"""In `history.jsonl`: what is no metric, and the metric of each task by which the best row is found."""

DECODES = ("beam=5,length_penalty=1,block_ngrams=3", "sample=true,temperature=0.8,top_p=0.9")
"""How the pages let a generation model search, beside greedily."""


class ServedRun:
    """A run directory, answered by its task's predictor.

    Args:
        name: What clients call it.
        path: Run directory.
        predictor: As of `engine.task.Task.predictor`.
    """

    version = "1"

    def __init__(self, name, path, predictor):
        self.name, self.run, self._predictor = name, Run.open(path), predictor

    def valid(self, instance, where):
        """The `Instance` that a dict says; see `engine.predictor.Predictor.valid`."""
        return self._predictor.valid(instance, where)

    def answers(self, instances):
        """A dict of plain values for each `Instance`."""
        return self._predictor.answers(instances)

    def explain(self, instance):
        """What the model attended to, plain values."""
        return self._predictor.explain(instance)

    def warm_up(self):
        """Answers and explains examples, alone, together, longer and as the pages ask, so that nothing is compiled
        when the first client asks."""
        instances = [example["instance"] for example in self.run.examples()]
        instances += [_longer(instance) for instance in instances[:1]]
        if "decode" in self._predictor.Instance.model_fields:
            instances += [{**instance, "decode": decode} for instance in list(instances) for decode in DECODES]
        for instance in instances:
            self._predictor.predict([instance])
            self.explain(instance)
        self._predictor.predict(instances)

    def metadata(self):
        """What a client wants to know before it asks."""
        config = self.run.config
        corpus = config["dataset"].get("name") or ""
        return {
            "name": self.name,
            "version": self.version,
            "task": self.run.entry.task,
            "model": config["model"],
            "corpus": corpus,
            "note": TOY if corpus.startswith("sample") else "",
            "instance": self._predictor.Instance.model_json_schema(),
            "answer": self._predictor.Answer.model_json_schema(),
            "scores": _scores(self.run),
            "examples": self.run.examples(),
            "knowledge": getattr(self._predictor, "knowledge", []),
            "responses": getattr(self._predictor, "responses", 0),  # of an index
        }


class ServedSavedModel:
    """An exported SavedModel, called by its signatures.

    Args:
        name: What clients call it.
        path: `OUT/VERSION`, as export.py writes it.
    """

    def __init__(self, name, path):
        import tensorflow as tf  # takes seconds to load

        self.name, self.version = name, path.name
        self._loaded = tf.saved_model.load(str(path))  # the signatures live as long as this does
        names = [signature for signature in self._loaded.signatures if signature != "serving_default"]
        self._signature = "rank" if "rank" in names else names[0]
        self._call = self._loaded.signatures[self._signature]
        self._inputs = {tensor.name: tensor for tensor in self._call.structured_input_signature[1].values()}

    def valid(self, instance, where):
        """An instance that has the fields of the signature.

        Raises:
            UserError: if it has others.
        """
        if set(instance) != set(self._inputs):
            given = ", ".join(map(str, instance))[:200]
            raise UserError(f"{where}: {self.name} takes {', '.join(self._inputs)}. Received: {given}")
        return instance

    def answers(self, instances):
        """The signature's outputs for each instance; shorter lists of texts are filled up with "" as it expects."""
        import tensorflow as tf

        columns = {
            field: tf.constant(_filled([instance[field] for instance in instances], field, len(spec.shape)), spec.dtype)
            for field, spec in self._inputs.items()
        }
        outputs = {name: tensor.numpy() for name, tensor in self._call(**columns).items()}
        return [{name: _plain(value[i]) for name, value in outputs.items()} for i in range(len(instances))]

    def warm_up(self):
        """Answers something once, so that nothing is compiled when the first client asks."""
        self.answers([{field: "" if len(spec.shape) == 1 else [""] for field, spec in self._inputs.items()}])

    def explain(self, instance):
        """A SavedModel keeps no attention.

        Raises:
            UserError: always.
        """
        raise UserError(f"{self.name} is an exported model, which gives answers alone; serve its run to explain them")

    def metadata(self):
        """What a client wants to know before it asks."""
        fields = {name: f"{spec.dtype.name} {list(spec.shape)}" for name, spec in self._inputs.items()}
        return {
            "name": self.name,
            "version": self.version,
            "task": None,
            "model": "SavedModel",
            "corpus": None,
            "signature": self._signature,
            "fields": fields,
            "scores": {},
            "examples": [],
        }


def load(name, path, tasks, index=None):
    """Loads a run or the highest version of an exported model.

    Args:
        name: What clients call it.
        path: Run directory, or directory that export.py wrote.
        tasks: `tasks.TASKS`.
        index: Directory of an index that a run of selection takes candidates from; default: that of the run's own
            directory (`tasks.selection.retrieval.build.index_of_run`), if any.

    Raises:
        UserError: where it is neither, or an index does not fit.
    """
    path = pathlib.Path(path)
    if (path / CONFIG).is_file():
        return ServedRun(name, path, _predictor(Run.open(path), tasks, index))
    if index is not None:
        raise UserError(f"{name}: an index is for a run of selection. Received: {path}")
    candidates = [path, *(path.iterdir() if path.is_dir() else [])]
    versions = [p for p in candidates if p.name.isdigit() and (p / "saved_model.pb").is_file()]
    if not versions:
        raise UserError(f"{path} is neither a run directory nor an exported model")
    return ServedSavedModel(name, max(versions, key=lambda p: int(p.name)))


def freeze():
    """Spares the garbage collector what loading left: half a million objects, a quarter of a second for each full
    collection, in which nobody is answered."""
    gc.collect()
    gc.freeze()


def _longer(instance, times=8):
    """An instance of another size."""
    return {
        name: " ".join([value] * times) if isinstance(value, str) else value * times for name, value in instance.items()
    }


def _predictor(run, tasks, index):
    predictor = tasks[run.entry.task].predictor(run)
    if run.entry.task != "selection":
        if index is not None:
            raise UserError(f"{run.path}: an index is for a model of selection. Received: {run.entry.task}")
        return predictor
    found = index or index_of_run(run.path, predictor)
    return AnsweringPredictor(predictor, found) if found else predictor


def _scores(run):
    """The metrics of the splits that evaluate.py scored; of dev, if it was not, those of the best validation."""
    file = run.path / METRICS
    splits = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    scores = {split: record["metrics"] for split, record in splits.items()}
    rows = [{name: value for name, value in row.items() if name not in PROGRESS} for row in run.history()]
    if rows and "dev" not in scores:
        first = next(name for name in FIRST if name in rows[0])
        scores["dev"] = (min if first == "perplexity" else max)(rows, key=lambda row: row[first])
    return scores


def _filled(values, field, rank):
    """Texts or lists of texts, as an array of the rank that the signature has."""
    if rank == 1:
        if not all(isinstance(value, str) for value in values):
            raise UserError(f"`{field}` must be a text")
        return np.array(values, object)
    if not all(isinstance(value, list) and all(isinstance(text, str) for text in value) for value in values):
        raise UserError(f"`{field}` must be a list of texts")
    longest = max(map(len, values))
    return np.array([value + [""] * (longest - len(value)) for value in values], object).reshape(len(values), longest)


def _plain(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    value = np.asarray(value)
    if value.dtype == object:
        return [_plain(each) for each in value]
    return value.tolist()
