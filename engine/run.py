"""A run: the directory of a trained model.

The directory alone is enough to use and to export the model. To evaluate it or to resume its
training, the dataset is needed too. `engine.run_files` lists the files, `engine.workdir` makes the
directory.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from typing import TYPE_CHECKING, Any

from colloquy.base.config import make_config
from colloquy.base.files import CHECKSUMS, PathLike, UserError, seal
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.records import AnyTraining, TrainState
from colloquy.engine.run_directory import RunDirectory
from colloquy.engine.run_files import (
    BEST,
    CARD,
    CONFIG,
    EXAMPLES,
    HISTORY,
    LAST,
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
from colloquy.engine.settings import without_former_settings
from colloquy.engine.untrusted import open_untrusted
from colloquy.engine.untrusted_weights import check_sizes, check_weights
from colloquy.models import MODELS, ModelEntry

if TYPE_CHECKING:
    import keras

TOY = "A toy: it was trained on a small excerpt of its corpus."
TOY_NAMES = re.compile(r"squad-excerpt|sample(-task\d)?")
"""Names of the datasets of `data/samples/`."""
UNSEALED = (CHECKSUMS, LAST, HISTORY, METRICS, EXAMPLES, CARD, PAGE, "index")
"""Files of a published run without a checksum in the run's `checksums.json`: answers do not depend
on them. An index of responses has its own `checksums.json`."""


@dataclasses.dataclass(frozen=True)
class Run(RunDirectory):
    """An existing run directory."""

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

    def seal(self) -> None:
        """Writes the checksums of all files that answers depend on; `open` compares them."""
        seal(self.path, without=UNSEALED)

    # === Settings ===

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
        """Config of the model."""
        settings = without_former_settings(self.record["config"], self.spec.config)
        return make_config(self.spec.config, settings, f"{self.path / CONFIG}: ")

    @property
    def training(self) -> AnyTraining:
        """Settings of its training, those of its task included."""
        return make_config(AnyTraining, self.record["training"], f"{self.path / CONFIG}: ")

    @property
    def vocabulary(self) -> Vocabulary:
        """The `Vocabulary` of its words, hashed ids included."""
        return Vocabulary.load(self.path / VOCABULARY, getattr(self.config, "hashed_words", 0))

    @property
    def note(self) -> str:
        """A warning to users of a model of an embedded sample; empty for others."""
        return TOY if TOY_NAMES.fullmatch(self.dataset["name"]) else ""

    # === Weights ===

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
        """Writes `best.weights.h5`, and its checksum, by which `load_model` notices damage.

        Removes `metrics.json`, which has scores and thresholds of the weights before.
        """
        write_weights(self.path / BEST, model)
        (self.path / METRICS).unlink(missing_ok=True)

    # === State of the training ===

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
        # Validations after the state will be repeated.
        rows = [row for row in self.history() if row["step"] <= state.validated_step]
        # A training saves the state, then logs its row. If it was killed in between, the row is
        # only in the state.
        if state.row and state.row not in rows:
            rows.append(state.row)
        self.replace_history(rows)
        return state

    def saved_state(self) -> TrainState | None:
        """The `TrainState` in `last.npz`; `None` if nothing was saved."""
        file = self.path / LAST
        return read_state(file) if file.is_file() else None

    def saved(self) -> bool:
        """True if the run has more than its first best weights: a state, a history or metrics.

        Training cannot continue from the best weights alone, so such a run may be replaced.
        """
        return any((self.path / name).exists() for name in (LAST, HISTORY, METRICS))

    def finished(self) -> bool:
        """True if training ended: after all epochs, or by early stopping."""
        rows = self.history()
        state = self.saved_state()
        if not rows or not state:
            return False
        # A row has its epochs with three decimals.
        return state.stopped or rows[-1]["epoch"] >= round(self.training.epochs, 3)
