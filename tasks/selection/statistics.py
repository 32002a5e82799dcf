"""A dataset for response selection that is being prepared, and its statistics."""

import collections
import pathlib
from typing import Any, NamedTuple

import numpy as np

from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.selection.data import ARRAYS, Metadata, read_split


class Prepared(NamedTuple):
    """A dataset whose arrays are written."""

    settings: Any
    """`tasks.selection.prepare.Settings`, with the values that preparing decided."""
    vocabulary: Vocabulary | None
    vectors: np.ndarray
    metadata: Metadata
    files: dict[str, pathlib.Path]
    """The file of each split that the corpus has."""
    num_unknown: dict[str, int]
    """The number of words of each split outside the vocabulary; empty for ids without words."""

    def read_splits(self, directory):
        """Reads the splits that the corpus has from the directory of the dataset."""
        num_ids = len(self.vectors) + self.metadata.hashed_words
        return {name: read_split(directory / ARRAYS, name, num_ids) for name in self.files}


def statistics_of(split):
    """Statistics of a split; each context counts once.

    Only lengths are read: what is read of a mapped array counts as memory.
    """
    sizes = collections.Counter(np.bincount(split.context_of_line).tolist()).most_common(3)
    return {
        "lines": len(split),
        "contexts": split.num_contexts,
        "turns_95": round(float(np.percentile(split.num_turns_of_context, 95)), 2),
        "words_95": round(float(np.percentile(split.turns.lengths, 95)), 2),
        "candidates_x_contexts": ", ".join(f"{size} x {count:,}" for size, count in sizes),
    }


def fraction_of_words(split, count):
    """A number of words as a fraction of all words of a split."""
    return round(count / int(split.turns.lengths.sum() + split.responses.lengths.sum()), 4)


def note_odd_contexts(split, file, report, is_ranked, has_lines):
    """Notes contexts from which a training learns nothing, or whose scores mean something else.

    Args:
        split: `SelectionSplit`.
        file: Its file.
        report: `data.report.Report`.
        is_ranked: True if the candidates of a context are ranked: those of train are not.
        has_lines: True if the file has a line for each candidate.
    """
    candidates = np.bincount(split.context_of_line)
    positives = np.bincount(split.context_of_line, weights=split.label)
    frequencies = np.bincount(candidates, minlength=1)
    # The largest of those that are equally frequent.
    usual = int(np.flatnonzero(frequencies == frequencies.max()).max())
    candidate = "line" if has_lines else "response"

    def note(is_odd, sentence, advice=""):
        """Notes the odd contexts, if any; the advice is for files with lines."""
        if not is_odd.any():
            return
        text = f"{is_odd.sum():,} of {len(candidates):,} {sentence}"
        if not has_lines:
            report.note(f"{file}: {text}")
            return
        first_line = np.searchsorted(split.context_of_line, np.flatnonzero(is_odd)[0]) + 1
        report.note(f"{file}, line {first_line} and others: {text}{advice}")

    note(
        positives == 0,
        f"contexts have no {candidate} with label 1",
        ". The lines of a context must follow each other",
    )
    note(
        positives == candidates,
        f"contexts have no {candidate} with label 0, so none is ranked below the correct ones",
    )
    if is_ranked:
        note(
            candidates != usual,
            f"contexts have others than {usual} candidates",
            ". Equal contexts that follow each other are one",
        )
