"""Dialog with a list of responses: which of all candidates does the bot give next?

Letters: B dialogs   T turns   C candidates
"""

import dataclasses
import pathlib

import keras
import numpy as np
from keras import ops

from base.files import UserError, atomic_file
from data.batching import batches_by_size
from engine.parallel import in_order
from engine.runs import with_decided
from metrics.dialog import (
    METRICS,
    dialog_metrics,
    nearest_neighbour,
    reachable_by_seen,
    reachable_by_types,
    tfidf_match,
)
from tasks.dialog.dataset import load_dataset
from tasks.dialog.prepare import Settings, prepare

SAMPLE = pathlib.Path("build/sample-dialog")
WORDS = 16  # the room for a sentence is a multiple of this, and so is every padded batch
LOSSES = ("softmax", "margin")

PERFECT = 1.0  # no figure of `validate` is better
FIT = {"epochs": 20.0, "batch_size": 8, "learning_rate": 2e-3}
"""What `engine.training.Fit` starts from here. The batch size counts dialogs, with all their turns."""


@dataclasses.dataclass(frozen=True)
class Training:
    """How a dialog model is trained."""

    loss: str = "softmax"
    """`softmax` over all candidates, or the `margin` ranking loss of Bordes et al., against every candidate that
    comes within the margin of the right one."""
    margin: float = 0.1
    """Of the margin loss."""
    gradient_clip: float = 10.0
    """Gradients are scaled down to this global norm; 0: not at all."""
    decay: float = 0.1
    """The learning rate falls evenly to this share of its start over the epochs; 1: not at all."""
    validations_per_epoch: float = 0.5
    patience: int = 0
    """Stops after so many validations without a better figure; 0: never."""

    def __post_init__(self):
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {LOSSES}. Received: loss={self.loss!r}")
        if self.validations_per_epoch <= 0:
            raise ValueError(
                f"validations_per_epoch must be above 0. Received: validations_per_epoch={self.validations_per_epoch}"
            )


RELEASE = {}


# === Data ===


def prepare_sample():
    """Makes the embedded sample of simulated conversations and prepares it, once.

    Returns:
        The prepared directory, `build/sample-dialog/prepared/task1`.
    """
    prepared = SAMPLE / "prepared"
    if not prepared.is_dir():
        from data.samples.dialog import write_babi

        if not (SAMPLE / "raw").is_dir():
            write_babi(SAMPLE / "raw")
        prepare("babi-dialog", SAMPLE / "raw", prepared, Settings(name="sample"))
    return prepared / "task1"


def keep_for_run(dataset, path):
    """Puts into a run what a bot needs to know to talk."""
    dataset.world.save(dataset.path, path)


def dataset_of(run, path=None):
    """The dataset of a run, or another one in its place.

    Raises:
        UserError: where it is missing or malformed.
    """
    return load_dataset(path or run.config["dataset"]["path"])


def check_fits(config, dataset):
    """Refuses a dataset of another world than the model's.

    Raises:
        UserError: where the sizes differ.
    """
    check_world(config, dataset.world, dataset.path)


def check_world(config, world, path):
    """Refuses a world of other sizes than the model's; `path` is where it came from."""
    for name, size in _sizes(world).items():
        if getattr(config, name) != size:
            raise UserError(
                f"{path}: the run has {name} {getattr(config, name)}, here it is {size}: they differ in origin"
            )


def start_chat(run):
    """A conversation with the model of a run."""
    from tasks.dialog.chat import Chat

    return Chat(run)


# === Model ===


def _sizes(world):
    members, _, groups = world.match_groups
    words = world.encoded_candidates.words
    return {
        "vocabulary_size": len(world.vocabulary),
        "candidates": (len(words), int((words != 0).sum())),
        "entities": len(world.entities),
        "types": len(world.types),
        "candidate_entities": world.encoded_candidates.entities.shape,
        "match_groups": members.shape,
        "match_candidates": groups.shape,
    }


def model_settings(dataset, settings):
    """The model's settings with what the dataset decides filled in.

    Raises:
        UserError: where the settings contradict the dataset.
    """
    longest = max(dataset.splits["train"].sentences.words.shape[1], dataset.world.encoded_candidates.words.shape[1])
    decided = {**_sizes(dataset.world), "max_words": -(-longest // WORDS) * WORDS}
    return with_decided(settings, decided, dataset.path)


def initialise(model, dataset, training):
    """Puts the candidates into a fresh model."""
    set_world(model, dataset.world)


def set_world(model, world):
    """Gives a model the candidates of a world, and the entities in them."""
    candidates = world.encoded_candidates
    words = candidates.typed_words if "typed_words" in model.config.reads else candidates.words
    rows, columns = np.nonzero(candidates.words)
    tables = {
        "candidate_words": lambda: [words[rows, columns]],
        "candidate_rows": lambda: [rows],
        "match_types": lambda: world.match_groups,
        "entity_pointer": lambda: [candidates.entities],
    }
    for layer in model.layers:
        if layer.name in tables:
            trained = layer.trainable_variables
            layer.set_weights([*(np.asarray(v) for v in trained), *tables[layer.name]()])


def optimizer(training, learning_rate, steps):
    """Adam, whose learning rate falls evenly over the `steps` of the whole training."""
    schedule = keras.optimizers.schedules.PolynomialDecay(
        learning_rate, max(steps, 1), end_learning_rate=learning_rate * training.decay
    )
    return keras.optimizers.Adam(schedule, global_clipnorm=training.gradient_clip or None)


def loss(training):
    """The loss function that a `Training` names: a mean over the real turns of a batch."""
    if training.loss == "softmax":
        return softmax_loss
    return lambda answers, logits: margin_loss(answers, logits, training.margin)


def softmax_loss(answers, logits):
    """`-log` of the share of the right candidate among all, averaged over the turns that are real.

    Args:
        answers: Int `(B, T)`, -1 for padding.
        logits: Float `(B, T, C)`.

    Returns:
        Float32 scalar.

    >>> loss = softmax_loss(np.array([[1, -1]]), np.log([[[1.0, 3.0], [9.0, 9.0]]]))
    >>> round(float(ops.exp(-loss)), 3)
    0.75
    """
    real, answers = _real(answers)
    each = ops.sparse_categorical_crossentropy(answers, ops.cast(logits, "float32"), from_logits=True)
    return ops.sum(each * real) / ops.maximum(ops.sum(real), 1.0)


def margin_loss(answers, logits, margin):
    """`sum_y max(0, margin - f(x, right) + f(x, y))` over all wrong `y`, averaged over the turns that are real."""
    real, answers = _real(answers)
    right = ops.take_along_axis(logits, answers[:, :, None], axis=2)
    each = ops.sum(ops.relu(margin - right + logits), axis=2) - margin
    return ops.sum(each * real) / ops.maximum(ops.sum(real), 1.0)


def _real(answers):
    answers = ops.cast(answers, "int32")
    return ops.cast(answers >= 0, "float32"), ops.maximum(answers, 0)


def training_batches(split, config, training, batch_size, rng):
    """One epoch of batches, each the numbers of some dialogs of like size."""
    return batches_by_size(split.sizes, batch_size, rng)


def collate(split, config, batch, multiple):
    """Turns numbers of dialogs into the model's `(inputs, answers)`."""
    return split.collate(batch, config.reads, config.entities, multiple)


# === Scoring ===


def predict(model, split, config, batch_size=32, progress=iter):
    """The candidate that a model gives at each turn, the best over the whole list.

    Returns:
        Int `(responses,)`, dialog by dialog as in `split.answers`.
    """
    first = np.searchsorted(split.dialog, np.arange(len(split)))
    predicted = np.zeros(len(split.answers), np.int32)
    batches = batches_by_size(split.sizes, batch_size)

    def best_of(rows):
        inputs, answers = split.collate(rows, config.reads, config.entities)
        return answers, np.argmax(np.asarray(model.predict_on_batch(inputs)), axis=2)

    for rows, (answers, best) in zip(progress(batches), in_order(best_of, batches, model), strict=True):
        for row, real, chosen in zip(rows, answers >= 0, best, strict=True):
            predicted[first[row] : first[row] + real.sum()] = chosen[real]
    return predicted


def validate(model, split, config):
    """The figures of a split, and the one that checkpoints are chosen by: per response."""
    metrics = dialog_metrics(predict(model, split, config), split.answers, split.dialog)
    return metrics, metrics["per_response"]


# === Figures ===

OPTIONS = ("scores_out",)
HEADLINE = METRICS
NAMES = {"memma": "MEMMA", "entity-memma": "Entity MEMMA", "memn2n": "MemN2N", "memr": "MEMR"}


def measure(model, dataset, split, run, baselines=True, progress=iter, scores_out=None):
    """The figures of a model on a split.

    Args:
        model, dataset: As of `predict`.
        split: Name of a split.
        run: The `engine.runs.Run` of the model.
        baselines: Measure the baselines and upper bounds too.
        progress: Wraps the list of batches.
        scores_out: File for what the model said, `dialog TAB said TAB right` a line.

    Returns:
        The record: metrics, counts, baselines and upper bounds.
    """
    examples = dataset.splits[split]
    predicted = predict(model, examples, model.config, progress=progress)
    record = {
        "metrics": dialog_metrics(predicted, examples.answers, examples.dialog),
        "counts": {"dialogs": len(examples), "responses": len(examples.answers)},
    }
    if baselines:
        record |= baselines_and_upper_bounds(dataset, split)
    if scores_out:
        texts = dataset.world.candidates
        with atomic_file(scores_out) as file:
            for row in zip(examples.dialog, predicted, examples.answers, strict=True):
                file.write(f"{row[0] + 1}\t{texts[row[1]]}\t{texts[row[2]]}\n")
    return record


def baselines_and_upper_bounds(dataset, split):
    """What needs no model: baselines, and the shares that trained responses and match types can reach.

    Returns:
        `{"baselines": {name: metrics}, "upper_bounds": {name: metrics}}`; see `metrics.dialog`.
    """
    world = dataset.world
    candidates = [row[row > 0].tolist() for row in world.encoded_candidates.words]
    train, test = dataset.splits["train"], dataset.splits[split]
    contexts, inputs = _texts_of(test)
    _, train_inputs = _texts_of(train)
    train_texts = [row[row > 0].tolist() for row in train.sentences.words[_used(train)]]
    ids = {word: id for id, word in enumerate(world.vocabulary.words, 1)}
    type_of = {
        ids[name]: world.types.index(type)
        for name, type, source in world.entities
        if source == "knowledge" and name in ids
    }
    gold = test.answers
    seen = reachable_by_seen(train.answers, gold)
    typed = reachable_by_types(train.answers, gold, candidates, type_of, [set(words) for words in contexts])

    def figures(predicted):
        return dialog_metrics(predicted, gold, test.dialog)

    return {
        "baselines": {
            "TF-IDF match": figures(tfidf_match(train_texts, contexts, candidates)),
            "nearest neighbour": figures(nearest_neighbour(train_inputs, train.answers, inputs)),
        },
        "upper_bounds": {
            "seen responses": figures(np.where(seen, gold, -1)),
            "match types": figures(np.where(typed, gold, -1)),
        },
    }


def _used(split):
    return np.unique(np.concatenate([dialog["sentences"] for dialog in split.dialogs]))


def _texts_of(split):
    """The words of each turn's whole conversation so far, and of its user's sentence."""
    words = [row[row > 0].tolist() for row in split.sentences.words]
    contexts, inputs = [], []
    for dialog in split.dialogs:
        for turn in dialog["turns"]:
            contexts.append([id for sentence in dialog["sentences"][: turn + 1] for id in words[sentence]])
            inputs.append(words[dialog["sentences"][turn]])
    return contexts, inputs


def describe(record):
    """What a table's title and caption say of a record."""
    counts = record["counts"]
    return f"{counts['dialogs']:,} dialogs, {counts['responses']:,} responses", None


def name_of(run):
    """What a table calls the model: its name, its features, and where else it differs from the default."""
    settings = run.config["settings"]
    name = NAMES.get(run.config["model"], run.config["model"].replace("-", " ").capitalize())
    name = "Gated " + name if settings.get("gated") else name
    features = [label for label in ("speaker", "time", "match_types") if settings.get(label)]
    notes = []
    if run.config["model"] not in ("supervised-embeddings", "entity-memma") and features != ["speaker", "time"]:
        notes.append(" + ".join(features).replace("_", " ") or "no features")
    if run.config["model"] == "supervised-embeddings" and features:
        notes.append("match types")
    if not settings["train_embedding"]:
        notes.append("fixed word vectors")
    if settings.get("shortcut", "gated") != "gated":
        notes.append(f"shortcut {settings['shortcut']}")
    if settings.get("divisor", "dimension") != "dimension":
        notes.append(f"divisor {settings['divisor']}")
    return ", ".join([name, *notes])
