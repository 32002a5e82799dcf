"""The likelihood of targets under a generation model, for perplexity and for reranking.

Letters: B pairs   T target words
"""

import functools
import math

import keras
import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.tasks.generation.loss import word_nll

# The largest number of words in a scored batch, padding included; a longer target is a batch of its
# own. It bounds the memory: each word of a target has a logit for every word of the vocabulary.
WORDS_AT_ONCE = 2048


def negative_log_likelihood(model, split, batch_size=64, length_multiple=4):
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
        # A part has at least one pair.
        batches += np.array_split(rows, min(num_parts, len(rows)))

    nll = np.zeros(len(split), np.float32)
    scorer = nll_scorer(model)
    compile_for_all_sizes(scorer)
    for rows, nll_B in results_of(scorer.predict_on_batch, make_inputs, batches):
        nll[rows] = nll_B
    return nll


# Each validation scores the same model, whose scorer stays compiled. A second one is kept for the
# reverse model that reranks replies.
@functools.lru_cache(maxsize=2)
def nll_scorer(model):
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
