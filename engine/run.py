"""A run: the directory that alone is enough to export a trained model, and with its dataset to
evaluate or resume it.

Its files: see `engine.run_files`.
"""

import contextlib
import dataclasses
import errno
import hashlib
import io
import json
import os
import pathlib
import shutil
import warnings
import zipfile

import numpy as np

from colloquy.base.config import make_config
from colloquy.base.files import (
    CHECKSUMS,
    UserError,
    atomic_file,
    check_output,
    checksum,
    checksums_of,
    publish,
    writing,
)
from colloquy.data.text_files import read_json, read_lines, validated, write_json
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.interrupts import LOCK
from colloquy.engine.records import (
    AnyTraining,
    Example,
    HistoryRow,
    SplitMetrics,
    TrainState,
)
from colloquy.engine.run_files import (
    BEST,
    CARD,
    CONFIG,
    EXAMPLES,
    HISTORY,
    LAST,
    MAX_EXAMPLES,
    METRICS,
    PAGE,
    VOCABULARY,
    find_run,
    is_unfinished,
    is_written,
)
from colloquy.engine.untrusted import check_sizes, check_weights, open_untrusted
from colloquy.models import MODELS

TOY = "A toy: it knows only the invented town of the embedded sample."
FORMER_DEFAULTS = {"shared_embedding": True, "train_embedding": True}
"""Settings that no model or few models have any more, with the value that changed nothing."""
UNSEALED = (CHECKSUMS, LAST, HISTORY, METRICS, EXAMPLES, CARD, PAGE, "index")
"""Files of a published run without a checksum: answers do not depend on them. An index has its own.
"""


@dataclasses.dataclass(frozen=True)
class Run:
    """An existing run directory."""

    path: pathlib.Path
    record: dict  # the contents of `config.json`

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
        """Config of the model.

        A setting that this version no longer has is dropped if it was off, or as `FORMER_DEFAULTS`
        has it; otherwise it is a `UserError`.
        """
        settings = {}
        for name, value in self.record["config"].items():
            is_off = not value or value == FORMER_DEFAULTS.get(name)
            if name in self.spec.config.model_fields or not is_off:
                settings[name] = value
        return make_config(self.spec.config, settings, f"{self.path / CONFIG}: ")

    @property
    def training(self):
        """Settings of its training, those of its task included."""
        return make_config(AnyTraining, self.record["training"], f"{self.path / CONFIG}: ")

    @property
    def dataset(self):
        """Metadata of the dataset that it was trained on."""
        return self.record["dataset"]

    @property
    def vocabulary(self):
        """The `Vocabulary` of its words, hashed ids included."""
        return Vocabulary.load(self.path / VOCABULARY, getattr(self.config, "hashed_words", 0))

    @property
    def note(self):
        """A warning to users of a model of the embedded sample; empty for others."""
        return TOY if (self.dataset.get("name") or "").startswith("sample") else ""

    @classmethod
    def create(cls, path, record, vocabulary=None):
        """Makes the directory of a new run, and writes `config.json` and vocabulary.

        Raises:
            UserError: The directory is in use.
        """
        run = cls.prepare_directory(path)
        run._remove_written()
        try:
            run.update(record)
            if vocabulary is not None:
                vocabulary.save(run.path / VOCABULARY)
        except BaseException:
            run.remove()
            raise
        return run

    @classmethod
    def prepare_directory(cls, path):
        """Makes the directory of a new run.

        Raises:
            UserError: The directory holds something else than a run that was never saved.
        """
        run = cls(pathlib.Path(path), {})
        if run.path.exists():
            run._check_replaceable()
        check_output(run.path / CONFIG)
        return run

    def _check_replaceable(self):
        """Refuses a directory that holds more than a killed process left before its first save."""
        if not self.path.is_dir():
            raise UserError(f"{self.path} is not a directory: give another --workdir")
        if (self.path / LAST).exists():
            if (self.path / CONFIG).exists() and self.open(self.path).finished():
                raise UserError(
                    f"{self.path} holds a finished training: give another --workdir, or more "
                    "epochs by --resume --epochs=N"
                )
            raise UserError(
                f"{self.path} is in use: give another --workdir, or --resume to continue"
            )
        for file in sorted(self.path.iterdir()):
            if not is_written(file):
                raise UserError(
                    f"{self.path} holds {file.name!r:.80}, which train.py does not write: "
                    "give another --workdir"
                )
        if self.saved():
            raise UserError(f"{self.path} holds a trained run: give another --workdir")
        if any(self.path.glob("[!.]*")):
            self.open(self.path)  # other programs have a config.json, too

    @classmethod
    def open(cls, path):
        """Opens a run.

        Args:
            path: Its directory, or the name of a published run. A `Run` is returned as it is.

        Raises:
            UserError: See `engine.untrusted.open_untrusted`.
        """
        if isinstance(path, Run):
            return path
        directory = find_run(path)
        return cls(directory, open_untrusted(directory))

    def remove(self):
        """Removes what the run wrote, and its directory if nothing else is in it."""
        # An error would hide the one that led here.
        with contextlib.suppress(OSError):
            self._remove_written()
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()

    def _remove_written(self):
        """Removes what a run writes, but for the lock.

        `config.json` is the last: if the process is killed, the rest is still known to be a run.
        """
        files = [file for file in self.path.iterdir() if file.name not in (CONFIG, LOCK)]
        for file in files:
            if not is_written(file):
                continue
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file)
            else:
                file.unlink()
        (self.path / CONFIG).unlink(missing_ok=True)

    def remove_unfinished(self):
        """Removes the directories in which a killed process was writing a file of the run."""
        for directory in self.path.iterdir():
            if is_unfinished(directory):
                shutil.rmtree(directory)

    def update(self, changes):
        """Changes entries of `config.json`."""
        self.record.update(changes)
        write_json(self.path / CONFIG, self.record)

    def saved(self):
        """True if a state was saved, or once was: there is a history, or it was evaluated.

        The first best weights alone do not count: training cannot continue from them.
        """
        return any((self.path / name).exists() for name in (LAST, HISTORY, METRICS))

    def seal(self):
        """Writes the checksums of all files that answers depend on; `open` compares them."""
        write_json(self.path / CHECKSUMS, checksums_of(self.path, without=UNSEALED))

    # === Weights and state ===

    def build_model(self):
        """The model of this run with fresh weights, under the current dtype policy."""
        return self.spec.build(self.config)

    def load_model(self):
        """The model of this run with its best weights.

        Raises:
            UserError: The weights are missing, do not fit or have NaN.
        """
        weights = self.path / BEST
        if not weights.is_file():
            raise UserError(f"{self.path} holds no weights: expected {BEST}, which train.py writes")
        check_weights(self.path, BEST)
        with _fitting(weights), warnings.catch_warnings():
            check_sizes(self, weights)
            # Keras only warns of layers it found no weights for.
            warnings.simplefilter("error", UserWarning)
            model = self.build_model()
            model.load_weights(weights)
        for weight in model.weights:
            if not np.isfinite(np.asarray(weight)).all():
                raise UserError(f"{self.path}: the weights of {weight.path} have NaN or infinity")
        return model

    def save_best(self, model):
        """Writes `best.weights.h5`, from memory: on a full disk HDF5 would end the process."""
        content = _WeightsInMemory()
        model.save_weights(content)
        expected = hashlib.sha256(content.getbuffer()).hexdigest()
        with self._writing(BEST) as temporary:
            temporary.write_bytes(content.getbuffer())
            if checksum(temporary) != expected:
                raise OSError(errno.EIO, "it reads otherwise than it was written")

    def save(self, model, state):
        """Writes `last.npz`: every variable of a compiled model and its optimizer, and the
        `TrainState`.
        """
        arrays = {}
        for number, variable in enumerate(_variables(model)):
            arrays[f"v/{number}"] = np.asarray(variable)
        with self._writing(LAST) as temporary:
            np.savez(temporary, state=json.dumps(state.to_json()), **arrays)
            with zipfile.ZipFile(temporary) as written:
                if written.testzip() is not None:
                    raise OSError(errno.EIO, "it reads otherwise than it was written")

    def restore(self, model):
        """Loads `last.npz` into a compiled model, bit by bit, and makes `history.jsonl` fit it.

        Returns:
            The `TrainState`.
        """
        variables = _variables(model)
        with self._opened_state() as (saved, state):
            saved_variables = len(saved.files) - 1
            if saved_variables != len(variables):
                raise ValueError(f"{saved_variables} variables, not {len(variables)}")
            for number, variable in enumerate(variables):
                variable.assign(saved[f"v/{number}"])

        rows = [row for row in self.history() if row["step"] <= state.validated_step]
        # A killed process may have saved the last row and not logged it.
        if state.row and state.row not in rows:
            rows.append(state.row)
        with atomic_file(self.path / HISTORY) as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
        return state

    def saved_state(self):
        """The `TrainState` in `last.npz`; `None` if nothing was saved."""
        if not (self.path / LAST).is_file():
            return None
        with self._opened_state() as (_, state):
            return state

    @contextlib.contextmanager
    def _opened_state(self):
        """Yields the arrays of `last.npz` and the `TrainState`."""
        file = self.path / LAST
        check_weights(self.path, LAST)
        with _fitting(file), np.load(file, allow_pickle=False) as saved:
            state = json.loads(str(saved["state"]))
            yield saved, TrainState.of(state)

    @contextlib.contextmanager
    def _writing(self, name):
        """Yields a path to write and check, and moves it to its place `name`.

        If it cannot be moved, the file before is kept. The new checksum is recorded before the file
        is replaced. The last ten are kept, so the file matches one of them even if the process dies
        in between.
        """
        temporary = self.path / f".{name}"
        try:
            yield temporary
            checksums = self._checksums()
            last_ones = checksums.get(name, [])[-9:]
            checksums[name] = [*last_ones, checksum(temporary)]
            write_json(self.path / CHECKSUMS, checksums)
            publish(temporary, self.path / name)
        except OSError as error:
            raise UserError(
                f"{self.path / name} cannot be written: {error.strerror or error}"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)

    def _checksums(self):
        return self._read(CHECKSUMS, dict[str, list[str]], {})

    # === History, examples, metrics ===

    def log(self, row):
        """Appends one line to `history.jsonl`."""
        with writing(self.path / HISTORY), open(self.path / HISTORY, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def history(self):
        """The rows of `history.jsonl`, up to the first that a killed process left unfinished."""
        file = self.path / HISTORY
        if not file.exists():
            return []
        rows = []
        for _, line in read_lines(file, None):
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError):
                break
        validated(file, list[HistoryRow], rows)
        return rows

    def trainings(self):
        """All trainings of its weights, in order: `{"corpus", "epochs", "seconds", "command"}`.

        A value is `None` if it is unknown.
        """
        rows = self.history()
        last_row = rows[-1] if rows else {}
        own_training = {
            "corpus": self.dataset.get("name"),
            "epochs": last_row.get("epoch"),
            "seconds": last_row.get("seconds"),
            "command": self.record.get("command"),
        }
        return [*self.record.get("before", []), own_training]

    def finished(self):
        """True if training ended: after all epochs, or by early stopping."""
        rows = self.history()
        state = self.saved_state()
        if not rows or not state:
            return False
        return state.stopped or rows[-1]["epoch"] >= round(self.training.epochs, 3)

    def examples(self):
        """The contents of `examples.json`; empty in a run without it."""
        return self._read(EXAMPLES, list[Example], [])

    def save_examples(self, examples):
        """Writes `examples.json`, without examples that would make it too large to be opened."""
        kept = []
        for example in examples:
            if 2 * len(json.dumps([*kept, example])) < MAX_EXAMPLES:
                kept.append(example)
        write_json(self.path / EXAMPLES, kept)

    def metrics(self):
        """The contents of `metrics.json`, `{split: result}`; empty in a run without it."""
        return self._read(METRICS, dict[str, SplitMetrics], {})

    def save_metrics(self, split, result):
        """Sets the entry of `split` in `metrics.json`.

        That of a published model, which has no dataset's path, stays as its card says.
        """
        metrics = self.metrics()
        is_published = self.dataset["path"] is None
        if split not in metrics or not is_published:
            write_json(self.path / METRICS, {**metrics, split: result})

    def _read(self, name, expected_type, default=None):
        """The contents of a JSON file, which are of a type; `default` without it."""
        file = self.path / name
        if not file.exists():
            return default
        value = read_json(file)
        validated(file, expected_type, value)
        return value


@contextlib.contextmanager
def _fitting(file):
    """Turns the errors of building a model and of reading weights or a state into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # of a damaged file Keras, NumPy and h5py raise anything
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise UserError(f"{file}: the weights do not fit {CONFIG}. {reason}") from error


class _WeightsInMemory(io.BytesIO):
    """A file for `keras.Model.save_weights`, which asks for the ending of its name."""

    def __str__(self):
        return BEST


def _variables(model):
    """Every variable that the next step depends on, dropout's random state included."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    return [*model.variables, *model.optimizer.variables]
