"""Search for replies: greedy search, beams, sampling.

Letters: R sources   K replies to a source   L words of a reply
"""

from typing import NamedTuple

import numpy as np
from keras import KerasTensor, ops

from colloquy.data.batching import batches_by_size
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, UNK_ID
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.models.decoding import INPUTS, Decoder
from colloquy.tasks.generation.data import MAX_SOURCE


class SearchShape(NamedTuple):
    """Sizes and switches that are fixed when a search is compiled; see `models.decoding.decode`."""

    num_beams: int
    reply_length: int
    sample: bool
    anti_lm: bool


def search_shape(decoding, reply_length=0):
    """Returns the `SearchShape` of a `Decoding`, for replies of at least `reply_length` words."""
    return SearchShape(
        num_beams=decoding.beam,
        reply_length=max(reply_length, decoding.max_length),
        sample=decoding.sample,
        anti_lm=decoding.anti_lm_weight > 0,
    )


def decoding_inputs(decodings):
    """Returns the `INPUTS` of a search for sources with a `Decoding` each: `{field: (B, 1)}`.

    >>> from colloquy.models.decoding import Decoding
    >>> decoding_inputs([Decoding(min_length=5), Decoding()])["min_length"].tolist()
    [[5], [0]]
    """
    inputs = {}
    for name, dtype in INPUTS.items():
        inputs[name] = np.array([[getattr(decoding, name)] for decoding in decodings], dtype)
    return inputs


def reply(model, sources, decoding, batch_size=64, progress=iter, length_multiple=4):
    """Writes replies to `R` sources.

    Args:
        model: `models.seq2seq.Seq2Seq`.
        sources: `data.sequences.Sequences` of ids.
        decoding: `Decoding`, the same for all sources.
        batch_size: Sources that are searched together.
        progress: Wraps the list of batches.
        length_multiple: Lengths of sources are rounded up to multiples of it.

    Returns:
        Ids, int32 `(R, K, L)`, the best reply first.
        The scores that they are ranked by, float32 `(R, K)`.
    """
    shape = len(sources), decoding.beam, decoding.max_length
    ids_RKL = np.zeros(shape, np.int32)
    scores_RK = np.zeros(shape[:2], np.float32)
    noise_RKL = None
    if decoding.sample:
        noise_RKL = np.random.default_rng(1).random(shape, np.float32)

    def make_inputs(rows):
        width = sources.width(rows, MAX_SOURCE, length_multiple)
        source = sources.padded(rows, width, MAX_SOURCE)
        inputs = {"source": source, **decoding_inputs([decoding] * len(rows))}
        if noise_RKL is not None:
            inputs["noise"] = noise_RKL[rows]
        return inputs

    decoder = compile_decoder(model, search_shape(decoding))
    batches = batches_by_size(sources.lengths[:, None], batch_size)
    results = results_of(decoder.predict_on_batch, make_inputs, batches, progress=progress)
    for rows, (ids, scores) in results:
        ids_RKL[rows] = ids
        scores_RK[rows] = scores
    return ids_RKL, scores_RK


def compile_decoder(model, shape):
    """Compiles a `models.decoding.Decoder` for searches of a `SearchShape`.

    It is compiled by XLA if the model is.
    """
    decoder = Decoder(model, shape.num_beams, shape.reply_length, EOS_ID, UNK_ID, shape.anti_lm)
    decoder.jit_compile = model.jit_compile
    inputs = {name: KerasTensor((None, 1), dtype) for name, dtype in INPUTS.items()}
    inputs["source"] = KerasTensor((None, None), "int32")
    if shape.sample:
        noise_shape = (None, shape.num_beams, shape.reply_length)
        inputs["noise"] = KerasTensor(noise_shape, "float32")
    compile_for_all_sizes(decoder, inputs)
    return decoder


def attention(model, source, ids):
    """Attention over a source at each word of a reply, `_EOS_` included.

    Args:
        model: `models.seq2seq.Seq2Seq`.
        source: A list of ids.
        ids: The reply, int `(L,)`.

    Returns:
        Rows of floats; none for a model without attention.
    """
    words = ids[ids != PADDING_ID].tolist()
    states, cache = model.encode(np.array([source], np.int32))
    rows = []
    for previous_word in [model.begin_id, *words[:-1]]:
        _, states, weights = model.step(np.array([previous_word], np.int32), states, cache)
        if weights is not None:
            rows += ops.convert_to_numpy(weights).tolist()
    return rows


def words_of(ids, vocabulary):
    """The words of a reply, int `(L,)`, without `_EOS_` and padding."""
    return [vocabulary.words[id - 1] for id in ids.tolist() if id not in (PADDING_ID, EOS_ID)]
