"""Response generation: which words answer what was said?

Letters: B pairs   S source words   T target words   K replies to a source   L words of a reply   V words
"""

import dataclasses
import pathlib

import keras
import numpy as np
from keras import ops

from base.files import UserError, atomic_file
from data.batching import batches_by_size
from engine.optimizers import TwoRateAdam
from engine.runs import Run, with_decided
from layers.masking import mask_from_ids
from metrics.generation import METRICS, baselines_of, by_source, generation_metrics, perplexity
from tasks.generation.batches import LENGTHS, view
from tasks.generation.dataset import load_dataset
from tasks.generation.likelihood import likelihood, word_nll
from tasks.generation.prepare import Settings, prepare
from tasks.generation.search import parse_decoding, reply, rerank, search_of, words_of

SAMPLE = pathlib.Path("build/sample-generation")
PERFECT = 1.0  # of one by the perplexity
FIT = {"epochs": 10.0, "batch_size": 64, "learning_rate": 1e-3}
"""What `engine.training.Fit` starts from here."""
RELEASE = {}


@dataclasses.dataclass(frozen=True)
class Training:
    """How a generation model is trained."""

    label_smoothing: float = 0.0
    """Share of a word's probability that is to be spread over all words (Szegedy et al. 2016)."""
    decoder_rate: float = 1.0
    """The decoder's learning rate by that of the rest."""
    decay: float = 0.1
    """Share of the learning rate that is left at the end; it falls evenly."""
    gradient_clip: float = 5.0
    """Gradients are scaled down to this global norm; 0: not at all."""
    validations_per_epoch: float = 1.0
    patience: int = 0
    """Stops after so many validations without a better figure; 0: never."""

    def __post_init__(self):
        for field in ("label_smoothing", "decay"):
            if not 0 <= getattr(self, field) <= 1:
                raise ValueError(f"{field} must be in [0, 1]. Received: {field}={getattr(self, field)}")
        for field in ("decoder_rate", "validations_per_epoch"):
            if getattr(self, field) <= 0:
                raise ValueError(f"{field} must be above 0. Received: {field}={getattr(self, field)}")


# === Data ===


def prepare_sample():
    """Makes the embedded sample of simulated conversations and prepares it, once.

    Returns:
        The prepared directory, `build/sample-generation/prepared`.
    """
    prepared = SAMPLE / "prepared"
    if not prepared.is_dir():
        from data.samples.generation import write_conversations

        if not (SAMPLE / "raw").is_dir():
            write_conversations(SAMPLE / "raw")
        prepare("conversations", SAMPLE / "raw", prepared, Settings(name="sample-chat", tokenizer="words", turns=2))
    return prepared


def keep_for_run(dataset, path):
    """Nothing: the vocabulary is in the run, the rest in its `config.json`."""


def dataset_of(run, path=None):
    """The dataset of a run, or another one in its place.

    Raises:
        UserError: where it is missing or malformed.
    """
    return load_dataset(path or run.config["dataset"]["path"])


def check_fits(config, dataset):
    """Refuses a dataset that was prepared with other words than the model's.

    Raises:
        UserError: where the sizes differ.
    """
    words = len(dataset.vocabulary)
    if config.vocabulary_size != words:
        raise UserError(f"{dataset.path}: the run has vocabulary_size {config.vocabulary_size}, the dataset {words}")


def start_chat(run):
    """A conversation with the model of a run."""
    from tasks.generation.chat import Chat

    return Chat(run)


# === Model ===


def model_settings(dataset, settings):
    """The model's settings with what the dataset decides filled in.

    Raises:
        UserError: where the settings contradict the dataset.
    """
    decided = {"vocabulary_size": len(dataset.vocabulary)}
    if dataset.vectors is not None:
        decided["embedding_dim"] = dataset.vectors.shape[1]
    return with_decided(settings, decided, dataset.path)


def initialise(model, dataset, training):
    """Puts the dataset's word vectors, where it has some, into a fresh model."""
    if dataset.vectors is None:
        return
    for name in {"word_embedding", "word_embedding" if model.config.shared_embedding else "source_embedding"}:
        [table] = model.get_layer(name).get_weights()
        model.get_layer(name).set_weights([np.concatenate([dataset.vectors, table[len(dataset.vectors) :]])])


def optimizer(training, learning_rate, steps):
    """Adam, whose learning rate falls evenly over the `steps` of the whole training."""
    schedule = keras.optimizers.schedules.PolynomialDecay(
        learning_rate, max(steps, 1), end_learning_rate=learning_rate * training.decay
    )
    clip = training.gradient_clip or None
    return TwoRateAdam(schedule, global_clipnorm=clip, decoder_rate=training.decoder_rate)


def loss(training):
    """The mean negative log-likelihood of a batch's words, padding left out, each word with the same weight.

    Returns:
        Function of targets, int `(B, T)`, and logits, float `(B, T, V)`, that returns float32 `(B,)`: the mean over
        these is that over all words.
    """

    def word_loss(target, logits):
        target = ops.cast(target, "int32")
        real = ops.cast(mask_from_ids(target), "float32")
        nll = word_nll(target, logits, training.label_smoothing)
        words = ops.maximum(ops.sum(real), 1.0)
        return ops.sum(nll, axis=1) * ops.cast(ops.shape(target)[0], "float32") / words

    return word_loss


def training_batches(split, config, training, batch_size, rng):
    """One epoch of batches, each the numbers of some pairs of like size."""
    return batches_by_size(_sizes(split, config), batch_size, rng)


def collate(split, config, batch, multiple):
    """Turns a batch of `training_batches` into the model's `(inputs, target)`."""
    return view(split, config).collate(batch, multiple, **LENGTHS)


def _sizes(split, config):
    return view(split, config).sizes[:, ::-1]  # the target's length costs most


# === Scoring ===


def validate(model, split, config):
    """The perplexity of a split, and the figure that checkpoints are chosen by: one by it."""
    nll, words = likelihood(model, split, config)
    figure = perplexity(float(nll.sum(dtype=np.float64)), int(words.sum()))
    return {"perplexity": figure}, 1.0 / figure


# === Figures ===

SAMPLES = 12
"""Pairs whose replies a record shows."""
OPTIONS = ("scores_out", "decode", "reverse_run", "reverse_weight")
HEADLINE = METRICS


def measure(
    model,
    dataset,
    split,
    run,
    baselines=True,
    progress=iter,
    scores_out=None,
    decode=None,
    reverse_run=None,
    reverse_weight=0.5,
):
    """The figures of a model on a split.

    Perplexity is that of all pairs. The other figures compare the reply to each pair's source with its target, and
    once more without the pairs that stand in train (`unseen`), where memory does not help.

    Args:
        model, dataset: As of `reply`.
        split: Name of a split.
        run: The `engine.runs.Run` of the model.
        baselines: Measure the baselines too, see `metrics.generation.baselines_of`.
        progress: Wraps the list of batches.
        scores_out: File for the replies: source, target and reply in each line, parted by tabs, turns of a source by
            ` / `.
        decode: How replies are looked for, see `parse_decoding`.
        reverse_run: Run directory of a reverse model, which chooses among the replies found: see `rerank`.
        reverse_weight: As of `rerank`.

    Raises:
        UserError: where `reverse_run` is not one.

    Returns:
        The record: metrics, parts, counts, decoding, baselines, and the replies to `SAMPLES` pairs: the first, the last
        and those at equal distances between.
    """
    decoding, reverse = parse_decoding(decode), reverse_run and _reverse_model(reverse_run, dataset)
    nll, words = likelihood(model, dataset.splits[split], model.config)
    examples = view(dataset.splits[split], model.config)
    rows, _ = by_source(examples.source_texts, examples.target_texts)
    place = {examples.source_texts[row]: at for at, row in enumerate(rows)}
    ids, scores = reply(model, examples, rows, decoding, progress=progress)
    if reverse:
        ids, _ = rerank(reverse, examples, np.asarray(rows), ids, scores, reverse_weight)
    texts = [" ".join(words_of(best, dataset.vocabulary)) for best in ids[:, 0]]
    replies = [texts[place[source]] for source in examples.source_texts]  # the same source has the same reply
    if scores_out:
        with atomic_file(scores_out) as file:
            for source, target, text in zip(examples.source_texts, examples.target_texts, replies, strict=True):
                file.write("\t".join(each.replace("\t", " / ") for each in (source, target, text)) + "\n")

    def figures(chosen):
        return {
            "perplexity": perplexity(float(nll[chosen].sum(dtype=np.float64)), int(words[chosen].sum())),
            **generation_metrics([replies[i] for i in chosen], [[examples.target_texts[i]] for i in chosen]),
        }

    whole, unseen = np.arange(len(examples)), np.flatnonzero(~examples.seen)
    record = {
        "metrics": figures(whole),
        "parts": {"without the pairs of train": figures(unseen)} if 0 < len(unseen) < len(whole) else {},
        "counts": {"pairs": len(whole), "unseen": len(unseen), "sources": len(rows), "words": int(words.sum())},
        "decoding": dataclasses.asdict(decoding) | ({"reverse_weight": reverse_weight} if reverse_run else {}),
        "search": search_of(decoding) + (", reranked" if reverse else ""),
        "unit": dataset.tokenizer,
        "samples": [
            {"source": examples.source_texts[i], "target": examples.target_texts[i], "reply": replies[i]}
            for i in np.unique(np.linspace(0, len(examples) - 1, SAMPLES).astype(int))
        ],
    }
    if baselines:
        train = view(dataset.splits["train"], model.config).target_texts
        record["baselines"] = baselines_of(train, examples.source_texts, examples.target_texts)
    return record


def describe(record):
    """What a table's title and caption say of a record."""
    c = record["counts"]
    return (
        f"{c['pairs']:,} pairs, {c['unseen']:,} of them not in train; {record['search']}",
        f"Perplexity is per token of the tokenizer {record['unit']}, the end of a target included; "
        "BLEU by sacrebleu on these tokens, one reference a pair.",
    )


def name_of(run):
    """What a table calls the model."""
    settings = run.config["settings"]
    attention = settings["attention"].replace("_", " ").replace("none", "no") + " attention"
    return ", ".join(["Seq2seq", attention, *(["reverse"] * settings["reverse"])])


def _reverse_model(path, dataset):
    run = Run.open(path)
    if run.config["model"] != "seq2seq" or not run.config["settings"]["reverse"]:
        raise UserError(f"{path}: expected a run trained with --set reverse=true. Received: {run.config['model']}")
    model = run.load_model()
    check_fits(model.config, dataset)
    return model
