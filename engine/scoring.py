"""The inputs of a score, a model, a split of a dataset and options, and its result."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import keras

from colloquy.data.prepared import Dataset
from colloquy.engine.run import Run
from colloquy.metrics.bootstrap import Additive


@dataclasses.dataclass(frozen=True)
class Scoring:
    """What `engine.task.Task.measure` and `metrics_by_group` take."""

    model: keras.Model | None
    """The model of a run, or an ensemble; `None` for answers of another system."""
    dataset: Dataset
    """The dataset of the run, or another one."""
    split: str
    """A name of `dataset.splits`."""
    run: Run | None
    """The run, the first one of an ensemble; `None` as for `model`."""
    options: Any
    """The task's `Options`."""
    baselines: bool = True
    """Scores baselines, too."""
    progress: Callable[[Iterable], Iterable] = iter
    """Wraps a list of batches, to show progress."""
    length_multiple: int = 4
    """See `engine.task.Task.collate`."""

    @property
    def examples(self) -> Any:
        """The split that is scored."""
        return self.dataset.splits[self.split]


class Measured(NamedTuple):
    """What `engine.task.Task.measure` and `measure_outside` return."""

    record: dict[str, Any]
    """Ready for JSON: `metrics`, `counts`, and what the task adds, such as `baselines`."""
    by_example: Callable[[], dict[str, Additive]]
    """Computes the metrics with a term for each example."""
    answers: Iterable[str] = ()
    """The model's answers, lines of text, which are made when they are written."""


class Group(NamedTuple):
    """The scores of some examples of a split, see `engine.task.Task.metrics_by_group`."""

    name: str
    examples: int
    """Their number."""
    metrics: dict[str, float]
