"""A run: the directory that alone is enough to export a trained model, and with its dataset to evaluate or resume it.

config.json        model, recipe, config, training, the dataset's facts, provenance
vocabulary.txt     if the dataset has one
best.weights.h5    weights with the best validation score
last.npz           weights, optimizer, random state and `State` when training was last saved
checksums.json     SHA-256 of both files, the present ones and those before
history.jsonl      one line per validation
metrics.json       results of evaluate.py, by split
examples.json      examples of dev to try the model on
"""

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import pathlib
import shutil
import signal
import sys
import threading
import warnings
import zipfile

import numpy as np

from base.config import Config, make_config
from base.files import UserError, atomic_file, check_output, checksum, publish
from data.text_files import read_json
from engine.task import Training
from models import MODELS

CONFIG, BEST, LAST = "config.json", "best.weights.h5", "last.npz"
HISTORY, METRICS, VOCABULARY, EXAMPLES = "history.jsonl", "metrics.json", "vocabulary.txt", "examples.json"
CHECKSUMS, LOCK = "checksums.json", ".lock"
PARTS = ("config", "training", "dataset")
"""Objects in `config.json`."""


class AnyTraining(Training, extra="allow"):
    """Settings of a training of any task."""


class State(Config):
    """The progress of a training; with the variables of model and optimizer, all that it continues from."""

    step: int = 0
    """Steps done."""
    seconds: float = 0.0
    """Time of these steps, without validations."""
    losses: float = 0.0
    """Sum of the losses since the last validation."""
    best_score: float = -1.0
    waited: int = 0
    """Validations since the best score."""
    stopped: bool = False
    """True if early stopping ended the training."""
    validated_step: int = 0
    """Step of the last validation."""
    row: dict | None = None
    """Last row of the history, for a process killed between saving and logging."""

    def next_validation(self, interval, total):
        """The step of the next validation: a multiple of `interval`, or the last step of `total`."""
        due = (self.validated_step // interval + 1) * interval
        return max(self.step, min(due, total))

    def after(self, losses, seconds):
        """The state after more steps with these losses."""
        return self.replace(
            step=self.step + len(losses), losses=self.losses + sum(losses), seconds=self.seconds + seconds
        )

    def validated(self, row, score, patience, best_score):
        """The state after a validation with a score and a row of the history."""
        waited = 0 if score > self.best_score else self.waited + 1
        return self.replace(
            losses=0.0,
            best_score=max(float(score), self.best_score),
            waited=waited,
            stopped=bool(score >= best_score or 0 < patience <= waited),
            validated_step=self.step,
            row=row,
        )


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
        """Settings of its training, those of its task included."""
        return make_config(AnyTraining, self.record["training"], f"{self.path / CONFIG}: ")

    @property
    def dataset(self):
        """Facts of the dataset that it was trained on."""
        return self.record["dataset"]

    @classmethod
    def create(cls, path, record, vocabulary=None):
        """Makes the directory of a new run, a `UserError` if it is in use, and writes `config.json` and vocabulary."""
        path = pathlib.Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            how = "--resume to continue" if (path / LAST).exists() else "delete it: there is nothing to continue"
            raise UserError(f"{path} is in use: give another --workdir, or {how}")
        check_output(path / CONFIG)
        if vocabulary is not None:
            vocabulary.save(path / VOCABULARY)
        run = cls(path, {})
        run.update(record)
        return run

    @classmethod
    def open(cls, path):
        """Opens a run; a directory without a readable `config.json` of a known model is a `UserError`."""
        run = cls(pathlib.Path(path), {})
        file = run.path / CONFIG
        if not file.is_file():
            raise UserError(f"{path} is no run directory: it has no {CONFIG}")
        record = run._read(CONFIG, {})
        if not isinstance(record, dict) or record.get("model") not in MODELS:
            raise UserError(f"{file}: expected a `model` of {', '.join(MODELS)}")
        missing = [name for name in PARTS if not isinstance(record.get(name), dict)]
        if missing:
            raise UserError(f"{file}: expected the contents that train.py writes. Missing: {', '.join(missing)}")
        run.record.update(record)
        return run

    def update(self, changes):
        """Changes entries of `config.json`."""
        self.record.update(changes)
        self._write(CONFIG, self.record)

    # === Weights and state ===

    def build_model(self):
        """The model of this run with fresh weights, under the current dtype policy."""
        return self.spec.build(self.config)

    def load_model(self):
        """The model of this run with its best weights, a `UserError` if they are missing or do not fit."""
        weights = self.path / BEST
        if not weights.is_file():
            raise UserError(f"{self.path} holds no weights: expected {BEST}, which train.py writes")
        self._check(BEST)
        model = self.build_model()
        with _fitting(weights), warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # Keras only warns of layers it found no weights for
            model.load_weights(weights)
        return model

    def save_best(self, model):
        """Writes `best.weights.h5`."""
        temporary = self.path / f".{BEST}"  # Keras wants the ending
        model.save_weights(temporary, overwrite=True)
        self._keep(temporary, BEST)

    def save(self, model, state):
        """Writes `last.npz`: every variable of a compiled model and its optimizer, and the `State`."""
        variables = {f"v/{i}": np.asarray(v) for i, v in enumerate(_variables(model))}
        temporary = self.path / f".{LAST}"
        try:
            np.savez(temporary, state=json.dumps(state.to_json()), **variables)
            with zipfile.ZipFile(temporary) as written:  # the file before is kept until this one is known to be whole
                if written.testzip() is not None:
                    raise OSError(errno.EIO, "it reads otherwise than it was written")
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise UserError(f"{self.path / LAST} cannot be written: {error.strerror or error}") from error
        self._keep(temporary, LAST)

    def restore(self, model):
        """Loads `last.npz` into a compiled model, bit by bit, makes `history.jsonl` fit it, and returns the `State`."""
        variables = _variables(model)
        with self._opened_state() as (saved, state):
            if len(saved.files) != len(variables) + 1:
                raise ValueError(f"{len(saved.files) - 1} variables, not {len(variables)}")
            for i, variable in enumerate(variables):
                variable.assign(saved[f"v/{i}"])
        self._complete_history(state)
        return state

    def saved_state(self):
        """The `State` in `last.npz`; `None` if nothing was saved."""
        if not (self.path / LAST).is_file():
            return None
        with self._opened_state() as (_, state):
            return state

    @contextlib.contextmanager
    def _opened_state(self):
        self._check(LAST)
        with _fitting(self.path / LAST), np.load(self.path / LAST, allow_pickle=False) as saved:
            yield saved, State.of(json.loads(str(saved["state"])))

    def _keep(self, temporary, name):
        """Moves a finished file to its place; its checksum is written first, beside that of the one it replaces."""
        known = self._read(CHECKSUMS, {})
        self._write(CHECKSUMS, {**known, name: [*known.get(name, [])[-1:], checksum(temporary)]})
        publish(temporary, self.path / name)

    def _check(self, name):
        known = self._read(CHECKSUMS, {}).get(name)
        if known and checksum(self.path / name) not in known:
            raise UserError(f"{self.path / name} is damaged: {CHECKSUMS} does not name its SHA-256")

    def remove_leftovers(self):
        """Removes the unfinished files of a process that was killed while it wrote."""
        for path in self.path.glob(".?*.?*"):  # not the lock
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    # === History, examples, metrics ===

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

    def _complete_history(self, state):
        """A killed process may have written a row less or more than it saved."""
        rows = [row for row in self.history() if row["step"] <= state.validated_step]
        if state.row and state.row not in rows:
            rows.append(state.row)
        with atomic_file(self.path / HISTORY) as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def trainings(self):
        """All trainings of its weights, in order: `{"corpus", "epochs", "seconds", "command"}`, `None` if unknown."""
        last = (self.history() or [{}])[-1]
        own = {"corpus": self.dataset.get("name"), "epochs": last.get("epoch"), "seconds": last.get("seconds")}
        return [*self.record.get("before", []), {**own, "command": self.record.get("command")}]

    def finished(self):
        """True if training ended: after all epochs, or by early stopping."""
        rows, state = self.history(), self.saved_state()
        return bool(rows and state) and (state.stopped or rows[-1]["epoch"] >= self.training.epochs)

    def save_examples(self, examples):
        """Writes `examples.json`; see `engine.task.Task.examples`."""
        self._write(EXAMPLES, examples)

    def examples(self):
        """The contents of `examples.json`; empty in a run without it."""
        return self._read(EXAMPLES, [])

    def save_metrics(self, split, result):
        """Sets the entry of `split` in `metrics.json`; that of a published model stays as its card says."""
        metrics = self._read(METRICS, {})
        if split not in metrics or self.dataset["path"] is not None:
            self._write(METRICS, {**metrics, split: result})

    def _read(self, name, default):
        """The contents of a JSON file; `default` without it."""
        file = self.path / name
        return read_json(file) if file.exists() else default

    def _write(self, name, value):
        with atomic_file(self.path / name) as file:
            json.dump(value, file, indent=1, ensure_ascii=False)


@contextlib.contextmanager
def _fitting(file):
    """Turns the errors of reading weights or a state into a `UserError`."""
    try:
        yield
    except (OSError, ValueError, KeyError, UserWarning, zipfile.BadZipFile) as error:
        raise UserError(f"{file}: the weights do not fit {CONFIG}. {str(error).splitlines()[0]}") from error


def _variables(model):
    """Every variable that the next step depends on, dropout's random state included."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    return [*model.variables, *model.optimizer.variables]


# === Signals and locks ===


@contextlib.contextmanager
def signals_received():
    """Yields a list that SIGINT or SIGTERM is noted in, so that training saves and ends; a second one interrupts it."""
    received = []

    def receive(number, _):
        if received:
            raise KeyboardInterrupt
        received.append(signal.Signals(number).name)
        print(f"\n{received[0]}: saving after this step; once more ends at once", file=sys.stderr)

    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, receive) for number in numbers}  # no other thread gets signals
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def locked(directory):
    """Keeps other processes, by a `UserError`, from training into a directory while the block or its process runs."""
    with open(directory / LOCK, "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"{directory} is being trained by another process: wait for it, or end it") from error
        yield
