"""Search for replies: greedy search, beams, sampling, reranking.

Letters: R sources   S source words   T target words   K replies to a source   L words of a reply
"""

import functools

import numpy as np
from keras import KerasTensor, ops

from colloquy.base.config import make_config, parse_assignments
from colloquy.base.files import UserError
from colloquy.data.batching import batches_by_size
from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, UNK_ID
from colloquy.engine.devices import choose_xla
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.engine.run import Run
from colloquy.layers.masking import LOWEST
from colloquy.models.decoding import INPUTS, Decoder, Decoding
from colloquy.tasks.generation.data import MAX_SOURCE, GenerationSplit
from colloquy.tasks.generation.scoring import likelihood


def columns(decodings):
    """The `INPUTS` of a search for sources with a `Decoding` each: `{field: (B, 1)}`.

    >>> columns([Decoding(min_length=5), Decoding()])["min_length"].tolist()
    [[5], [0]]
    """
    return {
        name: np.array([[getattr(d, name)] for d in decodings], dtype)
        for name, dtype in INPUTS.items()
    }


def reply(model, sources, decoding, batch_size=64, seed=1, progress=iter, length_multiple=4):
    """Writes replies to `R` sources, `data.sequences.Sequences`; `seed` is that of sampling.

    Returns ids, int32 `(R, K, L)`, the best reply first, and the scores that they are ranked by,
    float32 `(R, K)`. Lengths of sources are rounded up to `length_multiple`; `progress` wraps the
    list of batches.
    """
    shape = len(sources), decoding.beam, decoding.max_length
    ids, scores = np.zeros(shape, np.int32), np.zeros(shape[:2], np.float32)
    noise = np.random.default_rng(seed).random(shape, np.float32) if decoding.sample else None
    decoder = decoder_of(model, *kind_of(decoding))

    def inputs_of(rows):
        source = sources.padded(rows, sources.width(rows, MAX_SOURCE, length_multiple), MAX_SOURCE)
        inputs = {"source": source, **columns([decoding] * len(rows))}
        return inputs if noise is None else {**inputs, "noise": noise[rows]}

    batches = batches_by_size(sources.lengths[:, None], batch_size)
    for rows, found in results_of(decoder.predict_on_batch, inputs_of, batches, progress=progress):
        ids[rows], scores[rows] = found
    return ids, scores


def kind_of(decoding, room=0):
    """The kind of a compiled search: beam, room for a reply, whether it samples, whether against an
    empty source.
    """
    return (
        decoding.beam,
        max(room, decoding.max_length),
        decoding.sample,
        decoding.against_empty > 0,
    )


def decoder_of(model, beam, room, sample, against):
    """A compiled `models.decoding.Decoder` of one kind, see `kind_of`; by XLA if the model is."""
    decoder = Decoder(model, beam, room, EOS_ID, UNK_ID, against)
    decoder.jit_compile = model.jit_compile
    inputs = {name: KerasTensor((None, 1), dtype) for name, dtype in INPUTS.items()}
    inputs["source"] = KerasTensor((None, None), "int32")
    if sample:
        inputs["noise"] = KerasTensor((None, beam, room), "float32")
    compile_for_all_sizes(decoder, inputs)
    return decoder


def rerank(reverse, sources, ids, scores, weight=0.5):
    """Sorts replies by `(1 - weight) log p(reply | source) + weight log p(source | reply)` (Li et
    al. 2016, eq. 13, "MMI-bidi"): replies that would answer anything come last. The first term is
    the score of `reply`.

    `reverse` is a model trained with `reverse=true`; the others are the sources of `reply` and its
    result. Returns the ids in the new order, and the sums above.
    """
    R, K, _ = ids.shape
    replies = [
        [*each[(each != PADDING_ID) & (each != EOS_ID)], EOS_ID] for each in ids.reshape(R * K, -1)
    ]
    pairs = GenerationSplit(
        Sequences.of(replies), sources.take(np.repeat(np.arange(R), K)), reverse.begin_id
    )
    sums = (1 - weight) * scores - weight * likelihood(reverse, pairs).reshape(R, K)
    scores = np.where(scores > LOWEST, sums, LOWEST)  # where the search found fewer than K
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(ids, order[..., None], axis=1), np.take_along_axis(
        scores, order, axis=1
    )


def load_reverse(path, vocabulary):
    """Loads the reverse model of a run; one of another model or vocabulary is a `UserError`."""
    run = Run.open(path)
    if run.model != "seq2seq" or not run.config.reverse:
        raise UserError(
            f"{path}: expected a run trained with --set reverse=true. Received: {run.model}"
        )
    if run.vocabulary.words != vocabulary.words:
        raise UserError(
            f"{path}: expected the vocabulary of the model that writes the replies. Received: another"
        )
    model = run.load_model()
    choose_xla(model, "auto")
    return model


def attention(model, source, ids):
    """Attention over a source, a list of ids, at each word of a reply, int `(L,)`: rows of floats,
    `_EOS_` included; empty for a model without attention."""
    words = ids[ids != PADDING_ID].tolist()
    states, cache = model.encode(np.array([source], np.int32))
    rows = []
    for before in [model.begin_id, *words[:-1]]:
        _, states, weights = model.step(np.array([before], np.int32), states, cache)
        rows += [] if weights is None else ops.convert_to_numpy(weights).tolist()
    return rows


def words_of(ids, vocabulary):
    """The words of a reply, int `(L,)`, without `_EOS_` and padding."""
    return [vocabulary.words[id - 1] for id in ids.tolist() if id not in (PADDING_ID, EOS_ID)]


@functools.lru_cache(maxsize=64)
def parse_decoding(text, name="--decode"):
    """Makes a `Decoding` of `field=value,...`; a `UserError` on anything else, which calls it
    `name`.
    """
    assignments = [part.strip() for part in (text or "").split(",") if part.strip()]
    return make_config(Decoding, parse_assignments(assignments, name), f"{name}: ")


def decoding_text(decoding):
    """The fields in which a `Decoding` differs from greedy search, as `parse_decoding` takes them.

    >>> decoding_text(parse_decoding("beam=5,block_ngrams=3")), decoding_text(Decoding())
    ('beam=5, block_ngrams=3', '')
    """
    default = Decoding()
    return ", ".join(
        f"{name}={value}" for name, value in decoding if value != getattr(default, name)
    )
