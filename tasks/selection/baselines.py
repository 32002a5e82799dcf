"""Baselines of response selection, and the scores of other systems."""

import pathlib

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.text_files import read_lines
from colloquy.metrics.baselines import bm25_scores, tfidf_scores

DOCUMENTS_AT_ONCE = 4096
"""Training lines in memory as lists at once."""


def baseline_scores(dataset, split):
    """Scores of the three baselines on a split, `{name: (lines,)}`.

    A constant wins nothing by `ties="loss"`.
    """
    num_lines = len(dataset.splits[split])
    return {
        "random": np.random.default_rng(0).random(num_lines),
        "constant": np.zeros(num_lines),
        "TF-IDF cosine": scores_by_words(dataset, split, tfidf_scores),
    }


def scores_by_words(dataset, split, function):
    """Scores a split by `tfidf_scores` or `bm25_scores`, float64 `(lines,)`."""
    evaluated = dataset.splits[split]
    contexts, responses = evaluated.texts(np.arange(len(evaluated)), dataset.eos_id)
    return function(
        _training_documents(dataset.splits["train"], dataset.eos_id),
        contexts,
        responses,
        ignore=[] if dataset.unk_id is None else [dataset.unk_id],
        end_of_turn=dataset.eos_id,
    )


NAMED = {"tfidf": tfidf_scores, "bm25": bm25_scores}
"""Baselines that `evaluate.py --against` knows by name."""


def outside_scores(dataset, split, source):
    """The scores of a baseline by name, or of a file, float64 `(lines,)`.

    A file has a line for each candidate of the split, in its order: a score, and after a tab
    anything else, as `evaluate.py --out` writes it.

    Raises:
        UserError: `source` is neither, or the file has other lines.
    """
    if source in NAMED:
        return scores_by_words(dataset, split, NAMED[source])
    if not pathlib.Path(source).is_file():
        raise UserError(f"{source}: expected a run, a file of scores, or one of {', '.join(NAMED)}")
    scores = []
    for number, line in read_lines(source, "a score per line"):
        text = line.partition("\t")[0]
        try:
            scores.append(float(text))
        except ValueError as error:
            raise UserError(
                f"{source}, line {number}: expected a score. Received: {text:.60}"
            ) from error
    expected = len(dataset.splits[split])
    if len(scores) != expected:
        raise UserError(
            f"{source}: expected {expected:,} lines, one per candidate of {split}. "
            f"Received: {len(scores):,}"
        )
    return np.array(scores)


def _training_documents(train, eos_id):
    """Yields the contexts and responses of the positive lines, lists of ids."""
    positives = np.flatnonzero(train.label == 1)
    for start in range(0, len(positives), DOCUMENTS_AT_ONCE):
        lines = positives[start : start + DOCUMENTS_AT_ONCE]
        contexts, responses = train.texts(lines, eos_id)
        yield from contexts
        yield from responses
