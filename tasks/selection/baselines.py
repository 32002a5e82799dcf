"""Baselines of response selection, and the scores of other systems."""

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.text_files import read_lines
from colloquy.metrics.baselines import bm25_scores, tfidf_scores


def baseline_scores(dataset, split):
    """Scores of the three baselines on a split, `{name: (lines,)}`.

    A constant wins nothing by `ties="loss"`.
    """
    num_lines = len(dataset.splits[split])
    return {
        "random": np.random.default_rng(0).random(num_lines),
        "constant": np.zeros(num_lines),
        "TF-IDF cosine": _scores_by_words(dataset, split, tfidf_scores),
    }


NAMED = {"tfidf": tfidf_scores, "bm25": bm25_scores}
"""Baselines that `evaluate.py --against` knows by name."""


def outside_scores(dataset, split, source):
    """The scores of a baseline by name, or of a file, float64 `(lines,)`.

    A file has a line for each candidate of the split, in its order: a score, and after a tab
    anything else, as `evaluate.py --out` writes it.

    Raises:
        UserError: The file has other lines.
    """
    if source in NAMED:
        return _scores_by_words(dataset, split, NAMED[source])
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


def _scores_by_words(dataset, split, function):
    """Scores a split by `tfidf_scores` or `bm25_scores`, float64 `(lines,)`."""
    evaluated = dataset.splits[split]
    return function(
        _training_utterances(dataset.splits["train"]),
        _contexts(evaluated),
        evaluated.responses.lists(),
        ignore=[] if dataset.unk_id is None else [dataset.unk_id],
    )


def _contexts(split):
    """Yields the words of the context of each line, a list of ids."""
    for context in split.context_of_line.tolist():
        yield split.turns.take(split.turns_of(context)).flat().tolist()


def _training_utterances(train):
    """Yields the turns and the response of each positive line, lists of ids."""
    for line in np.flatnonzero(train.label == 1).tolist():
        yield from train.turns.lists(train.turns_of(train.context_of_line[line]))
        yield from train.responses.lists([line])
