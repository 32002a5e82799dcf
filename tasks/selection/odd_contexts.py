"""Notes on contexts that lack a correct or a wrong response, or have unusually many or few.

A training learns nothing from some of them, and the scores of others mean something else.

Letter: C contexts
"""

from typing import NamedTuple

import numpy as np


class _Oddity(NamedTuple):
    """Contexts with one problem."""

    is_odd_C: np.ndarray
    """True for a context with the problem."""
    problem: str
    """The end of a sentence that begins with "contexts"."""
    advice: str = ""
    """A sentence about the lines of a file that may be wrong."""


def note_odd_contexts(split, file, report, is_ranked, has_lines):
    """Notes the odd contexts of a split.

    Args:
        split: `SelectionSplit`.
        file: Its file.
        report: `data.report.Report`.
        is_ranked: True for dev and test, where the candidates of a context are ranked.
        has_lines: True if the file has a line for each candidate.
    """
    candidate = "line" if has_lines else "response"
    for oddity in _find_oddities(split, is_ranked, candidate):
        num_odd = oddity.is_odd_C.sum()
        if not num_odd:
            continue
        text = f"{num_odd:,} of {split.num_contexts:,} contexts {oddity.problem}"
        if not has_lines:
            report.note(f"{file}: {text}")
            continue
        is_odd_line = oddity.is_odd_C[split.context_of_line]
        first_line = np.argmax(is_odd_line) + 1  # lines of a file are numbered from 1
        report.note(f"{file}, line {first_line} and others: {text}{oddity.advice}")


def _find_oddities(split, is_ranked, candidate):
    """The kinds of odd contexts; `candidate` is the word for a candidate response."""
    candidates_C = np.bincount(split.context_of_line)
    positives_C = split.count_lines(label=1)
    oddities = [
        _Oddity(
            is_odd_C=positives_C == 0,
            problem=f"have no {candidate} with label 1",
            advice=". The lines of a context must follow each other",
        ),
        _Oddity(
            is_odd_C=positives_C == candidates_C,
            problem=f"have no {candidate} with label 0, so none is ranked below the correct ones",
        ),
    ]
    if is_ranked:
        usual = _most_frequent(candidates_C)
        oddities.append(
            _Oddity(
                is_odd_C=candidates_C != usual,
                problem=f"have others than {usual} candidates",
                advice=". Equal contexts that follow each other are one",
            )
        )
    return oddities


def _most_frequent(numbers):
    """The most frequent number; the largest if several are equally frequent.

    >>> _most_frequent([10, 2, 2, 10, 3])
    10
    """
    values, counts = np.unique(numbers, return_counts=True)
    return int(values[counts == counts.max()].max())
