"""The JSON that a run keeps, as classes."""

from typing import Self

from pydantic import field_validator

from colloquy.base.config import Config
from colloquy.engine.training_settings import Training
from colloquy.models import MODELS


class DatasetRecord(Config, extra="allow"):
    """Metadata of a dataset. A task adds fields of its own."""

    path: str | None
    """Where the dataset was when the run was trained."""
    name: str
    eos_id: int | None = None
    unk_id: int | None = None
    text: dict = {}

    @field_validator("path")
    @classmethod
    def _has_no_nul(cls, path):
        if path is not None and "\0" in path:
            raise ValueError("no path has a NUL")
        return path


class RunRecord(Config, extra="allow"):
    """The contents of `config.json`."""

    model: str
    recipe: str | None = None
    config: dict
    training: dict
    dataset: DatasetRecord
    before: list[dict] = []
    resumed: list[dict] = []
    decode: str = ""
    """Generation: the search for replies where nobody names one, as `--decode` takes it."""

    @field_validator("model")
    @classmethod
    def _is_known(cls, model):
        if model not in MODELS:
            known = ", ".join(MODELS)
            raise ValueError(f"expected {known}; --import=MODULE adds a model of your own")
        return model


class Example(Config, extra="allow"):
    """An example to try a model on."""

    title: str
    instance: dict


class Doubt(Config):
    """The threshold of a selection model, and what it does on dev: see `tasks.selection.doubt`."""

    threshold: float
    """The logit from which a first response counts as good."""
    right_kept: float
    """The fraction of right first responses that do."""
    without_right_doubted: float
    """The fraction of rankings without a right response whose first one does not."""


class SplitMetrics(Config, extra="allow"):
    """Metrics of a split, from evaluate.py."""

    metrics: dict
    confidence: dict[str, float] | None = None
    """Reading comprehension, of dev: see `tasks.reading_comprehension.calibration`."""
    doubt: Doubt | None = None
    """Selection: see `tasks.selection.doubt`."""


class HistoryRow(Config, extra="allow"):
    """A line of the history. It also has the metrics of the validation."""

    step: int
    epoch: float


class AnyTraining(Training, extra="allow"):
    """Settings of a training of any task."""


class TrainState(Config):
    """The progress of a training.

    With the variables of model and optimizer, it is all that a training continues from.
    """

    fingerprint: str = ""
    """Digest of the dataset, see `data.prepared.fingerprint`; "": not known."""
    step: int = 0
    """Steps done."""
    seconds: float = 0.0
    """Time of these steps, without validations."""
    losses: float = 0.0
    """Sum of the losses since the last validation."""
    best_score: float = -1.0
    """Best score of a validation so far."""
    waited: int = 0
    """Validations since the best score."""
    stopped: bool = False
    """True after early stopping."""
    validations: int = 0
    """Validations done."""
    validated_step: int = 0
    """Step of the last validation."""
    row: dict | None = None
    """Last row of the history, for a process killed between saving and logging."""

    def next_validation(self, interval: int, total: int) -> int:
        """The step of the next validation: a multiple of `interval`, or the last step, `total`."""
        due = (self.validated_step // interval + 1) * interval
        return max(self.step, min(due, total))

    def after(self, losses: list[float], seconds: float) -> Self:
        """The state after more steps with these losses."""
        return self.replace(
            step=self.step + len(losses),
            losses=self.losses + sum(losses),
            seconds=self.seconds + seconds,
        )

    def validated(self, row: dict, score: float, improved: bool, patience: int, done: bool) -> Self:
        """The state after a validation.

        Args:
            row: A row of the history.
            score: Its score.
            improved: True if it is kept as the best one.
            patience: Validations without improvement after which training stops; 0: never.
            done: True if the best possible score is reached.
        """
        waited = 0 if improved else self.waited + 1
        ran_out_of_patience = 0 < patience <= waited
        return self.replace(
            losses=0.0,
            best_score=float(score) if improved else self.best_score,
            waited=waited,
            stopped=bool(done or ran_out_of_patience),
            validations=self.validations + 1,
            validated_step=self.step,
            row=row,
        )
