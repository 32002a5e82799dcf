"""A dataset whose arrays are written: the statistics of its splits, and notes on odd contexts.

Letter: C contexts
"""

import collections
from typing import Any, NamedTuple

import numpy as np

from colloquy.tasks.selection.data import Metadata


class Prepared(NamedTuple):
    """A dataset whose arrays are written; its other files are not."""

    settings: Any
    """`tasks.selection.prepare.Settings`, with the values that preparing decided."""
    vocabulary: Any
    """A `data.vocabulary.Vocabulary`; `None` for ids without words."""
    vectors: np.ndarray
    """Word vectors; row 0 is padding."""
    metadata: Metadata
    files: dict
    """`{split: file}` of the splits that the corpus has."""
    num_unknown: dict
    """The number of words of each split that the vocabulary lacks; empty without a vocabulary."""


def statistics_of(splits, num_unknown):
    """Statistics of each split; a context counts once, however many lines it has.

    The words themselves are not read: they are mapped from a file, and what is read of it takes
    memory.

    Args:
        splits: `{name: SelectionSplit}`.
        num_unknown: See `Prepared`.
    """
    statistics = {}
    for name, split in splits.items():
        sizes = collections.Counter(np.bincount(split.context_of_line).tolist()).most_common(3)
        statistics[name] = {
            "lines": len(split),
            "contexts": split.num_contexts,
            "turns_95": _percentile_95(split.num_turns_of_context),
            "words_95": _percentile_95(split.turns.lengths),
            # The three most frequent: `10 x 50,000, 9 x 12` if 50,000 contexts have 10 candidates.
            "candidates_x_contexts": ", ".join(f"{size} x {count:,}" for size, count in sizes),
        }
        if name in num_unknown:
            num_words = int(split.turns.lengths.sum() + split.responses.lengths.sum())
            statistics[name]["unknown_words"] = round(num_unknown[name] / num_words, 4)
    return statistics


def _percentile_95(values):
    return round(float(np.percentile(values, 95)), 2)


def note_odd_contexts(split, name, file, report, has_lines):
    """Notes contexts that lack a correct or a wrong response, or have unusually many or few.

    A training learns nothing from some of them, and the scores of others mean something else.

    Args:
        split: `SelectionSplit`.
        name: Its name. The candidates of dev and test are ranked.
        file: Its file.
        report: `data.report.Report`.
        has_lines: True if the file has a line for each candidate; such a file is of one split.
    """
    candidates_C = np.bincount(split.context_of_line)
    positives_C = split.count_lines(label=1)
    candidate = "line" if has_lines else "response"

    def note(is_odd_C, problem, advice=""):
        """Notes the odd contexts, if any; `advice` is about the lines of the file."""
        if not is_odd_C.any():
            return
        text = f"{is_odd_C.sum():,} of {split.num_contexts:,} contexts {problem}"
        if not has_lines:
            report.note(f"{file}, {name}: {text}")
            return
        first_line = np.argmax(is_odd_C[split.context_of_line]) + 1  # lines are counted from 1
        report.note(f"{file}, line {first_line} and others: {text}{advice}")

    note(
        positives_C == 0,
        f"have no {candidate} with label 1",
        ". The lines of a context must follow each other",
    )
    note(
        positives_C == candidates_C,
        f"have no {candidate} with label 0, so none is ranked below the correct ones",
    )
    if name != "train":
        values, counts = np.unique(candidates_C, return_counts=True)
        usual = values[counts == counts.max()].max()  # if several are as frequent, the largest
        note(
            candidates_C != usual,
            f"have others than {usual} candidates",
            ". Equal contexts that follow each other are one",
        )
