"""Reading comprehension: where in a context does the answer to a question stand?

Letters: B questions   T context words   A spans of an answer
"""

import dataclasses
import json
import pathlib

import keras
import numpy as np
from keras import ops

from base.files import UserError, atomic_file
from data.batching import batches_by_size
from engine.parallel import in_order
from engine.runs import with_decided
from layers.masking import masked_logits
from layers.span_search import best_spans
from metrics.reading import METRICS, reading_metrics
from models.bidaf import BiDAFConfig
from tasks.reading_comprehension.dataset import load_dataset
from tasks.reading_comprehension.prepare import Settings, prepare

SAMPLE = pathlib.Path("build/sample-reading")
PERFECT = 1.0  # no figure of `validate` is better
FIT = {"epochs": 12.0, "batch_size": 60, "learning_rate": 1e-3}
"""What `engine.training.Fit` starts from here: the paper's, with Adam's usual rate."""
OPTIMIZERS = ("adam", "adadelta")
RELEASE = {}
MAX_LENGTH = 30  # words of the longest answer that is looked for; 0.03 % of SQuAD's are longer


@dataclasses.dataclass(frozen=True)
class Training:
    """How a reading model is trained."""

    optimizer: str = "adam"
    """`adam`, or the paper's `adadelta`, whose learning rate there is 0.5."""
    ema: float = 0.999
    """Decay of the moving averages of all weights, which validation and evaluation use; 0: none are kept."""
    max_context: int = 400
    """Words of a context that training reads; a question whose answer stands behind them is left out."""
    max_question: int = 30
    """Words of a question that training reads."""
    gradient_clip: float = 5.0
    """Gradients are scaled down to this global norm; 0: not at all."""
    validations_per_epoch: float = 1.0
    patience: int = 0
    """Stops after so many validations without a better figure; 0: never."""

    def __post_init__(self):
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer must be one of {OPTIMIZERS}. Received: optimizer={self.optimizer!r}")
        if not 0 <= self.ema < 1:
            raise ValueError(f"ema must be in [0, 1). Received: ema={self.ema}")
        for field in ("max_context", "max_question", "validations_per_epoch"):
            if getattr(self, field) <= 0:
                raise ValueError(f"{field} must be above 0. Received: {field}={getattr(self, field)}")


# === Data ===


def prepare_sample():
    """Makes the embedded sample of simulated passages and prepares it, once.

    Returns:
        The prepared directory, `build/sample-reading/prepared`.
    """
    prepared = SAMPLE / "prepared"
    if not prepared.is_dir():
        from data.samples.reading_comprehension import write_squad

        if not (SAMPLE / "raw").is_dir():
            write_squad(SAMPLE / "raw")
        prepare("squad", SAMPLE / "raw", prepared, Settings(name="sample-reading"))
    return prepared


def keep_for_run(dataset, path):
    """Puts the characters into a run; its vocabulary is there."""
    dataset.characters.save(path / "characters.txt")


def dataset_of(run, path=None):
    """The dataset of a run, or another one in its place.

    Raises:
        UserError: where it is missing or malformed.
    """
    return load_dataset(path or run.config["dataset"]["path"])


def check_fits(config, dataset):
    """Refuses a dataset that was prepared with other words or characters than the model's.

    Raises:
        UserError: where the sizes differ.
    """
    for name, size in _sizes(dataset).items():
        if getattr(config, name) != size:
            raise UserError(f"{dataset.path}: the run has {name} {getattr(config, name)}, the dataset {size}")


def start_chat(run):
    """Questions to the model of a run."""
    from tasks.reading_comprehension.chat import Chat

    return Chat(run)


# === Model ===


def _sizes(dataset):
    rows, dimension = dataset.vectors.shape
    return {"vocabulary_size": rows - 1, "embedding_dim": dimension, "characters": len(dataset.characters)}


def model_settings(dataset, settings):
    """The model's settings with what the dataset decides filled in.

    Raises:
        UserError: where the settings contradict the dataset.
    """
    decided = _sizes(dataset)
    return with_decided(settings, decided, dataset.path)


def initialise(model, dataset, training):
    """Puts the dataset's word vectors into a fresh model."""
    if model.config.use_words:
        model.get_layer("word_embedding").set_weights([dataset.vectors])


def optimizer(training, learning_rate, steps=None):
    """The optimizer that a `Training` names, with moving averages of the weights."""
    kind = {"adam": keras.optimizers.Adam, "adadelta": keras.optimizers.Adadelta}[training.optimizer]
    average = {"use_ema": True, "ema_momentum": training.ema} if training.ema else {}
    return kind(learning_rate, global_clipnorm=training.gradient_clip or None, **average)


def loss(training):
    """The loss function: `span_loss`."""
    return span_loss


def span_loss(spans, logits):
    """`-log sum_a p1[first_a] p2[last_a]`: the paper's loss, summed over all places where the answer may stand.

    Args:
        spans: First and last words, int `(B, A, 2)`, -1 for padding.
        logits: Of start and end, float `(B, 2, T)`.

    Returns:
        Float32 `(B,)`.

    >>> logits = np.log(np.array([[[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]]], "float32"))
    >>> float(ops.exp(-span_loss(np.array([[[0, 1], [1, 2], [-1, -1]]]), logits)[0]))
    0.28125
    """
    spans = ops.cast(spans, "int32")
    log_p = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    place = ops.maximum(ops.transpose(spans, (0, 2, 1)), 0)  # (B, 2, A)
    each = ops.sum(ops.take_along_axis(log_p, place, axis=2), axis=1)
    return -ops.logsumexp(masked_logits(each, spans[..., 0] >= 0), axis=-1)


def training_batches(split, config, training, batch_size, rng):
    """One epoch of batches, each the numbers of some questions of like size with what is read of them."""
    ends = np.array([min(last for _, last in spans) for spans in split.spans])
    rows = np.flatnonzero(ends < training.max_context)
    limits = training.max_context, training.max_question
    return [(rows[batch], *limits) for batch in batches_by_size(split.sizes[rows], batch_size, rng)]


def collate(split, config, batch, multiple):
    """Turns a batch of `training_batches` into the model's `(inputs, spans)`."""
    rows, max_context, max_question = batch
    return split.collate(rows, max_context, max_question, 2 * multiple)


# === Scoring ===


def predict(model, split, config, batch_size=60, progress=iter):
    """The best span of each question; nothing is cut.

    Returns:
        First and last words, int `(questions, 2)`, and the sums of their logits, float32 `(questions,)`.
    """
    spans, scores = np.zeros((len(split), 2), np.int32), np.zeros(len(split), np.float32)
    batches = batches_by_size(split.sizes, batch_size)

    def spans_of(rows):
        inputs, _ = split.collate(rows, multiple=8)
        return best_spans(model.predict_on_batch(inputs), MAX_LENGTH)

    for rows, (first, last, score) in zip(progress(batches), in_order(spans_of, batches, model), strict=True):
        spans[rows, 0], spans[rows, 1] = np.asarray(first)[:, 0], np.asarray(last)[:, 0]
        scores[rows] = np.asarray(score)[:, 0]
    return spans, scores


def answers(split, spans):
    """The texts of spans, `{question id: text}`."""
    return {id: split.answer(row, *spans[row]) for row, id in enumerate(split.ids)}


def validate(model, split, config):
    """The figures of a split, and the one that checkpoints are chosen by: F1."""
    spans, _ = predict(model, split, config)
    metrics = reading_metrics(answers(split, spans), dict(zip(split.ids, split.answers, strict=True)))
    return metrics, metrics["F1"]


# === Figures ===

OPTIONS = ("scores_out",)
HEADLINE = METRICS


def measure(model, dataset, split, run, baselines=True, progress=iter, scores_out=None):
    """The figures of a model on a split.

    Args:
        model, dataset: As of `predict`.
        split: Name of a split.
        run: The `engine.runs.Run` of the model.
        baselines: Measure the baselines too: the first words of the context, as many as an answer has in the median.
        progress: Wraps the list of batches.
        scores_out: File for the predictions, `{question id: text}` as the official script reads it.

    Returns:
        The record: metrics, counts and baselines.
    """
    examples = dataset.splits[split]
    spans, _ = predict(model, examples, model.config, progress=progress)
    found = answers(examples, spans)
    if scores_out:
        with atomic_file(scores_out) as file:
            json.dump(found, file, ensure_ascii=False)
    record = record_of(examples, found)
    if baselines:
        length = int(np.median([last - first for spans in examples.spans for first, last in spans]))
        ends = np.minimum(length, examples.contexts.lengths[examples.context] - 1)
        first_words = answers(examples, np.stack([np.zeros_like(ends), ends], axis=1))
        record["baselines"] = {"first words": record_of(examples, first_words)["metrics"]}
    return record


def record_of(split, predictions):
    """The metrics and counts of `{question id: text}` on a split."""
    return {
        "metrics": reading_metrics(predictions, dict(zip(split.ids, split.answers, strict=True))),
        "counts": {"questions": len(split), "contexts": len(set(split.context.tolist()))},
    }


def describe(record):
    """What a table's title and caption say of a record."""
    counts = record["counts"]
    return f"{counts['questions']:,} questions on {counts['contexts']:,} contexts", None


def name_of(run):
    """What a table calls the model: its name, and where it differs from the paper's."""
    settings = run.config["settings"]
    notes = [f"no {name.removeprefix('use_')}" for name in ("use_characters", "use_words") if not settings[name]]
    notes += [f"no {name.upper()}" for name in ("c2q", "q2c") if not settings[name]]
    notes += ["official end pointer"] * (settings["end_pointer"] == "official")
    notes += ["starting as a dot product"] * (settings.get("similarity_start") == "dot")
    size = "" if settings["hidden"] == BiDAFConfig.hidden else f" of {settings['hidden']} units"
    return ", ".join([f"BiDAF{size}", *notes])
