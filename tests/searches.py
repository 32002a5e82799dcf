"""Small models that write, and searches in plain loops over calls of them."""

import functools

import numpy as np
from helpers import randomised, to_numpy

from models.decoding import decode
from models.seq2seq import Seq2Seq, Seq2SeqConfig
from tasks.generation.search import columns

V, L = 7, 5  # words, words of a reply at most
EOS, UNK, BEGIN = 1, 2, V + 1
SOURCES = np.array([[3, 4, 5, 6, 1], [5, 1, 0, 0, 0], [4, 7, 1, 0, 0]], "int32")


@functools.cache
def made(vocabulary_size=V, **settings):
    """A model with random weights, shared by the tests: do not change it."""
    config = Seq2SeqConfig(vocabulary_size=vocabulary_size, embedding_dim=5, hidden=6, dropout=0.0, **settings)
    return randomised(Seq2Seq(config), 3, 1.0)


@functools.cache
def biased(**bias):
    """The same with other logits for some words: `w4=2.0` adds 2 to that of word 4."""
    model = randomised(Seq2Seq(made().config), 3, 1.0)
    kernel, vector = model.get_layer("logits").get_weights()
    for word, value in bias.items():
        vector[int(word[1:])] += value
    model.get_layer("logits").set_weights([kernel, vector])
    return model


def log_p(model, source, targets):
    """Log probabilities of each word of some targets after one source, by teacher forcing: a list for each."""
    width = max(map(len, targets))
    before = [[model.begin_id, *target[:-1]] + [0] * (width - len(target)) for target in targets]
    source = np.repeat(source[source > 0][None], len(targets), axis=0)
    logits = to_numpy(model({"source": source, "target_in": np.array(before, "int32")})).astype("float64")
    every = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return [every[row, : len(target)] for row, target in enumerate(targets)]


def judged(model, source, targets, d):
    """`log_p` after the source, less `d.against_empty` times that after an empty one."""
    after_empty = log_p(model, np.array([EOS], "int32"), targets)
    return [
        row - d.against_empty * empty for row, empty in zip(log_p(model, source, targets), after_empty, strict=True)
    ]


def scored(model, source, targets, penalty=0.0):
    """What replies are ranked by: log probability by ((5 + words) / 6) ** penalty."""
    by_word = log_p(model, source, targets)
    return [
        sum(row[place, word] for place, word in enumerate(target)) / ((5 + len(target)) / 6) ** penalty
        for row, target in zip(by_word, targets, strict=True)
    ]


def repeats(words, n):
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return len(set(grams)) < len(grams)


def may_follow(words, word, d):
    """Whether a word may come after others."""
    if word == 0 or (word == UNK and not d.allow_unknown) or (word == EOS and len(words) < d.min_length):
        return False
    return not (d.block_ngrams and repeats([*words, word], d.block_ngrams))


def beam_in_loops(model, source, d):
    """Beam search, hypothesis by hypothesis: `[(words, ranked by)]`."""
    hypotheses = [([], 0.0)]

    def rank(hypothesis):
        return hypothesis[1] / ((5 + len(hypothesis[0])) / 6) ** d.length_penalty

    for _ in range(d.max_length):
        candidates = [(words, total) for words, total in hypotheses if EOS in words]
        going_on = [(words, total) for words, total in hypotheses if EOS not in words]
        rows = judged(model, source, [[*words, EOS] for words, _ in going_on], d) if going_on else []
        for (words, total), row in zip(going_on, rows, strict=True):
            follow = [word for word in range(model.config.vocabulary_size + 1) if may_follow(words, word, d)]
            candidates += [([*words, word], total + row[-1, word]) for word in follow]
        hypotheses = sorted(candidates, key=rank, reverse=True)[: d.beam]
    return [(words, rank((words, total))) for words, total in hypotheses]


def replies(ids):
    """Lists of words of `(K, L)` ids; nothing may stand after `_EOS_`."""
    found = []
    for row in ids.tolist():
        words = row[: row.index(EOS) + 1] if EOS in row else row
        assert row[len(words) :] == [0] * (len(row) - len(words))
        assert 0 not in words
        found.append(words)
    return found


def run(model, source, d, noise=None):
    inputs = {"source": source, **columns([d] * len(source)), **({} if noise is None else {"noise": noise})}
    ids, scores = (to_numpy(x) for x in decode(model, inputs, d.beam, d.max_length, EOS, UNK, d.against_empty > 0))
    assert ids.shape == (len(source), d.beam, d.max_length) and scores.shape == ids.shape[:2]
    return ids, scores
