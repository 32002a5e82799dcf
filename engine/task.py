"""The interface of a task, one kind of work; its subclasses in `tasks/<task>/task.py` are listed in
`tasks.TASKS`.

prepared dataset  ->  batches  ->  loss            training
                               ->  score           which weights are kept
                               ->  metrics         evaluation
                  run  ->  predictor, endpoints    use
"""

import abc
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from colloquy.base.config import Config, NonNegative, Positive, check_settings, make_config
from colloquy.base.files import PathLike, UserError
from colloquy.engine.limits import Limit


class Training(Config):
    """Settings of a training; each task has a subclass with its own defaults and fields."""

    epochs: Annotated[float, Field(gt=0, le=1e6)] = 2.0
    """Passes over the training examples."""
    batch_size: Positive = 256
    """Contexts, dialogs, pairs or questions per step."""
    learning_rate: Annotated[float, Field(ge=0)] = 1e-3
    """Initial learning rate."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Precision of computation; weights and losses stay float32. auto: bfloat16 where this machine
    computes it and the model gains by it, else float32."""
    jit: Literal["auto", "on", "off"] = "auto"
    """XLA. auto: on with a GPU or JAX, else off, where XLA is slower."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed for every random number generator."""
    gradient_clip: Annotated[float, Field(ge=0)] = 5.0
    """Gradients are scaled down to this global norm; 0: not at all."""
    validations_per_epoch: Annotated[float, Field(ge=1e-6)] = 1.0
    """Validations on dev per pass over the training examples; 0.5 is every other epoch."""
    patience: NonNegative = 0
    """Early stopping: training ends after this many consecutive validations without improvement.
    0: never."""
    best_by: str = ""
    """Metric of dev that chooses the best validation, such as MAP or one of your own: the highest,
    of perplexity the lowest. Empty: the task's choice."""


class DecayingTraining(Training):
    """Settings of a training with linear decay of the learning rate and averaged weights, see
    `engine.optimizers.decaying`.
    """

    decay: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The learning rate decays linearly to this fraction of its initial value by the end of the
    training; 1: it stays constant.
    """
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Decay of the moving averages of all weights, which validation and evaluation use; 0: none are
    kept.
    """


class ScoringOptions(Config):
    """Settings of `evaluate.py --set`; a task that has some has a subclass."""


class ExportCall(NamedTuple):
    """A call of an exported `model`, in the Python lines that export.py prints."""

    endpoint: str
    """Name of the endpoint."""
    result: str
    """Name of the variable that the outputs are assigned to."""
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
    training: Training
    """Settings of its training, of the task's class."""

    def settings(self) -> dict[str, Any]:
        """Returns `{field: value}` of the config and of the training, as `--set` takes them."""
        return {**self.config, **self.training.explicit_fields()}


class Task(abc.ABC):
    """One kind of work that models are trained for."""

    name = ""
    """Key of `tasks.TASKS`; `models.MODELS` and prepared datasets name their task by it."""
    named_systems = ()
    """Systems without a run that `measure_outside` knows by name, such as baselines."""
    example_unit = ""
    """One example of a split, in titles: context, dialog, pair or question."""
    Training = Training
    """The task's subclass of `engine.task.Training`."""
    max_score = 1.0
    """The best possible score of `validate`. Training ends there if dev is large enough to exclude
    chance."""
    Options = ScoringOptions
    """The task's subclass of `ScoringOptions`."""
    breakdowns = ()
    """Groupings of examples that `metrics_by_group` knows."""
    summary_metrics = ()
    """Metrics that a table of several runs shows, the most important first."""
    sample_path = "prepared"
    """Path of the prepared dataset in the directory of `make_sample`."""
    chat_options = ()
    """Flags of chat.py that `chat` takes."""
    export_call = ExportCall("answer", result="found", outputs=())
    """The call that export.py prints."""
    export_instance: dict[str, Any] = {}
    """The instance of this call, for runs without examples."""
    export_options = ()
    """Flags of export.py that `export_archive` takes."""

    # === Data ===

    @abc.abstractmethod
    def make_sample(self, directory: pathlib.Path) -> None:
        """Writes the embedded sample's raw files to `directory/raw`, and prepares them into
        `directory/prepared`.
        """

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

        Another dataset for the model must agree.
        """

    def optional_fields(self, dataset: Any) -> dict[str, Any]:
        """Further fields that the dataset of the training decides, if a model's config has them."""
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
        training_settings = {}
        for name, value in settings.items():
            outer_name = name.partition(".")[0]  # `lexical` of `lexical.gain`
            if outer_name in config_fields:
                model_settings[name] = value
            elif name in training_fields:
                training_settings[name] = value
            else:
                raise UserError(
                    f"there is no setting {name!r}. The model has {', '.join(config_fields)}; "
                    f"its training has {', '.join(training_fields)}"
                )
        check_settings(spec.config, model_settings)
        return model_settings, make_config(self.Training, training_settings)

    # === Training ===

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
        """Terms that the loss averages over in each example of a batch, `(B,)`; here 1."""
        return np.ones(len(targets))

    @abc.abstractmethod
    def training_batches(self, split: Any, config: Any, training: Any, rng: Any) -> list:
        """Cuts one epoch of a split into batches for `collate`, in an order drawn from `rng`.

        Their number is the same for every `numpy.random.Generator`.
        """

    def limits(self, split: Any, config: Any, training: Any) -> list[Limit]:
        """The limits by which a training leaves out or cuts examples of a split."""
        return []

    @abc.abstractmethod
    def collate(self, split: Any, config: Any, batch: Any, length_multiple: int) -> tuple:
        """Makes the arrays `(inputs, targets)` of one of the `training_batches`.

        Lengths are rounded up to a multiple of `length_multiple`, or of this times a constant of
        the task.
        """

    # === Scoring ===

    def average(self, logits: Any) -> Any:
        """Logits of an ensemble, whose probabilities are a mean of the models'; refused here."""
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
            An `engine.scoring.Measured`, whose record has `counts` alone.
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

    # === Use ===

    def example_to_try(self, example: dict) -> dict:
        """The part of an example that a run keeps for people to try; here all."""
        return example

    @abc.abstractmethod
    def example(self, dataset: Any, split: Any, number: int) -> dict:
        """`{"instance", "expected"}` of an example of a split; correct answers are texts."""

    def read_example(self, dataset: Any, split: Any, number: int) -> dict:
        """Like `example`, for `engine.predictor.Predictor.for_scored_examples`.

        Texts that the dataset holds as words are these words, separated by spaces, and the instance
        may be a checked one.
        """
        return self.example(dataset, split, number)

    @abc.abstractmethod
    def predictor(self, run: Any) -> Any:
        """The `engine.predictor.Predictor` of a run's best model; a broken run is a `UserError`."""

    @abc.abstractmethod
    def chat(self, run: Any, options: Mapping[str, Any]) -> Any:
        """Starts a conversation with a run's best model.

        Args:
            run: The run.
            options: `{name: value}` of some `chat_options`.

        Returns:
            The `engine.chat.Chat`.
        """

    def export_inputs(self, instance: dict) -> dict[str, list]:
        """The arguments of `export_call` for a batch of one: `{name: nested lists of texts}`."""
        return {name: [value] for name, value in instance.items()}

    @abc.abstractmethod
    def export_archive(self, run: Any, model: Any, vocabulary: Any, **options: Any) -> Any:
        """A `keras.export.ExportArchive` of a run's float32 model: endpoints take raw strings.

        Options are those of `export_options`; a wrong one is a `UserError`.
        """
