"""The likelihood of targets under a generation model, for its loss and for perplexity.

Letters: B pairs   T target words   V words
"""

import functools

import keras
import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import results_of
from colloquy.layers.masking import mask_from_ids, zero_padding
from colloquy.layers.unpadding import unpadding

# words of a scored batch, at most, unless one target has more: each has a logit for every known
# word
WORDS = 2048


def word_nll(target, logits):
    """The negative log-likelihood of each word in nats, float32 `(B, T)`, 0 for padding.

    `target` is int32 `(B, T)`, 0 = padding, `logits` float `(B, T, V)`, or those of the unpadded
    words, `(R, V)`.

    >>> logits = np.log(np.array([[[0.125, 0.125, 0.75], [1.0, 1.0, 1.0]]], "float32"))
    >>> [round(float(x), 4) for x in ops.exp(-word_nll(np.array([[2, 0]]), logits))[0]]
    [0.75, 1.0]
    """
    mask, logits = mask_from_ids(target), ops.cast(logits, "float32")
    if len(logits.shape) == 3:
        return zero_padding(
            ops.sparse_categorical_crossentropy(target, logits, from_logits=True), mask
        )
    unpad, repad = unpadding(mask)
    words_R = unpad(target[..., None])[:, 0]
    return repad(ops.sparse_categorical_crossentropy(words_R, logits, from_logits=True)[:, None])[
        ..., 0
    ]


def word_loss(target, logits):
    """The loss, float32 `(B,)`, of the arguments of `word_nll`.

    Its mean is that over all words of the batch, each with the same weight, padding left out.
    """
    target = ops.cast(target, "int32")
    words = ops.maximum(ops.sum(ops.cast(mask_from_ids(target), "float32")), 1.0)
    nll = ops.sum(word_nll(target, logits), axis=1)
    return nll * ops.cast(ops.shape(target)[0], "float32") / words


@functools.lru_cache(maxsize=2)  # a model and its reverse; each validation compiles nothing anew
def nll_model(model):
    """A functional model of a dict of a model's inputs and `target`, int32 `(B, T)`, that returns
    the negative log-likelihood of each target, float32 `(B,)`, in nats."""
    inputs = {
        name: keras.Input(x.shape[1:], dtype=x.dtype, name=name) for name, x in model.input.items()
    }
    target = keras.Input((None,), dtype="int32", name="target")
    nll = ops.sum(word_nll(target, model(inputs)), axis=1)
    made = keras.Model({**inputs, "target": target}, nll)
    made.jit_compile = model.jit_compile
    return made


def likelihood(model, split, batch_size=64, length_multiple=4):
    """The negative log-likelihood of each target of a `GenerationSplit` in nats, float32
    `(pairs,)`; nothing is cut.
    """

    def inputs_of(rows):
        inputs, target = split.collate(rows, length_multiple)
        return {**inputs, "target": target}

    scorer, nll, lengths = nll_model(model), np.zeros(len(split), np.float32), split.target.lengths
    batches = [
        part
        for rows in batches_by_size(split.sizes, batch_size)
        for part in np.array_split(rows, -(-len(rows) * int(lengths[rows].max()) // WORDS))
    ]
    for rows, found in results_of(scorer.predict_on_batch, inputs_of, batches, scorer):
        nll[rows] = found
    return nll
