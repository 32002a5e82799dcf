"""The interface of a task, one kind of work: what the engine asks of it.

A dataset gives batches, and a model gives logits for them. A task says what they are:

    training     the loss, and the score that decides which weights are kept
    evaluation   the metrics of a split
    use          a predictor, a chat and an export of a trained model

The subclasses are in `tasks/<task>/task.py`; `tasks.TASKS` lists them.
"""

import abc
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from colloquy.base.config import Config, check_settings, make_config
from colloquy.base.files import PathLike, UserError
from colloquy.engine import training_settings
from colloquy.engine.limits import Limit


class ExportCall(NamedTuple):
    """The call of an exported model that export.py prints as an example."""

    endpoint: str
    """Name of the endpoint."""
    outputs: tuple[str, ...]
    """Names of the outputs that are printed."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One row of a task's `RECIPES`: a model and its settings by name."""

    title: str
    """Name in tables, unique."""
    model: str
    """Key of `models.MODELS`."""
    corpus: str
    """Prepared dataset that it was made for."""
    config: dict
    """Fields of the model's config, as `--set` takes them."""
    training: training_settings.Training
    """Settings of its training, of the task's class."""

    def settings(self) -> dict[str, Any]:
        """Returns `{field: value}` of the config and of the training, as `--set` takes them."""
        return {**self.config, **self.training.explicit_fields()}


class Task(abc.ABC):
    """One kind of work that models are trained for."""

    name = ""
    """Key of `tasks.TASKS`; `models.MODELS` and prepared datasets name their task by it."""
    example_unit = ""
    """One example of a split, in titles: context, dialog, pair or question."""

    # === Data ===

    @abc.abstractmethod
    def make_sample(self, directory: pathlib.Path) -> None:
        """Prepares the embedded sample into `directory/prepared`."""

    @abc.abstractmethod
    def load_dataset(self, path: PathLike) -> Any:
        """Reads a `data.prepared.Dataset`.

        Its `splits` have lengths, empty ones included; its `vocabulary` may be `None`.

        Raises:
            UserError: It is a dataset of another task.
        """

    def dataset_of(self, run: Any, path: PathLike | None = None) -> Any:
        """Opens the dataset that a run was trained on, or the one at `path` in its place."""
        metadata = run.dataset
        if path:
            return self.load_dataset(path)
        if not metadata["path"]:
            raise UserError(f"{run.path} names no dataset: give one of prepare.py as data")
        if not pathlib.Path(metadata["path"]).is_dir():
            raise UserError(
                f"{run.path} was trained on {metadata['path']}, which is gone: give it as data"
            )
        return self.load_dataset(metadata["path"])

    def save_assets(self, dataset: Any, path: pathlib.Path) -> None:
        """Writes files that the model needs, beside the vocabulary, into a run's directory."""
        return

    # === Settings ===

    @abc.abstractmethod
    def required_fields(self, dataset: Any) -> dict[str, Any]:
        """`{field: value}` of a model's config that a dataset decides.

        A trained model accepts another dataset only if it decides the same values.
        """

    def check_numbers(self, run: Any, dataset: Any) -> None:
        """Refuses, as a `UserError`, a dataset whose candidates or entities have other numbers.

        A run's weights know them by their numbers. `engine.settings.check_fits` compares the words;
        here nothing else is numbered.
        """
        return None

    def optional_fields(self, dataset: Any) -> dict[str, Any]:
        """Like `required_fields`, but another dataset may decide other values.

        Fields that a model's config lacks are left out.
        """
        return {}

    def split_settings(
        self, spec: Any, settings: Mapping[str, object]
    ) -> tuple[dict[str, Any], Any]:
        """Splits settings of `--set` into those of the model and those of its training.

        Args:
            spec: A row of `models.MODELS`.
            settings: `{field: value}`.

        Returns:
            `{field: value}` of the model's config, without what the dataset decides.
            The `Training`.

        Raises:
            UserError: A field is unknown, or a value is wrong.
        """
        config_fields = spec.config.model_fields
        training_fields = self.Training.model_fields
        model_settings = {}
        settings_of_training = {}
        for name, value in settings.items():
            outer_name = name.partition(".")[0]  # `lexical` of `lexical.gain`
            if outer_name in config_fields:
                model_settings[name] = value
            elif name in training_fields:
                settings_of_training[name] = value
            else:
                raise UserError(
                    f"there is no setting {name!r}. The model has {', '.join(config_fields)}; "
                    f"its training has {', '.join(training_fields)}"
                )
        check_settings(spec.config, model_settings)
        return model_settings, make_config(self.Training, settings_of_training)

    # === Training ===

    Training: type[training_settings.Training]
    """The class of its settings of a training."""
    max_score = 1.0
    """The best possible score of `validate`. A training that reaches it ends, unless dev is so
    small that this may be chance."""

    def initialise(self, model: Any, dataset: Any, training: Any) -> None:
        """Sets the weights of a fresh model that come from the dataset, such as word vectors; here
        none.
        """
        return

    @abc.abstractmethod
    def optimizer(self, training: Any, steps: int) -> Any:
        """The optimizer for a training of `steps` steps."""

    @abc.abstractmethod
    def loss(self, training: Any) -> Callable:
        """The loss for `keras.Model.compile`: a function of targets and logits, float32 `(B,)`."""

    def loss_counts(self, targets: np.ndarray) -> np.ndarray:
        """The number of terms in the loss of each example, `(B,)`; here 1.

        The loss of a batch is the sum of the terms of all its examples, divided by their number.
        """
        return np.ones(len(targets))

    @abc.abstractmethod
    def training_batches(self, split: Any, config: Any, training: Any, rng: Any) -> list:
        """Cuts one epoch of a split into batches for `collate`, in an order drawn from `rng`.

        Their number is the same for every `rng`, so every epoch has the same number of steps.
        """

    def limits(self, split: Any, config: Any, training: Any) -> list[Limit]:
        """The limits by which a training leaves out or cuts examples of a split."""
        return []

    @abc.abstractmethod
    def collate(self, split: Any, config: Any, batch: Any, length_multiple: int) -> tuple:
        """Makes the arrays `(inputs, targets)` of one of the `training_batches`.

        Lengths are rounded up to a multiple of `length_multiple`, or to a larger multiple that the
        task chooses, so that there are few shapes.
        """

    # === Scoring ===

    Options = Config
    """The class of its settings of `evaluate.py --set`; here it has none."""
    summary_metrics = ()
    """Metrics that a table of several runs shows, the most important first."""
    breakdowns = ()
    """Names of groupings of examples, which `metrics_by_group` takes."""
    named_systems = ()
    """Names of systems without a run, such as baselines, which `measure_outside` takes."""

    def average(self, logits: Any) -> Any:
        """The logits of an ensemble, from a list of the logits of its models.

        `engine.ensembles` has functions for it. By default a task has no ensembles.
        """
        raise UserError(
            f"models of {self.name} cannot form an ensemble: "
            "give --run one run, or a pattern of several"
        )

    def num_examples(self, split: Any) -> int:
        """The number of contexts, dialogs, pairs or questions of a split."""
        return len(split)

    @abc.abstractmethod
    def validate(
        self, model: Any, split: Any, length_multiple: int = 4
    ) -> tuple[dict[str, float], float]:
        """Scores a split during training.

        Returns:
            Metrics, `{name: value}`.
            The score that weights are chosen by.
        """

    @abc.abstractmethod
    def measure(self, scoring: Any) -> Any:
        """Scores a split for evaluate.py: an `engine.scoring.Measured` of a `Scoring`."""

    def measure_outside(self, scoring: Any, source: str) -> Any:
        """Scores the answers of another system, as `measure` does those of a model.

        Args:
            scoring: An `engine.scoring.Scoring` without a model.
            source: One of `named_systems`, or a file of answers.

        Returns:
            An `engine.scoring.Measured`; `counts` is the only field of its record.
        """
        raise UserError(f"{source}: expected a run; {self.name} takes no answers of other systems")

    def metrics_by_group(self, scoring: Any, breakdowns: Iterable[str]) -> dict[str, list]:
        """Scores groups of a split's examples by some of `breakdowns`; see also `measure`.

        Returns:
            `{breakdown: list of engine.scoring.Group}`, in the order of a plot.
        """
        return {}

    @abc.abstractmethod
    def describe(self, record: dict) -> tuple[str, str | None]:
        """The title and the caption, or `None`, of the table of a `Measured.record`."""

    # === Examples ===

    @abc.abstractmethod
    def example(self, dataset: Any, split: Any, number: int) -> dict:
        """An example of a split to try a model on, as a user would type it.

        Returns:
            `{"instance", "expected"}`: `expected`, the correct answers as texts, may be missing.
        """

    def read_example(self, dataset: Any, split: Any, number: int) -> dict:
        """An example as a model reads it, for `engine.predictor.Predictor.for_scored_examples`.

        It has `expected`. Where the dataset holds words, texts are these words, separated by
        spaces. `instance` may be an `Instance` in place of a dict. By default this is `example`.
        """
        return self.example(dataset, split, number)

    # === Use ===

    export_call: ExportCall
    """An example of a call of an exported model."""
    export_instance: dict[str, Any]
    """The instance of this call if the run has no examples."""
    export_options = ()
    """Flags of export.py that `export_archive` takes."""

    @abc.abstractmethod
    def predictor(self, run: Any) -> Any:
        """The `engine.predictor.Predictor` of a run's best model; a broken run is a `UserError`."""

    @abc.abstractmethod
    def chat(self, predictor: Any) -> Any:
        """The `engine.chat.Chat` of a predictor of `tasks.load_predictor`."""

    def export_inputs(self, instance: dict) -> dict[str, list]:
        """The arguments of `export_call` for a batch of one: `{name: nested lists of texts}`."""
        return {name: [value] for name, value in instance.items()}

    @abc.abstractmethod
    def export_archive(self, run: Any, model: Any, vocabulary: Any, **options: Any) -> Any:
        """A `keras.export.ExportArchive` of a run's float32 model: endpoints take raw strings.

        Options are those of `export_options`; a wrong one is a `UserError`.
        """
