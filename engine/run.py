"""A run: the directory that alone is enough to export a trained model, and with its dataset to evaluate or resume it.

config.json        model, recipe, config, training, the dataset's facts, provenance
vocabulary.txt     where the dataset has one
best.weights.h5    the weights with the best validation score
last.npz           weights, optimizer, random state and position where training was last saved
checksums.json     SHA-256 of both, the present one and the one before
history.jsonl      one line per validation
metrics.json       what evaluate.py found, by split
examples.json      some examples of dev to try the model on
"""

import dataclasses
import errno
import json
import os
import pathlib
import sys
import warnings
import zipfile

import keras
import numpy as np

from base import runtime
from base.config import make_config
from base.files import UserError, atomic_file, check_output, checksum, publish
from engine.task import Training
from models import MODELS

CONFIG, BEST, LAST = "config.json", "best.weights.h5", "last.npz"
PARTS = ("config", "training", "dataset")
"""Objects in `config.json`."""
HISTORY, METRICS, VOCABULARY, EXAMPLES = "history.jsonl", "metrics.json", "vocabulary.txt", "examples.json"
CHECKSUMS = "checksums.json"


class AnyTraining(Training, extra="allow"):
    """Settings of a training of some task, the fields of that task included."""


@dataclasses.dataclass(frozen=True)
class Run:
    """An existing run directory."""

    path: pathlib.Path
    record: dict
    """The contents of `config.json`."""

    @property
    def model(self):
        """Key of `models.MODELS`."""
        return self.record["model"]

    @property
    def spec(self):
        """Row of `models.MODELS`."""
        return MODELS[self.model]

    @property
    def task(self):
        """Key of `tasks.TASKS`."""
        return self.spec.task

    @property
    def config(self):
        """Config of the model."""
        return make_config(self.spec.config, self.record["config"], f"{self.path / CONFIG}: ")

    @property
    def training(self):
        """Settings of its training: the fields that all tasks share, typed, and those of its task."""
        return make_config(AnyTraining, self.record["training"], f"{self.path / CONFIG}: ")

    @property
    def dataset(self):
        """Facts of the dataset that it was trained on."""
        return self.record["dataset"]

    @classmethod
    def create(cls, path, record, vocabulary=None):
        """Makes the directory of a new run and writes its `config.json`.

        Args:
            path: Directory; must not hold a run already.
            record: The contents of `config.json`.
            vocabulary: A `data.vocabulary.Vocabulary` to keep beside it, or `None`.

        Raises:
            UserError: where `path` is in use.
        """
        path = pathlib.Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            how = "--resume to go on" if (path / LAST).exists() else "delete it: there is nothing to go on from"
            raise UserError(f"{path} is in use: give another --workdir, or {how}")
        check_output(path / CONFIG)
        if vocabulary is not None:
            vocabulary.save(path / VOCABULARY)
        run = cls(path, {})
        run.update(record)
        return run

    @classmethod
    def open(cls, path):
        """Opens a run.

        Raises:
            UserError: where `path` holds no readable `config.json` of a known model.
        """
        path = pathlib.Path(path)
        file = path / CONFIG
        if not file.is_file():
            raise UserError(f"{path} is no run directory: it has no {CONFIG}")
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UserError(f"{file}: expected JSON. {error}") from error
        if not isinstance(record, dict) or record.get("model") not in MODELS:
            raise UserError(f"{file}: expected a `model` of {', '.join(MODELS)}")
        missing = [name for name in PARTS if not isinstance(record.get(name), dict)]
        if missing:
            raise UserError(f"{file}: expected the contents that train.py writes. Missing: {', '.join(missing)}")
        return cls(path, record)

    def update(self, changes):
        """Changes entries of `config.json`."""
        self.record.update(changes)
        with atomic_file(self.path / CONFIG) as file:
            json.dump(self.record, file, indent=1, ensure_ascii=False)

    def build_model(self):
        """The model of this run with fresh weights, under the current dtype policy."""
        return self.spec.build(self.config)

    def load_model(self):
        """The model of this run with its best weights, under the current dtype policy.

        Raises:
            UserError: where there are no weights, or they do not fit.
        """
        weights = self.path / BEST
        if not weights.is_file():
            raise UserError(f"{self.path} holds no weights: expected {BEST}, which train.py writes")
        self._check(BEST)
        model = self.build_model()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)  # Keras only warns of layers it found no weights for
                model.load_weights(weights)
        except (OSError, ValueError, KeyError, UserWarning) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"{weights}: the weights do not fit {CONFIG}. {reason}") from error
        return model

    def save_best(self, model):
        """Writes `best.weights.h5`."""
        temporary = self.path / f".{BEST}"  # Keras wants the ending
        model.save_weights(temporary, overwrite=True)
        self._keep(temporary, BEST)

    def save_state(self, model, position):
        """Writes `last.npz`: every variable of the model and its optimizer, and the position.

        Args:
            model: A compiled model.
            position: JSON-ready dict that says where training stands.
        """
        variables = {f"v/{i}": np.asarray(v) for i, v in enumerate(_state(model))}
        temporary = self.path / f".{LAST}"
        try:
            np.savez(temporary, position=json.dumps(position), **variables)
            with zipfile.ZipFile(temporary) as written:  # the state before is kept until this one is known to be whole
                if written.testzip() is not None:
                    raise OSError(errno.EIO, "it reads otherwise than it was written")
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise UserError(f"{self.path / LAST} cannot be written: {error.strerror or error}") from error
        self._keep(temporary, LAST)

    def restore_state(self, model):
        """Loads `last.npz` into a compiled model, exactly.

        Returns:
            The position that `save_state` was given.

        Raises:
            UserError: where it is missing or does not fit.
        """
        file = self.path / LAST
        if not file.is_file():
            raise UserError(f"{self.path} cannot be resumed: it has no {LAST}")
        self._check(LAST)
        try:
            with np.load(file, allow_pickle=False) as state:
                variables = _state(model)
                if len(state.files) != len(variables) + 1:
                    raise ValueError(f"{len(state.files) - 1} variables, not {len(variables)}")
                for i, variable in enumerate(variables):
                    variable.assign(state[f"v/{i}"])
                return json.loads(str(state["position"]))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"{file}: the state does not fit {CONFIG}. {reason}") from error

    def _keep(self, temporary, name):
        """Moves a finished file to its place; its checksum is written before, beside that of the one it replaces."""
        known = self._checksums()
        with atomic_file(self.path / CHECKSUMS) as file:
            json.dump({**known, name: [*known.get(name, [])[-1:], checksum(temporary)]}, file, indent=1)
        publish(temporary, self.path / name)

    def _checksums(self):
        file = self.path / CHECKSUMS
        try:
            return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        except ValueError as error:
            raise UserError(f"{file}: expected JSON. {error}") from error

    def _check(self, name):
        known = self._checksums().get(name)
        if known and checksum(self.path / name) not in known:
            raise UserError(f"{self.path / name} is damaged: its SHA-256 is none that {CHECKSUMS} names")

    def remove_leftovers(self):
        """Removes the unfinished files of a process that was killed while it wrote."""
        for name in (BEST, LAST, CONFIG, METRICS, CHECKSUMS, HISTORY):
            for file in self.path.glob(f".{name}*"):
                file.unlink()

    def save_examples(self, examples):
        """Writes `examples.json`; see `engine.task.Task.examples`."""
        with atomic_file(self.path / EXAMPLES) as file:
            json.dump(examples, file, indent=1, ensure_ascii=False)

    def examples(self):
        """What `save_examples` wrote; none in a run that has no such file."""
        file = self.path / EXAMPLES
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []

    def log(self, row):
        """Appends one line to `history.jsonl`."""
        with open(self.path / HISTORY, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def history(self):
        """The rows of `history.jsonl`, up to the first that a killed process left unfinished."""
        file, rows = self.path / HISTORY, []
        for line in file.read_text(encoding="utf-8").split("\n") if file.exists() else ():
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        return rows

    def trainings(self):
        """All trainings that its weights have had, in order: corpus, epochs and seconds, `None` if nobody knows.

        `before` of `config.json` has those before this one: of the run that it started from.
        """
        last, corpus = (self.history() or [{}])[-1], self.dataset.get("name")
        own = {"corpus": corpus, "epochs": last.get("epoch"), "seconds": last.get("seconds")}
        return [*self.record.get("before", []), own]

    def complete_history(self, position):
        """Makes `history.jsonl` that of a saved position: a killed process may have written a row less or more."""
        rows = [row for row in self.history() if row["step"] <= position["step"]]
        if position.get("row") and position["row"] not in rows:
            rows.append(position["row"])
        with atomic_file(self.path / HISTORY) as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def finished(self):
        """Whether training came to its end: all epochs, or early stopping."""
        rows = self.history()
        if not rows or not (self.path / LAST).is_file():
            return False
        ended = rows[-1]["epoch"] >= self.training.epochs
        return ended or saved_position(self.path).get("stopped", False)

    def save_metrics(self, split, result):
        """Sets the entry of `split` in `metrics.json`; that of a published model stays what its card says."""
        file = self.path / METRICS
        metrics = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if split in metrics and self.dataset["path"] is None:
            return
        with atomic_file(file) as out:
            json.dump({**metrics, split: result}, out, indent=1)


def saved_position(path):
    """The position that `Run.save_state` was last given, of the run at `path`."""
    with np.load(path / LAST, allow_pickle=False) as state:
        return json.loads(str(state["position"]))


def _state(model):
    """Every variable that the next step depends on, dropout's random state included."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    return [*model.variables, *model.optimizer.variables]


def has_gpu():
    """Whether a GPU computes."""
    return any("gpu" in device.lower() or "cuda" in device.lower() for device in keras.distribution.list_devices())


def set_seed(seed):
    """Seeds every random number generator; on other backends without loading TensorFlow, which Keras would seed too."""
    hidden = keras.config.backend() != "tensorflow" and "tensorflow" not in sys.modules
    if hidden:
        sys.modules["tensorflow"] = None  # importing it fails
    try:
        keras.utils.set_random_seed(seed)
    finally:
        if hidden:
            del sys.modules["tensorflow"]


def set_precision(precision):
    """Makes layers built from now on compute in `precision`, with float32 weights; says so on stderr.

    Args:
        precision: `"float32"`, `"bfloat16"` or `"float16"`.
    """
    runtime.announce(precision)
    keras.config.set_dtype_policy("float32" if precision == "float32" else f"mixed_{precision}")
