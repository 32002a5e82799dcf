"""Small seq2seq models, pairs for them, and their equations in loops (Bahdanau et al. 2015; Luong
et al. 2015).
"""

import functools

import numpy as np
from helpers import randomised, to_numpy
from reference_recurrent import decode_in_loops, encode_in_loops, float64, log_softmax

from colloquy.data.sequences import Sequences
from colloquy.models.seq2seq import Seq2Seq, Seq2SeqConfig
from colloquy.tasks.generation.split import GenerationSplit

V, E, H = 13, 7, 22  # words, features of a word, units: halved, a prime
BEGIN = V + 1
SIZES = {"vocabulary_size": V, "embedding_dim": E, "hidden": H, "dropout": 0.0}
VARIANTS = [
    {},
    {"attention": "none", "output": "all"},
    {"attention": "dot", "output": "all", "tied_output": True},
    {"attention": "luong_dot", "cell": "lstm", "layers": 2, "merge": "sum"},
    {"attention": "general", "bidirectional": False},
    {"attention": "scaled_dot", "tied_output": True},
]
DROPPING = {"dropout": 0.5}
# Sources of 2 to 5 words and targets of 1 to 4, `_EOS_` (1) included.
EXAMPLES = [
    ([3, 4, 1], [7, 8, 1]),
    ([5, 1], [9, 1]),
    ([6, 3, 10, 5, 1], [8, 7, 9, 1]),
    ([4, 4, 6, 1], [1]),
]


def fresh(**settings):
    return Seq2Seq(Seq2SeqConfig(**{**SIZES, **settings}))


@functools.cache
def made(**settings):
    """A model with random weights, shared by the tests: do not change it."""
    return randomised(fresh(**settings), 1, 0.4)


def batch(model, rows=(0, 1, 2, 3), more=0):
    """Inputs and targets of some pairs; with `more` their sizes are multiples of it."""
    sources, targets = map(Sequences.of, zip(*EXAMPLES, strict=True))
    return GenerationSplit(sources, targets, BEGIN).collate(np.array(rows), more or 1)


def real(logits, row):
    """The logits of a target without its padding."""
    return logits[: len(EXAMPLES[row][1])]


def in_loops(model, row):
    """The logits of each word of a target, `(T, V + 1)`."""
    c, layer = model.config, model.get_layer
    source, target = EXAMPLES[row]
    words = to_numpy(layer("word_embedding").embeddings).astype("float64")
    memory, *states = encode_in_loops(words[source], layer("encoder"))
    outputs, _, _ = decode_in_loops(words[[BEGIN, *target[:-1]]], memory, states, layer("decoder"))
    W, b = float64(*layer("projection" if c.tied_output else "logits").weights)
    outputs = [output @ W + b for output in outputs]
    if c.tied_output:
        outputs = [[output @ vector for vector in words[: V + 1]] for output in outputs]
    return np.array(outputs)


def loss_in_loops(logits):
    """The mean over all words of their negative log-likelihood."""
    losses = []
    for of_pair, (_, target) in zip(logits, EXAMPLES, strict=True):
        losses += [-log_softmax(row)[word] for row, word in zip(of_pair, target, strict=True)]
    return np.mean(losses)
