"""The JSON that a run keeps, as classes: config.json, the state, a row of the history, an
example.
"""

from typing import Literal

from colloquy.base.config import Config
from colloquy.engine.task import Training
from colloquy.models import MODELS


class Metadata(Config, extra="allow"):
    """Metadata of a dataset; a task adds its own."""

    path: str | None
    name: str
    eos_id: int | None = None
    unk_id: int | None = None
    text: dict = {}


class RunRecord(Config, extra="allow"):
    """The contents of `config.json`."""

    model: Literal[tuple(MODELS)]
    recipe: str | None = None
    config: dict
    training: dict
    dataset: Metadata
    before: list[dict] = []
    resumed: list[dict] = []


class Example(Config, extra="allow"):
    """An example to try a model on."""

    title: str
    instance: dict


class SplitMetrics(Config, extra="allow"):
    """Metrics of a split, from evaluate.py."""

    metrics: dict
    confidence: dict[str, float] | None = None


class HistoryRow(Config, extra="allow"):
    """A line of the history; metrics beside it."""

    step: int
    epoch: float


class AnyTraining(Training, extra="allow"):
    """Settings of a training of any task."""


class TrainState(Config):
    """The progress of a training; with the variables of model and optimizer, all that it continues
    from.
    """

    step: int = 0  # steps done
    seconds: float = 0.0  # time of these steps, without validations
    losses: float = 0.0  # sum of the losses since the last validation
    best_score: float = -1.0
    waited: int = 0  # validations since the best score
    stopped: bool = False  # by early stopping
    validations: int = 0
    validated_step: int = 0  # step of the last validation
    # last row of the history, for a process killed between saving and logging
    row: dict | None = None

    def next_validation(self, interval, total):
        """The step of the next validation: a multiple of `interval`, or the last step of
        `total`.
        """
        due = (self.validated_step // interval + 1) * interval
        return max(self.step, min(due, total))

    def after(self, losses, seconds):
        """The state after more steps with these losses."""
        return self.replace(
            step=self.step + len(losses),
            losses=self.losses + sum(losses),
            seconds=self.seconds + seconds,
        )

    def validated(self, row, score, improved, patience, done):
        """The state after a validation with a score and a row of the history; early stopping if
        `done`, or waited.
        """
        waited = 0 if improved else self.waited + 1
        return self.replace(
            losses=0.0,
            best_score=max(float(score), self.best_score),
            waited=waited,
            stopped=bool(done or 0 < patience <= waited),
            validations=self.validations + 1,
            validated_step=self.step,
            row=row,
        )
