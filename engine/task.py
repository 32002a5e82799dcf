"""The interface that a task fulfils: everything that the engine asks of it.

    prepared dataset  ->  batches  ->  loss            training
                                   ->  score           which weights are kept
                                   ->  metrics         evaluation
                      run  ->  predictor, endpoints    use

A task is a subclass of `Task` in `tasks/<task>/task.py`, listed in `tasks.TASKS`. The engine gets it as an argument.
"""

import abc
import dataclasses
import pathlib

import numpy as np

from base.files import UserError
from data.prepared import task_of
from engine.settings import check_fields, check_sizes, with_decided


@dataclasses.dataclass(frozen=True)
class Training:
    """How a model is trained: what holds for every task. A task's own `Training` is a subclass."""

    gradient_clip: float = 5.0
    """Gradients are scaled down to this global norm; 0: not at all."""
    validations_per_epoch: float = 1.0
    """How often the split dev is scored in a pass over the training examples; 0.5 is every other epoch."""
    patience: int = 0
    """Early stopping: training ends when this many validations in a row brought no improvement; 0: never."""

    limits = {"gradient_clip": "[0, inf)", "validations_per_epoch": "(0, inf)", "patience": "[0, inf)"}
    """Of every field that is not a bool: see `engine.settings.check_fields`. A subclass adds its own."""

    def __post_init__(self):
        check_fields(self, **self.limits)


class Task(abc.ABC):
    """One kind of work that models are trained for."""

    name = ""
    """Key of `tasks.TASKS`; `models.MODELS` and prepared datasets name their task by it."""
    Training = Training
    """Frozen dataclass of the settings of its training; `--set field=value` reaches its fields."""
    fit = {}
    """`{field: value}` of `engine.train.Fit`, where its defaults do not suit the task."""
    release_training = {}
    """`{field: value}` of `Training` that `--set compatibility=release` sets."""
    best_score = 1.0
    """The best score that `validate` can return; training ends when it is reached."""
    options = ()
    """Names of the flags of evaluate.py that `measure` takes."""
    groupings = ()
    """What `metrics_by` can group examples by."""
    headline = ()
    """Metrics that a table of several runs shows, the most important first."""
    batch_fields = ()
    """Fields of a model's config that its batches are made by: the models of an ensemble have the same."""
    load_options = ()
    """Names of what `load_dataset` takes beside a path; a run remembers them in its dataset's facts."""
    sample_path = "prepared"
    """Where the prepared dataset is in what `make_sample` writes."""
    optional_fields = ()
    """Names of what `decided` returns that a model's config may lack."""
    export_call, export_instance = ("found = model.answer", ()), {}
    """An assignment that calls the exported `model`, and its outputs; what to ask where a run has no examples."""
    export_options = ()
    """Names of the flags of export.py that `export_archive` takes."""

    # === Data ===

    @abc.abstractmethod
    def make_sample(self, directory):
        """Writes the embedded sample's raw files to `raw` in a directory, and prepares them into `prepared` there.

        Args:
            directory: A `pathlib.Path`. To be called by `engine.samples.sample_of`, which does it once.
        """

    def open_dataset(self, path, **options):
        """Reads a prepared dataset, and refuses one of another task.

        Args:
            path, **options: As of `load_dataset`.

        Raises:
            UserError: where it is not there, of another task, or malformed.
        """
        kind = task_of(path)
        if kind not in (None, self.name):
            raise UserError(f"{path} was prepared for models of {kind}; expected a dataset for {self.name}")
        return self.load_dataset(path, **options)

    @abc.abstractmethod
    def load_dataset(self, path, **options):
        """Reads a prepared dataset.

        Args:
            path: Its directory.
            **options: See `load_options`.

        Returns:
            Has `path`, `name` (the corpus), `splits` (`{name: split}`, empty ones included, each with a length),
            `vocabulary` (or `None`) and `facts()`: what a run remembers of it, ready for JSON.

        Raises:
            UserError: on a missing or malformed file, and where files contradict each other.
        """

    def dataset_of(self, run, path=None):
        """The dataset of a run, or another one in its place.

        Args:
            run: A `engine.run.Run`.
            path: Directory of a prepared dataset; `None`: the one that the run was trained on.

        Raises:
            UserError: where it is missing or malformed, or the run remembers none.
        """
        facts = run.config["dataset"]
        if not (path or facts["path"]):
            raise UserError(f"{run.path} remembers no dataset: give --data")
        if not path and not pathlib.Path(facts["path"]).is_dir():
            raise UserError(f"{run.path} was trained on {facts['path']}, which is gone: give --data")
        remembered = {name: facts[name] for name in self.load_options if not (path and name == "name")}
        return self.open_dataset(path or facts["path"], **remembered)

    def keep_for_run(self, dataset, path):
        """Puts into a run's directory, `path`, what using its model takes beside the vocabulary; nothing here."""
        return

    @abc.abstractmethod
    def sizes(self, dataset):
        """`{field: value}` of a model's config that a dataset decides; another dataset for the model must agree."""

    def decided(self, dataset):
        """All fields of a model's config that a dataset decides: `sizes`, where a task has no more."""
        return self.sizes(dataset)

    def check_fits(self, config, dataset):
        """Refuses, as a `UserError`, a dataset that was prepared with another vocabulary than the model's."""
        check_sizes(config, self.sizes(dataset), dataset.path)

    # === Training ===

    def model_settings(self, dataset, settings):
        """The model's settings with what the dataset decides filled in; a `UserError` where they contradict it."""
        return with_decided(settings, self.decided(dataset), dataset.path)

    @abc.abstractmethod
    def initialise(self, model, dataset, training):
        """Puts into a fresh model what the dataset has for it, as word vectors."""

    @abc.abstractmethod
    def optimizer(self, training, learning_rate, steps, config):
        """The optimizer.

        Args:
            training: A `Training` of the task.
            learning_rate: The initial one.
            steps: Of the whole training.
            config: The model's.
        """

    @abc.abstractmethod
    def loss(self, training):
        """The loss function that a `Training` names.

        Returns:
            Function of targets and logits, as `keras.Model.compile` takes it, that returns float32 `(B,)`.
        """

    def loss_counts(self, targets):
        """How many of what the loss averages over each example of a batch has; one each, where a task says no more.

        Args:
            targets: As of `collate`.

        Returns:
            Numbers `(B,)`.
        """
        return np.ones(len(targets))

    @abc.abstractmethod
    def training_batches(self, split, config, training, batch_size, rng):
        """One epoch of batches.

        Args:
            split: One of a dataset's.
            config: The model's.
            training: A `Training` of the task.
            batch_size: Examples per batch.
            rng: `numpy.random.Generator`.

        Returns:
            A sequence of whatever `collate` takes, which may be made when it is asked for: arrays with an item for each
            example, alone or in tuples with what holds for all; as long for every `rng`.
        """

    @abc.abstractmethod
    def collate(self, split, config, batch, length_multiple):
        """Makes arrays of a batch.

        Args:
            split, config: As of `training_batches`.
            batch: An item of its list.
            length_multiple: Lengths are rounded up to a multiple of this, or of this times a constant of the task.

        Returns:
            `(inputs, targets)` for the model and its loss.
        """

    # === Scoring ===

    def average(self, logits):
        """The logits of an ensemble, whose probabilities are a mean of the models'; refused here."""
        raise UserError(f"models of {self.name} make no ensemble here: give --run one run, or a pattern of several")

    @abc.abstractmethod
    def validate(self, model, split, length_multiple=4):
        """Scores a split during training.

        Args:
            model: Has a `config`.
            split: One of a dataset's.
            length_multiple: As of `collate`.

        Returns:
            The metrics, `{name: value}`, and the score that weights are chosen by, the higher the better.
        """

    @abc.abstractmethod
    def measure(self, model, dataset, split, run, baselines=True, progress=iter, length_multiple=4, **options):
        """Scores a split as a record of `results/measured` has it.

        Args:
            model, dataset: Of the run; the dataset may be another one.
            split: Name of a split.
            run: A `engine.run.Run`.
            baselines: Measure the baselines too.
            progress: Wraps a list of batches, to show how far it is.
            length_multiple: As of `collate`.
            **options: See `options`.

        Returns:
            A dict ready for JSON: `metrics`, `counts`, and what else the task says, as `baselines`.
        """

    def metrics_by(self, model, dataset, split, groupings, progress=iter, length_multiple=4):
        """Scores groups of a split's examples by some of `groupings`, none here; arguments as of `measure`.

        Returns:
            `{grouping: [{"group", "examples", "metrics"}]}`, groups in the order in which a plot shows them.
        """
        return {}

    @abc.abstractmethod
    def describe(self, record):
        """The title and the caption, or `None`, of the table of a record that `measure` returned."""

    def show(self, record):
        """What is printed below that table; nothing here."""
        return ""

    # === Use ===

    def examples(self, dataset, count=3, split="dev"):
        """Some examples of a split for people to try; a run keeps some of dev.

        Args:
            dataset: What `load_dataset` returned.
            count: At most so many, at equal distances.
            split: Name of the split.

        Returns:
            List of `{"title": text, "instance": instance}`, instances as the task's predictor takes them;
            none where the dataset has no texts.
        """
        return []

    def examples_to_explain(self, dataset, count, split):
        """As `examples`, for pictures of attention."""
        return self.examples(dataset, count, split)

    @abc.abstractmethod
    def predictor(self, run):
        """A `engine.predictor.Predictor` of the best model of a `engine.run.Run`; a broken run is a `UserError`."""

    def export_inputs(self, instance):
        """The arguments of `export_call` for an instance: `{name: nested lists of texts}`, a batch of one."""
        return {name: [value] for name, value in instance.items()}

    @abc.abstractmethod
    def export_archive(self, run, model, vocabulary, **options):
        """A `keras.export.ExportArchive` of a `engine.run.Run`'s model: endpoints that take raw strings.

        The model has its best weights, in float32; options are those of `export_options`, a wrong one is a `UserError`.
        """
