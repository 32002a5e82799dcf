"""Loaded models behind one interface, whether a run or an exported SavedModel."""

import json
import pathlib

import numpy as np

from base.files import UserError
from engine.runs import CONFIG, METRICS, Run


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

    def predict(self, instances):
        """A dict of plain values per instance."""
        return self._predictor.predict(instances)

    def explain(self, instance):
        """What the model attended to, plain values."""
        return self._predictor.explain(instance)

    def warm_up(self):
        """Answers the examples once, so that nothing is compiled when the first client asks."""
        for example in self.metadata()["examples"]:
            self.predict([example["instance"]])

    def metadata(self):
        """What a client wants to know before it asks."""
        config = self.run.config
        return {
            "name": self.name,
            "version": self.version,
            "task": self.run.entry.task,
            "model": config["model"],
            "corpus": config["dataset"].get("name"),
            "fields": self._predictor.fields,
            "scores": _scores(self.run),
            "examples": self.run.examples(),
            "knowledge": getattr(self._predictor, "knowledge", []),
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

    def predict(self, instances):
        """The signature's outputs for each instance; shorter lists of texts are filled up with "" as it expects."""
        import tensorflow as tf

        for instance in instances:
            if set(instance) != set(self._inputs):
                raise UserError(
                    f"{self.name} takes {', '.join(self._inputs)}. Received: {', '.join(map(str, instance))[:200]}"
                )
        columns = {
            field: tf.constant(_filled([instance[field] for instance in instances], field, len(spec.shape)))
            for field, spec in self._inputs.items()
        }
        outputs = {name: tensor.numpy() for name, tensor in self._call(**columns).items()}
        return [{name: _plain(value[i]) for name, value in outputs.items()} for i in range(len(instances))]

    def warm_up(self):
        """Answers something once, so that nothing is compiled when the first client asks."""
        self.predict([{field: "hello" if len(spec.shape) == 1 else ["hello"] for field, spec in self._inputs.items()}])

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


def load(name, path, tasks):
    """Loads a run or the highest version of an exported model.

    Args:
        name: What clients call it.
        path: Run directory, or directory that export.py wrote.
        tasks: `tasks.TASKS`.

    Raises:
        UserError: where it is neither.
    """
    path = pathlib.Path(path)
    if (path / CONFIG).is_file():
        return ServedRun(name, path, tasks[Run.open(path).entry.task].predictor(Run.open(path)))
    candidates = [path, *(path.iterdir() if path.is_dir() else [])]
    versions = [p for p in candidates if p.name.isdigit() and (p / "saved_model.pb").is_file()]
    if not versions:
        raise UserError(f"{path} is neither a run directory nor an exported model")
    return ServedSavedModel(name, max(versions, key=lambda p: int(p.name)))


def _scores(run):
    """The metrics of the splits that evaluate.py scored, else those of the best validation on dev."""
    file = run.path / METRICS
    if file.is_file():
        splits = json.loads(file.read_text(encoding="utf-8"))
        return {split: record["metrics"] for split, record in splits.items()}
    rows = run.history()
    shown = {"step", "epoch", "loss", "steps_per_second", "seconds"}
    return {"dev": {name: value for name, value in rows[-1].items() if name not in shown}} if rows else {}


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
