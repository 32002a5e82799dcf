"""Baselines of response selection."""

import numpy as np

from colloquy.metrics.baselines import tfidf_scores

DOCUMENTS_AT_ONCE = 4096
"""Training lines in memory as lists at once."""


def baseline_scores(dataset, split):
    """Scores of the three baselines on a split, `{name: (lines,)}`.

    A constant wins nothing by `ties="loss"`.
    """
    train = dataset.splits["train"]
    evaluated = dataset.splits[split]
    contexts, responses = evaluated.texts(np.arange(len(evaluated)), dataset.eos_id)
    tfidf = tfidf_scores(
        _training_documents(train, dataset.eos_id),
        contexts,
        responses,
        ignore=[] if dataset.unk_id is None else [dataset.unk_id],
        end_of_turn=dataset.eos_id,
    )
    return {
        "random": np.random.default_rng(0).random(len(evaluated)),
        "constant": np.zeros(len(evaluated)),
        "TF-IDF cosine": tfidf,
    }


def _training_documents(train, eos_id):
    """Yields the contexts and responses of the positive lines, lists of ids."""
    positives = np.flatnonzero(train.label == 1)
    for start in range(0, len(positives), DOCUMENTS_AT_ONCE):
        lines = positives[start : start + DOCUMENTS_AT_ONCE]
        contexts, responses = train.texts(lines, eos_id)
        yield from contexts
        yield from responses
