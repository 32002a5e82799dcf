"""Response generation: which words answer what was said?

Letters: B pairs   S source words   T target words   K replies to a source   L words of a reply   V words
"""

import dataclasses
import pathlib

import keras
import numpy as np
from keras import ops

from cli import UserError, atomic_file
from data.batching import batches_by_size
from data.generation_dataset import load_dataset
from data.prepare_generation import Settings, prepare
from data.selection import Sequences
from data.vocabulary import EOS_ID, UNK_ID
from layers.masking import mask_from_ids
from metrics.generation import METRICS, by_source, floors_of, generation_metrics, perplexity
from models.decoding import Decoder, Decoding
from parallel import in_order
from runs import Run, make_config, with_decided

SAMPLE = pathlib.Path("build/sample-generation")
PERFECT = 1.0  # of one by the perplexity
FIT = {"epochs": 10.0, "batch_size": 64, "learning_rate": 1e-3}
"""What `training.Fit` starts from here."""
RELEASE = {}
LENGTHS = {"max_source": 60, "max_target": 50}
"""Ids that a model reads and writes at most."""


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
        from data.simulator_chat import write_conversations

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
    from tasks.generation_chat import Chat

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


class TwoRateAdam(keras.optimizers.Adam):
    """Adam with another learning rate for the decoder and what makes its output a word; not for shared embeddings.

    Args:
        decoder_rate: That of the decoder by that of the rest.
    """

    def __init__(self, *args, decoder_rate=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.decoder_rate = decoder_rate

    def update_step(self, gradient, variable, learning_rate):
        path = getattr(variable, "path", variable.name)  # TensorFlow's own variable has a name alone
        rate = self.decoder_rate if {"decoder", "projection", "logits"} & set(path.split("/")) else 1.0
        super().update_step(gradient, variable, learning_rate * rate)

    def get_config(self):
        return {**super().get_config(), "decoder_rate": self.decoder_rate}


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


def word_nll(target, logits, label_smoothing=0.0):
    """The negative log-likelihood of each word in nats, 0 for padding.

    Args:
        target: Int32 `(B, T)`, 0 = padding.
        logits: Float `(B, T, V)`.
        label_smoothing: As of `Training`.

    Returns:
        Float32 `(B, T)`.

    >>> logits = np.log(np.array([[[0.125, 0.125, 0.75], [1.0, 1.0, 1.0]]], "float32"))
    >>> [round(float(x), 4) for x in ops.exp(-word_nll(np.array([[2, 0]]), logits))[0]]
    [0.75, 1.0]
    """
    logits = ops.cast(logits, "float32")
    nll = ops.sparse_categorical_crossentropy(target, logits, from_logits=True)
    if label_smoothing:
        everywhere = ops.logsumexp(logits, axis=-1) - ops.mean(logits, axis=-1)
        nll = (1 - label_smoothing) * nll + label_smoothing * everywhere
    return ops.where(mask_from_ids(target), nll, 0.0)


def training_batches(split, config, training, batch_size, rng):
    """One epoch of batches, each the numbers of some pairs of like size."""
    return batches_by_size(_sizes(split, config), batch_size, rng)


def collate(split, config, batch, multiple):
    """Turns a batch of `training_batches` into the model's `(inputs, target)`."""
    return _view(split, config).collate(batch, multiple, **LENGTHS)


def _view(split, config):
    """The split, or for a reverse model its targets as sources."""
    if not config.reverse:
        return split
    texts = {"source_texts": split.target_texts, "target_texts": split.source_texts}
    return dataclasses.replace(split, source=split.target, target=split.source, **texts)


def _sizes(split, config):
    return _view(split, config).sizes[:, ::-1]  # the target's length costs most


# === Scoring ===


class Likelihood(keras.Model):
    """The negative log-likelihood of each pair's target under a model: `predict_on_batch` compiles it.

    Call arguments: a dict of the model's inputs and `target`, int32 `(B, T)`.

    Returns:
        Float32 `(B,)`, in nats.
    """

    def __init__(self, model, **kwargs):
        super().__init__(**kwargs)
        self.model = model

    def call(self, inputs):
        logits = self.model({name: inputs[name] for name in ("source", "target_in")}, training=False)
        return ops.sum(word_nll(inputs["target"], logits), axis=1)


def likelihood(model, split, config, batch_size=64):
    """The negative log-likelihood of each pair's target, nothing cut.

    Returns:
        Float32 `(pairs,)`, in nats, and the number of words each has, `_EOS_` included, int `(pairs,)`.
    """
    split, score = _view(split, config), Likelihood(model)
    nll = np.zeros(len(split), np.float32)
    batches = batches_by_size(split.sizes[:, ::-1], batch_size)

    def nll_of(rows):
        inputs, target = split.collate(rows, multiple=4)
        return score.predict_on_batch({**inputs, "target": target})

    for rows, found in zip(batches, in_order(nll_of, batches), strict=True):
        nll[rows] = found
    return nll, split.target.lengths


def validate(model, split, config):
    """The perplexity of a split, and the figure that checkpoints are chosen by: one by it."""
    nll, words = likelihood(model, split, config)
    figure = perplexity(float(nll.sum(dtype=np.float64)), int(words.sum()))
    return {"perplexity": figure}, 1.0 / figure


def reply(model, split, rows, decoding, batch_size=64, seed=1, progress=iter):
    """Writes replies to sources.

    Args:
        model: A `models.seq2seq.Seq2Seq`.
        split: A `data.generation.GenerationSplit`.
        rows: Numbers of its pairs, int `(R,)`.
        decoding: A `models.decoding.Decoding`.
        batch_size: Sources at once.
        seed: Of sampling.
        progress: Wraps the list of batches.

    Returns:
        Ids, int32 `(R, K, L)`, the best reply first, and what they are ranked by, float32 `(R, K)`.
    """
    rows, rng = np.asarray(rows), np.random.default_rng(seed)
    shape = len(rows), decoding.beam, decoding.max_length
    ids, scores = np.zeros(shape, np.int32), np.zeros(shape[:2], np.float32)
    noise = rng.random(shape, np.float32) if decoding.sample else None
    decoder = Decoder(model, decoding, EOS_ID, UNK_ID)
    batches = batches_by_size(split.source.lengths[rows][:, None], batch_size)

    def replies_to(batch):
        inputs, _ = split.collate(rows[batch], multiple=4, **LENGTHS)
        return decoder.predict_on_batch(
            {"source": inputs["source"]} | ({} if noise is None else {"noise": noise[batch]})
        )

    for batch, found in zip(progress(batches), in_order(replies_to, batches), strict=True):
        ids[batch], scores[batch] = found
    return ids, scores


def rerank(reverse, split, rows, ids, scores, weight=0.5):
    """Puts replies in the order of `(1 - weight) log p(reply | source) + weight log p(source | reply)`: against dull
    ones, which answer anything (Li et al. 2016, eq. 13, "MMI-bidi"). The first is what `reply` ranked them by, by the
    length penalty where there is one.

    Args:
        reverse: A model trained with `reverse=true`.
        split, rows: As of `reply`.
        ids, scores: What it returned.
        weight: Lambda, from 0 to 1.

    Returns:
        Both in the new order, scores the sums above.
    """
    R, K, _ = ids.shape
    replies = [[id for id in each.tolist() if id not in (0, EOS_ID)] + [EOS_ID] for each in ids.reshape(R * K, -1)]
    starts, lengths = split.source.starts[rows], split.source.lengths[rows]
    sources = [split.source.ids[start : start + length].tolist() for start, length in zip(starts, lengths, strict=True)]
    pairs = dataclasses.replace(
        split,
        source=Sequences.of([source for source in sources for _ in range(K)]),
        target=Sequences.of(replies),
        source_texts=[],
        target_texts=[],
        seen=np.zeros(R * K, bool),
    )
    nll, _ = likelihood(reverse, pairs, reverse.config)
    scores = (1 - weight) * scores - weight * nll.reshape(R, K)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(ids, order[..., None], axis=1), np.take_along_axis(scores, order, axis=1)


def reply_to(decoder, source, rng):
    """Writes replies to one source.

    Args:
        decoder: A `models.decoding.Decoder`.
        source: Its ids, a list.
        rng: `numpy.random.Generator` for sampling.

    Returns:
        Ids, int32 `(K, L)`, the best reply first, and what they are ranked by, float32 `(K,)`.
    """
    given, d = {"source": np.array([source], np.int32)}, decoder.decoding
    if d.sample:
        given["noise"] = rng.random((1, d.beam, d.max_length), np.float32)
    ids, scores = decoder.predict_on_batch(given)
    return ids[0], scores[0]


def attention(model, source, ids):
    """Where a model looks when it writes a reply.

    Args:
        model: As of `reply`.
        source: Ids of the source, a list.
        ids: Of the reply, int `(L,)`.

    Returns:
        Weights, float32 `(T, S)`, T words of the reply with its `_EOS_`; `None` for a model without attention.
    """
    words = ids[ids != 0].tolist()
    states, fixed = model.encode(np.array([source], np.int32))
    rows = []
    for before in [model.begin_id, *words[:-1]]:
        _, states, weights = model.step(np.array([before], np.int32), states, fixed)
        if weights is None:
            return None
        rows.append(ops.convert_to_numpy(weights)[0])
    return np.stack(rows).astype(np.float32)


def words_of(ids, vocabulary):
    """The words of a reply, without `_EOS_` and padding.

    Args:
        ids: Int `(L,)`.
        vocabulary: A `data.vocabulary.Vocabulary`.
    """
    return [vocabulary.words[id - 1] for id in ids.tolist() if id not in (0, EOS_ID)]


# === Figures ===

SAMPLES = 12
"""Pairs whose replies a record shows."""
OPTIONS = ("scores_out", "decode", "reverse_run", "reverse_weight")
HEADLINE = METRICS


def parse_decoding(text):
    """A `Decoding` of `field=value,...`.

    Raises:
        UserError: where a field is unknown or a value wrong.
    """
    assignments = [part.partition("=") for part in (text or "").split(",") if part]
    for field, equals, _ in assignments:
        if not equals:
            raise UserError(f"--decode expects field=value,... Received: {field!r}")
    return make_config(Decoding, {field.strip(): value for field, _, value in assignments}, "decode")


def _reverse_model(path, dataset):
    run = Run.open(path)
    if run.config["model"] != "seq2seq" or not run.config["settings"]["reverse"]:
        raise UserError(f"{path}: expected a run trained with --set reverse=true. Received: {run.config['model']}")
    model = run.load_model()
    check_fits(model.config, dataset)
    return model


def measure(
    model,
    dataset,
    split,
    run,
    floors=True,
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
        run: The `runs.Run` of the model.
        floors: Measure the floors too, see `metrics.generation.floors_of`.
        progress: Wraps the list of batches.
        scores_out: File for the replies: source, target and reply in each line, parted by tabs, turns of a source by
            ` / `.
        decode: How replies are looked for, see `parse_decoding`.
        reverse_run: Run directory of a reverse model, which chooses among the replies found: see `rerank`.
        reverse_weight: As of `rerank`.

    Raises:
        UserError: where `reverse_run` is not one.

    Returns:
        The record: metrics, parts, counts, decoding, floors, and the replies to `SAMPLES` pairs: the first, the last
        and those at equal distances between.
    """
    decoding, reverse = parse_decoding(decode), reverse_run and _reverse_model(reverse_run, dataset)
    nll, words = likelihood(model, dataset.splits[split], model.config)
    examples = _view(dataset.splits[split], model.config)
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
    if floors:
        train = _view(dataset.splits["train"], model.config).target_texts
        record["floors"] = floors_of(train, examples.source_texts, examples.target_texts)
    return record


def search_of(decoding):
    """A `Decoding` in words.

    >>> search_of(Decoding(beam=5, block_ngrams=3, min_length=10))
    'beam of 5, no 3 words twice, at least 10 words'
    >>> search_of(Decoding(sample=True, top_p=0.9))
    'sampling, top_p 0.9'
    """
    d, default = decoding, Decoding()
    parts = ["sampling" if d.sample else "greedy" if d.beam == 1 else f"beam of {d.beam}"]
    fields = ("temperature", "top_k", "top_p") if d.sample else ()
    for field in (*fields, "length_penalty"):
        if getattr(d, field) != getattr(default, field):
            parts.append(f"{field if field in fields else 'length penalty'} {getattr(d, field):g}")
    if d.block_ngrams:
        parts.append(f"no {d.block_ngrams} words twice")
    if d.min_length:
        parts.append(f"at least {d.min_length} words")
    return ", ".join(parts)


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
