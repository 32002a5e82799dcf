"""The likelihood of targets under a generation model, for its loss and for perplexity.

Letters: B pairs   T target words   V words of the vocabulary   R unpadded words of a batch
"""

import functools
import math

import keras
import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.layers.masking import mask_from_ids, zero_padding
from colloquy.layers.unpadding import Unpadding

# Most words of a scored batch, unless one target has more. It bounds the memory: each word of a
# target has a logit for every word of the vocabulary.
WORDS_AT_ONCE = 2048


def word_nll(target, logits):
    """The negative log-likelihood of each word in nats.

    Args:
        target: Int32 `(B, T)`, 0 = padding.
        logits: Float `(B, T, V)`, or `(R, V)` without those of padding.

    Returns:
        Float32 `(B, T)`, 0 for padding.

    >>> logits = np.log(np.array([[[0.125, 0.125, 0.75], [1.0, 1.0, 1.0]]], "float32"))
    >>> [round(float(x), 4) for x in ops.exp(-word_nll(np.array([[2, 0]]), logits))[0]]
    [0.75, 1.0]
    """
    mask_BT = mask_from_ids(target)
    logits = ops.cast(logits, "float32")
    is_unpadded = len(logits.shape) == 2
    if is_unpadded:
        return _unpadded_word_nll(target, logits, mask_BT)
    nll_BT = ops.sparse_categorical_crossentropy(target, logits, from_logits=True)
    return zero_padding(nll_BT, mask_BT)


def _unpadded_word_nll(target, logits_RV, mask_BT):
    rows = Unpadding(mask_BT)
    words_R = rows.unpad(target[..., None])[:, 0]
    nll_R = ops.sparse_categorical_crossentropy(words_R, logits_RV, from_logits=True)
    return rows.repad(nll_R[:, None])[..., 0]


def word_loss(target, logits):
    """The loss of each pair, float32 `(B,)`; arguments as in `word_nll`.

        loss = B / words * (sum of the negative log-likelihoods of the pair's words)

    Keras averages it over the `B` pairs, which gives the mean over all `words` of the batch.
    """
    target = ops.cast(target, "int32")
    words = ops.maximum(ops.sum(ops.cast(mask_from_ids(target), "float32")), 1.0)
    nll_B = ops.sum(word_nll(target, logits), axis=1)
    return nll_B * ops.cast(ops.shape(target)[0], "float32") / words


# The same model is scored at each validation. The last two are kept compiled: a model and the
# reverse model that reranks its replies.
@functools.lru_cache(maxsize=2)
def nll_model(model):
    """A functional model that scores targets.

    It takes a dict of the model's inputs and `target`, int32 `(B, T)`, and returns the negative
    log-likelihood of each target in nats, float32 `(B,)`.
    """
    inputs = {}
    for name, x in model.input.items():
        inputs[name] = keras.Input(x.shape[1:], dtype=x.dtype, name=name)
    target = keras.Input((None,), dtype="int32", name="target")
    nll_B = ops.sum(word_nll(target, model(inputs)), axis=1)
    scorer = keras.Model({**inputs, "target": target}, nll_B)
    scorer.jit_compile = model.jit_compile
    return scorer


def likelihood(model, split, batch_size=64, length_multiple=4):
    """The negative log-likelihood of each target of a `GenerationSplit` in nats.

    Nothing is cut. Returns float32 `(pairs,)`.
    """

    def make_inputs(rows):
        inputs, target = split.collate(rows, length_multiple)
        return {**inputs, "target": target}

    batches = []
    for rows in batches_by_size(split.sizes, batch_size):
        padded_words = len(rows) * int(split.target.lengths[rows].max())
        num_parts = math.ceil(padded_words / WORDS_AT_ONCE)
        batches += np.array_split(rows, min(num_parts, len(rows)))

    nll = np.zeros(len(split), np.float32)
    scorer = nll_model(model)
    compile_for_all_sizes(scorer)
    for rows, nll_B in results_of(scorer.predict_on_batch, make_inputs, batches):
        nll[rows] = nll_B
    return nll
