"""Response selection: which of some candidates continues a conversation?

Letters: B batch   N candidates of a context   T turns   K utterance words   J response words
"""

import dataclasses
import functools
import pathlib

import keras
import numpy as np
from keras import ops

from base.files import UserError, atomic_file
from data.batching import batches_by_size
from data.samples.selection import write_smn
from data.word_vectors import scale_to_norm
from engine.optimizers import LazyAdam
from engine.parallel import in_order
from metrics.baselines import constant_scores, random_scores, tfidf_scores
from metrics.ranking import ranking_metrics
from tasks.selection.dataset import load_dataset
from tasks.selection.prepare import Settings, prepare

NEGATIVES = ("file", "fresh")
POOL = 256  # training batches sorted by size together, see `data.batching.batches_by_size`
CANDIDATES = 10  # scored at once against one encoded context

SAMPLE = pathlib.Path("build/sample")

PERFECT = 2.0  # no figure of `validate` is better
FIT = {}
"""What `engine.training.Fit` starts from here: its own defaults."""

__all__ = ["load_dataset"]


def prepare_sample():
    """Makes the embedded sample of simulated conversations and prepares it, once.

    Returns:
        The prepared directory, `build/sample/prepared`.
    """
    prepared = SAMPLE / "prepared"
    if not prepared.is_dir():
        if not (SAMPLE / "raw").is_dir():
            write_smn(SAMPLE / "raw")
        prepare("smn", SAMPLE / "raw", prepared, Settings(name="sample"))
    return prepared


def pointwise_loss(labels, logits, clip=0.0):
    """The paper's loss: `-log p(y | c, r)` of each candidate by itself, averaged.

    Args:
        labels: Float `(B, N)`, 1 right, 0 wrong.
        logits: Float `(B, N)`.
        clip: The loss of a candidate is cut at this, and has no gradient beyond; 0: not at all.

    Returns:
        Float32 `(B,)`.

    >>> float(pointwise_loss(np.array([[1.0, 0.0]]), np.array([[0.0, 20.0]]), clip=10.0)[0])
    5.346573590279973
    """
    loss = ops.binary_crossentropy(labels, logits, from_logits=True)
    return ops.mean(ops.minimum(loss, clip) if clip else loss, axis=-1)


def softmax_loss(labels, logits):
    """`-log` of the share of the right candidate in a softmax over all candidates of its context.

    Args:
        labels: Float `(B, N)`, 1 for the right one, 0 for the others.
        logits: Float `(B, N)`.

    Returns:
        Float32 `(B,)`.
    """
    return ops.categorical_crossentropy(labels, logits, from_logits=True)


LOSSES = ("pointwise", "softmax")


@dataclasses.dataclass(frozen=True)
class Training:
    """How a selection model is trained; the defaults are the DAM release's."""

    negatives: str = "file"
    """`file`: the wrong responses that the file has. `fresh`: drawn anew each epoch from the right
    responses of other training contexts."""
    negatives_per_positive: int = 1
    """How many are drawn; with `negatives=file` the file decides."""
    loss: str = "pointwise"
    """`pointwise` or `softmax`, see `LOSSES`."""
    decay_rate: float = 0.9
    """The learning rate is multiplied by this every `decay_steps` steps (staircase)."""
    decay_steps: int = 400
    loss_clip: float = 0.0
    """The pointwise loss of a candidate is cut at this, and has no gradient beyond; 0: not at all.
    The release cuts at 10."""
    gradient_clip: float = 1.0
    """Gradients are clipped by value to [-this, this]; 0: not at all."""
    vector_center: bool = False
    """Subtracts the mean word vector from all before training (Mu and Viswanath 2018). Word2vec on a small corpus
    leaves all vectors on one side, and every match looks alike: two of `ubuntu-irc` have a cosine of 0.49 on average,
    after 5 passes instead of 20 even 0.96."""
    vector_norm: float = 0.0
    """Every word vector is then scaled to this Euclidean length; 0: left as it is."""
    validations_per_epoch: int = 10
    patience: int = 0
    """Stops after so many validations without a better figure; 0: never."""

    def __post_init__(self):
        for field, known in (("negatives", NEGATIVES), ("loss", LOSSES)):
            if getattr(self, field) not in known:
                value = getattr(self, field)
                raise ValueError(f"{field} must be one of {known}. Received: {field}={value!r}")
        for field in ("negatives_per_positive", "validations_per_epoch", "decay_steps"):
            if getattr(self, field) < 1:
                value = getattr(self, field)
                raise ValueError(f"{field} must be at least 1. Received: {field}={value}")


RELEASE = {"loss_clip": 10.0}
"""What `--set compatibility=release` sets here; the other defaults are the release's already."""


# === Model ===


def model_settings(dataset, settings):
    """The model's settings with what the dataset decides filled in.

    Raises:
        UserError: where the settings contradict the dataset's word vectors.
    """
    rows, dimension = dataset.vectors.shape
    decided = {"vocabulary_size": rows - 1, "embedding_dim": dimension}
    for name, value in decided.items():
        if name in settings and str(settings[name]) != str(value):
            raise UserError(
                f"--set {name}={settings[name]} contradicts {dataset.path}: its word vectors have "
                f"shape {dataset.vectors.shape}, so {name} is {value}"
            )
    return {**decided, **settings}


def initialise(model, dataset, training):
    """Puts the dataset's word vectors into a fresh model."""
    vectors = dataset.vectors
    if training.vector_center:
        vectors = vectors - vectors[1:].mean(axis=0)
        # Padding has no vector, and that of an unknown word was the mean already.
        vectors[[0, dataset.eos_id, *([] if dataset.unk_id is None else [dataset.unk_id])]] = 0.0
    if training.vector_norm:
        vectors = scale_to_norm(vectors, training.vector_norm)
    model.get_layer("word_embedding").set_weights([vectors])


def optimizer(training, learning_rate, steps=None):
    """Adam with the release's staircase schedule, `epsilon` 1e-8 as in TensorFlow 1; lazy if the model asks for it."""
    schedule = keras.optimizers.schedules.ExponentialDecay(
        learning_rate, training.decay_steps, training.decay_rate, staircase=True
    )
    return LazyAdam(schedule, epsilon=1e-8, clipvalue=training.gradient_clip or None)


def keep_for_run(dataset, path):
    """What a run needs beside its vocabulary: nothing."""


def dataset_of(run, path=None):
    """The dataset of a run, or another one in its place.

    Args:
        run: A `engine.runs.Run`.
        path: Directory of a prepared dataset; `None`: the one that the run was trained on.

    Raises:
        UserError: where it is missing or malformed, or the run remembers none.
    """
    facts = run.config["dataset"]
    if not (path or facts["path"]):
        raise UserError(f"{run.path} remembers no dataset: give --data")
    return load_dataset(path or facts["path"], facts["eos_id"])


def check_fits(config, dataset):
    """Refuses a dataset that was prepared with another vocabulary than the model's.

    Raises:
        UserError: where the sizes differ.
    """
    expected = (config.vocabulary_size + 1, config.embedding_dim)
    if dataset.vectors.shape != expected:
        raise UserError(
            f"{dataset.path}: the run's word vectors have shape {expected}, the dataset's "
            f"{dataset.vectors.shape}: they come from different preparations"
        )


def loss(training):
    """The loss function that a `Training` names."""
    if training.loss == "softmax":
        return softmax_loss
    return functools.partial(pointwise_loss, clip=training.loss_clip)


# === Training batches ===


def candidate_lists(split, training, rng):
    """One epoch's examples: contexts with their candidates.

    Args:
        split: A `tasks.selection.batches.SelectionSplit`.
        training: A `Training`.
        rng: `numpy.random.Generator` that draws fresh negatives.

    Returns:
        List of `(contexts (E,), responses (E, N), labels (E, N))`, one for each `N` that occurs.

    Raises:
        UserError: where nothing can be drawn or compared.
    """
    if training.negatives == "file" and training.loss == "pointwise":
        lines = np.arange(len(split.label))
        return [(split.context, lines[:, None], split.label[:, None])]
    positives = np.flatnonzero(split.label == 1)
    if not len(positives):
        raise UserError("the training split has no line with label 1")
    if training.negatives == "fresh":
        responses = split.draw_negatives(positives, training.negatives_per_positive, rng)
        return [_with_labels(split, positives, responses)]
    # The file's negatives under a softmax: each positive with all negatives of its context.
    negatives = np.flatnonzero(split.label == 0)
    count = np.bincount(split.context[negatives], minlength=len(split.context_start))
    first = np.cumsum(count) - count
    lists = []
    for n in np.unique(count[split.context[positives]]):
        if n:
            chosen = positives[count[split.context[positives]] == n]
            rows = negatives[first[split.context[chosen]][:, None] + np.arange(n)]
            lists.append(_with_labels(split, chosen, rows))
    if not lists:
        raise UserError("loss=softmax with negatives=file needs contexts with both labels")
    return lists


def _with_labels(split, positives, negatives):
    responses = np.concatenate([positives[:, None], negatives], axis=1)
    labels = np.zeros(responses.shape, np.int32)
    labels[:, 0] = 1
    return split.context[positives], responses, labels


def training_batches(split, config, training, batch_size, rng):
    """One epoch of batches as `(contexts, responses, labels)` index arrays.

    `batch_size` counts contexts with all their candidates.
    """
    batches = []
    for contexts, responses, labels in candidate_lists(split, training, rng):
        sizes = split.sizes(contexts, responses, config.max_turns, config.max_words)
        for rows in batches_by_size(sizes, batch_size, rng, POOL):
            batches.append((contexts[rows], responses[rows], labels[rows]))
    return batches


def collate(split, config, batch, multiple):
    """Turns one index batch into the model's `(inputs, labels)`."""
    contexts, responses, labels = batch
    multiple = multiple * 3 // 2  # poolings take cells by threes: see `layers.match_aggregation`
    return inputs_of(split, config, contexts, responses, multiple), labels.astype(np.float32)


def inputs_of(split, config, contexts, responses, multiple=6):
    """The model's inputs for some contexts and the lines of their candidates: see `SelectionSplit.collate`."""
    cut = config.masking == "exact"  # else padding counts, so all of it must be there
    return split.collate(contexts, responses, config.max_turns, config.max_words, multiple, cut)


# === Scoring ===


def ranking_batches(split, config, pairs=80):
    """Every line of a split once, in batches of contexts with some of their candidates.

    A context's candidates, at most ten at once, stand in order of length, and in two rows where the shorter half is at
    most two thirds as long: what is computed for a batch goes by its longest response, unless padding counts. So the
    rows of a batch also have like lengths: one number of turns by threes, as poolings take them, and of response words
    by sixes, and utterances that are as long as can be had then.

    Args:
        split: A `tasks.selection.batches.SelectionSplit`.
        config: The model's config; its `max_turns` and `max_words` say what is read.
        pairs: The most candidates a batch, over all its contexts.

    Returns:
        List of `(contexts (B,), lines (B, N))`, those of few turns first; line -1: none.
    """
    lengths = np.minimum(split.responses.kept(np.arange(len(split.context))), config.max_words)
    order = np.lexsort((lengths, split.context))
    new = np.diff(split.context[order], prepend=-1) != 0
    start = np.flatnonzero(new)
    column = (np.arange(len(new)) - start[np.cumsum(new) - 1]) % CANDIDATES
    row = np.cumsum(column == 0) - 1
    lines = np.full((row[-1] + 1, CANDIDATES), -1)
    lines[row, column] = order
    lines = lines[:, : column.max() + 1]

    half = -(-lines.shape[1] // 2)
    longest = np.where(lines < 0, 0, lengths[lines])
    apart = (longest[:, half - 1] <= longest.max(axis=1) * 2 / 3) & (lines[:, half:] >= 0).any(axis=1)
    apart &= config.masking == "exact"
    halves = [lines[apart, :half], np.pad(lines[apart, half:], ((0, 0), (0, lines.shape[1] % 2)), constant_values=-1)]
    batches = []
    for rows in (lines[~apart], np.concatenate(halves)):
        if not len(rows):
            continue
        contexts = split.context[rows[:, 0]]
        T, K, J = split.sizes(contexts, rows, config.max_turns, config.max_words).T
        alike = np.stack([-(-T // 3), -(-J // 6)] if config.masking == "exact" else [T * 0])
        order = np.lexsort([K, *alike[::-1]])
        ends = np.flatnonzero(np.diff(alike[:, order]).any(axis=0)) + 1
        for group in np.split(order, ends):
            for chosen in np.array_split(group, -(-len(group) // max(1, pairs // rows.shape[1]))):
                batches.append((contexts[chosen], rows[chosen]))
    return batches


def score(model, split, config, progress=iter):
    """The model's logit for every line of a split; a context is encoded once for up to ten candidates.

    Args:
        model: Takes `{"turns", "responses"}`, returns logits `(B, N)`.
        split, config: As in `ranking_batches`.
        progress: Wraps the list of batches, to show how far it is.

    Returns:
        float32 `(lines,)`, in file order.
    """
    scores = np.zeros(len(split.context), np.float32)
    batches = ranking_batches(split, config)

    def logits_of(batch):
        return np.asarray(model.predict_on_batch(inputs_of(split, config, *batch)))

    for (_, lines), logits in zip(progress(batches), in_order(logits_of, batches, model), strict=True):
        scores[lines[lines >= 0]] = logits[lines >= 0]
    return scores


def validate(model, split, config):
    """The figures of a split, and the one that checkpoints are chosen by: R10@1 + R10@2."""
    metrics = _ranking("dev cannot be scored", score(model, split, config), split).metrics
    return metrics, metrics["R10@1"] + metrics["R10@2"]


def _ranking(where, scores, split, **options):
    """`ranking_metrics` of the first lines of a split, as many as there are scores; `where` begins a message."""
    lines = slice(len(scores))
    try:
        return ranking_metrics(scores, split.label[lines], split.context[lines], **options)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


# === Figures ===

OPTIONS = ("ties", "scores_out", "partial_batches")
HEADLINE = ("R10@1", "MAP")


def measure(
    model, dataset, split, run, baselines=True, progress=iter, ties="loss", scores_out=None, partial_batches="keep"
):
    """The figures of a model on a split.

    Args:
        model: See `score`.
        dataset: A `SelectionDataset`.
        split: Name of a split.
        run: The `engine.runs.Run` of the model.
        baselines: Measure the baselines too.
        progress: Wraps the list of batches.
        ties: See `metrics.ranking.ranking_metrics`.
        scores_out: File for the scores, one a line, `score TAB label`, as DAM's release has them.
        partial_batches: `"keep"` measures every line. `"drop"` leaves out what DAM's release leaves out: the lines
            behind the last whole batch of the run's batch size, and then the context that this cuts short (49,996 of
            Ubuntu's 50,000 contexts and 665 of Douban's 667 remain at 256).

    Returns:
        The record: metrics, counts, baselines and settings.

    Raises:
        UserError: where a context has no right and wrong candidate at all.
    """
    examples = dataset.splits[split]
    scores = score(model, examples, model.config, progress=progress)
    kept = len(scores)
    if partial_batches == "drop":
        kept = whole_batches(examples.context, run.config["fit"]["batch_size"])

    def figures(values):
        return _ranking(f"{dataset.path}, {split}", values[:kept], examples, ties=ties)

    result = figures(scores)
    below = baseline_scores(dataset, split) if baselines else {}
    if scores_out:
        with atomic_file(scores_out) as file:
            pairs = zip(scores[:kept], examples.label[:kept], strict=True)
            file.writelines(f"{score}\t{label}\n" for score, label in pairs)
    return {
        "metrics": result.metrics,
        "counts": {**result.counts, "lines": kept},
        "ties": ties,
        "partial_batches": partial_batches,
        "baselines": {name: figures(values).metrics for name, values in below.items()},
    }


def describe(record):
    """What a table's title and caption say of a record."""
    counts = record["counts"]
    without = counts["without_positive"], counts["without_negative"]
    left_out = "; contexts left out: {} without a positive, {} without a negative".format(*without)
    title = f"{counts['contexts']:,} contexts, {counts['lines']:,} lines"
    return title, f"ties: {record['ties']}" + left_out * any(without)


def name_of(run):
    """What a table calls the model: `DAM full`, `DAM full, release mode`."""
    settings = run.config["settings"]
    mode = ", release mode" if settings.get("masking") == "release" else ""
    return f"{run.config['model'].upper()} {settings.get('variant', '')}".strip() + mode


def whole_batches(context, batch_size):
    """How many lines DAM's release would measure: whole batches, and of these whole contexts.

    Args:
        context: The context of each line, int `(lines,)`.
        batch_size: Lines a batch.

    >>> [whole_batches(np.arange(contexts * 10) // 10, 256) for contexts in (50000, 667)]
    [499960, 6650]
    """
    kept = len(context) // batch_size * batch_size
    cut_short = 0 < kept < len(context) and context[kept - 1] == context[kept]
    return int(np.searchsorted(context, context[kept])) if cut_short else kept


def baseline_scores(dataset, split, seed=0):
    """Scores of the three baselines on a split: `{name: (lines,)}`."""
    train, test = dataset.splits["train"], dataset.splits[split]
    positives = np.flatnonzero(train.label == 1)
    contexts, responses = train.texts(positives, dataset.eos_id)
    test_contexts, test_responses = test.texts(np.arange(len(test.label)), dataset.eos_id)
    ignore = [] if dataset.unk_id is None else [dataset.unk_id]
    return {
        "random": random_scores(len(test.label), seed),
        "constant": constant_scores(len(test.label)),
        "TF-IDF cosine": tfidf_scores(
            contexts + responses,
            test_contexts,
            test_responses,
            ignore=ignore,
            end_of_turn=dataset.eos_id,
        ),
    }
