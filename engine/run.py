"""A run: the directory that alone is enough to export a trained model, and with its dataset to
evaluate or resume it.

Its files: see `engine.run_files`. `engine.workdir` makes the directory.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import warnings
from typing import TYPE_CHECKING, Any

from colloquy.base.config import make_config
from colloquy.base.files import (
    CHECKSUMS,
    PathLike,
    UserError,
    atomic_file,
    seal,
    writing,
)
from colloquy.data.json_files import read_json, validated, write_json
from colloquy.data.text_files import read_lines
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.records import AnyTraining, HistoryRow, TrainState
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
)
from colloquy.engine.run_weights import (
    find_not_finite,
    fitting,
    read_state,
    restore_state,
    write_state,
    write_weights,
)
from colloquy.engine.untrusted import open_untrusted
from colloquy.engine.untrusted_weights import check_sizes, check_weights
from colloquy.models import MODELS, ModelEntry

if TYPE_CHECKING:
    import keras

TOY = "A toy: it was trained on a small excerpt of its corpus."
TOY_NAMES = re.compile(r"squad-excerpt|sample(-task\d)?")
"""Names of the datasets of `data/samples/`."""
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
    def model(self) -> str:
        """Key of `models.MODELS`."""
        return self.record["model"]

    @property
    def spec(self) -> ModelEntry:
        """Row of `models.MODELS`."""
        return MODELS[self.model]

    @property
    def task(self) -> str:
        """Key of `tasks.TASKS`."""
        return self.spec.task

    @property
    def config(self) -> Any:
        """Config of the model.

        A setting that this version no longer has is dropped if it was off, or as `FORMER_DEFAULTS`
        has it; otherwise it is a `UserError`.
        """
        settings = {}
        for name, value in self.record["config"].items():
            is_off = value == FORMER_DEFAULTS[name] if name in FORMER_DEFAULTS else not value
            if name in self.spec.config.model_fields or not is_off:
                settings[name] = value
        return make_config(self.spec.config, settings, f"{self.path / CONFIG}: ")

    @property
    def training(self) -> AnyTraining:
        """Settings of its training, those of its task included."""
        return make_config(AnyTraining, self.record["training"], f"{self.path / CONFIG}: ")

    @property
    def dataset(self) -> dict:
        """Metadata of the dataset that it was trained on."""
        return self.record["dataset"]

    @property
    def vocabulary(self) -> Vocabulary:
        """The `Vocabulary` of its words, hashed ids included."""
        return Vocabulary.load(self.path / VOCABULARY, getattr(self.config, "hashed_words", 0))

    @property
    def note(self) -> str:
        """A warning to users of a model of an embedded sample; empty for others."""
        return TOY if TOY_NAMES.fullmatch(self.dataset["name"]) else ""

    @classmethod
    def open(cls, path: PathLike | Run) -> Run:
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

    def update(self, changes: dict) -> None:
        """Changes entries of `config.json`."""
        self.record.update(changes)
        write_json(self.path / CONFIG, self.record)

    def saved(self) -> bool:
        """True if a state was saved, or once was: there is a history, or it was evaluated.

        The first best weights alone do not count: training cannot continue from them.
        """
        return any((self.path / name).exists() for name in (LAST, HISTORY, METRICS))

    def seal(self) -> None:
        """Writes the checksums of all files that answers depend on; `open` compares them."""
        seal(self.path, without=UNSEALED)

    # === Weights and state ===

    def build_model(self) -> keras.Model:
        """The model of this run with fresh weights, under the current dtype policy."""
        return self.spec.build(self.config)

    def load_model(self) -> keras.Model:
        """The model of this run with its best weights.

        Raises:
            UserError: The weights are missing, do not fit or have NaN.
        """
        weights = self.path / BEST
        if not weights.is_file():
            raise UserError(f"{self.path} holds no weights: expected {BEST}, which train.py writes")
        with fitting(weights), warnings.catch_warnings():
            check_weights(self.path, BEST)
            check_sizes(self, weights)
            # Keras only warns of layers it found no weights for.
            warnings.simplefilter("error", UserWarning)
            model = self.build_model()
            model.load_weights(weights)
        path = find_not_finite(model)
        if path is not None:
            raise UserError(f"{self.path}: the weights of {path} have NaN or infinity")
        return model

    def save_best(self, model: keras.Model) -> None:
        """Writes `best.weights.h5`, and its checksum, by which `load_model` notices damage."""
        write_weights(self.path / BEST, model)

    def save(self, model: keras.Model, state: TrainState) -> None:
        """Writes `last.npz`: every variable of a compiled model and its optimizer, and the
        `TrainState`.
        """
        write_state(self.path / LAST, model, state)

    def restore(self, model: keras.Model) -> TrainState:
        """Loads `last.npz` into a compiled model, bit by bit, and makes `history.jsonl` fit it.

        Returns:
            The `TrainState`.
        """
        state = restore_state(self.path / LAST, model)
        rows = [row for row in self.history() if row["step"] <= state.validated_step]
        # A killed process may have saved the last row and not logged it.
        if state.row and state.row not in rows:
            rows.append(state.row)
        with atomic_file(self.path / HISTORY) as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
        return state

    def saved_state(self) -> TrainState | None:
        """The `TrainState` in `last.npz`; `None` if nothing was saved."""
        file = self.path / LAST
        return read_state(file) if file.is_file() else None

    # === History, examples, metrics ===

    def log(self, row: dict) -> None:
        """Appends one line to `history.jsonl`."""
        with writing(self.path / HISTORY), open(self.path / HISTORY, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def history(self) -> list[dict]:
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

    def trainings(self) -> list[dict]:
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

    def finished(self) -> bool:
        """True if training ended: after all epochs, or by early stopping."""
        rows = self.history()
        state = self.saved_state()
        if not rows or not state:
            return False
        return state.stopped or rows[-1]["epoch"] >= round(self.training.epochs, 3)

    def examples(self) -> list[dict]:
        """The contents of `examples.json`; empty in a run without it."""
        return self._read(EXAMPLES, [])

    def save_examples(self, examples: list[dict]) -> None:
        """Writes `examples.json`, without examples that would make it too large to be opened."""
        kept: list[dict] = []
        for example in examples:
            if 2 * len(json.dumps([*kept, example])) < MAX_EXAMPLES:
                kept.append(example)
        write_json(self.path / EXAMPLES, kept)

    def metrics(self) -> dict[str, dict]:
        """The contents of `metrics.json`, `{split: result}`; empty in a run without it."""
        return self._read(METRICS, {})

    def save_metrics(self, split: str, result: dict) -> None:
        """Sets the entry of `split` in `metrics.json`.

        That of a published model, which has no dataset's path, stays as its card says.
        """
        metrics = self.metrics()
        is_published = self.dataset["path"] is None
        if split not in metrics or not is_published:
            write_json(self.path / METRICS, {**metrics, split: result})

    def _read(self, name, default):
        """The contents of a JSON file, which `open_untrusted` has checked; `default` without it."""
        file = self.path / name
        return read_json(file) if file.exists() else default
