"""Baselines of response selection."""

import numpy as np

from colloquy.metrics.baselines import tfidf_scores


def baseline_scores(dataset, split):
    """Scores of the three baselines on a split, `{name: (lines,)}`.

    A constant wins nothing by `ties="loss"`.
    """
    evaluated = dataset.splits[split]
    tfidf = tfidf_scores(
        _training_utterances(dataset.splits["train"]),
        _contexts(evaluated),
        evaluated.responses.lists(),
        ignore=[] if dataset.unk_id is None else [dataset.unk_id],
    )
    return {
        "random": np.random.default_rng(0).random(len(evaluated)),
        "constant": np.zeros(len(evaluated)),
        "TF-IDF cosine": tfidf,
    }


def _contexts(split):
    """Yields the words of the context of each line, a list of ids."""
    for context in split.context.tolist():
        yield split.turns.take(split.turns_of(context)).flat().tolist()


def _training_utterances(train):
    """Yields the turns and the response of each positive line, lists of ids."""
    for line in np.flatnonzero(train.label == 1).tolist():
        yield from train.turns.lists(train.turns_of(train.context[line]))
        yield from train.responses.lists([line])
