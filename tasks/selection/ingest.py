"""Encodes the lines of a corpus as the arrays of `tasks.selection.data`, and checks them.

Lines are streamed: memory holds one block of them.
"""

import contextlib
import functools
import itertools
import sys

import numpy as np

from colloquy.data.flat_arrays import BLOCK, GrowingArray
from colloquy.tasks.selection.data import ARRAY_NAMES, path_of
from colloquy.tasks.selection.split import context_sizes

CACHED_TEXTS = 2**16
"""Texts whose ids are cached: the turns of a conversation repeat line after line."""


def encode_lines(lines, tokenize, vocabulary, candidates=0):
    """Encodes lines, and yields them in blocks of whole contexts: `{name: list of integers}`, with
    the names of `tasks.selection.data.ARRAY_NAMES`. The blocks of a file are parts of its arrays.
    For `candidates` see `tasks.selection.split.context_sizes`.
    """

    @functools.lru_cache(CACHED_TEXTS)
    def encode(text):
        return vocabulary.encode(tokenize(text))

    block = {name: [] for name in ARRAY_NAMES}
    for turns, equal_lines in itertools.groupby(lines, key=lambda line: line.turns):
        remaining_lines = list(equal_lines)
        for size in context_sizes(len(remaining_lines), candidates):
            lines_of_context = remaining_lines[:size]
            remaining_lines = remaining_lines[size:]
            if len(block["response_ids"]) > BLOCK:
                yield block
                block = {name: [] for name in ARRAY_NAMES}
            block["context_turns"].append(len(turns))
            block["context_lines"].append(size)
            for text in turns:
                ids = encode(text)
                block["turn_ids"] += ids
                block["turn_lengths"].append(len(ids))
            for line in lines_of_context:
                ids = encode(line.response)
                block["response_ids"] += ids
                block["response_lengths"].append(len(ids))
                block["label"].append(line.label)
    yield block


def write_arrays(blocks, directory, split, ids_dtype, vocabulary):
    """Writes the blocks of `encode_lines` as the arrays of a split.

    Returns:
        The number of words outside of the vocabulary.
    """
    unknown_words = 0
    with contextlib.ExitStack() as stack:
        files = {}
        for name, dtype in ARRAY_NAMES.items():
            array = GrowingArray(path_of(directory, split, name), dtype or ids_dtype)
            files[name] = stack.enter_context(array)
        for block in blocks:
            for name, values in block.items():
                files[name].write(values)
            for name in ("turn_ids", "response_ids"):
                ids = np.asarray(block[name])
                is_unknown = (ids == vocabulary.unk_id) | (ids > len(vocabulary))
                unknown_words += int(is_unknown.sum())
    return unknown_words


# === Candidates ===


def candidates_per_context(contexts):
    """The number of candidates that each of some contexts has; 0 if they differ.

    `contexts` has that of each line. Equal ones that follow each other may be several: they have a
    multiple of the number that most contexts have.

    >>> candidates_per_context(["a"] * 3 + ["b"] * 6 + ["c"] * 3)
    3
    >>> candidates_per_context(["a"] * 6 + ["b"] * 4)
    0
    """
    sizes = [sum(1 for _ in equal) for _, equal in itertools.groupby(contexts)]
    number = min(sizes, default=0)
    if number < 2 or any(size % number for size in sizes):
        return 0
    is_usual = 2 * sizes.count(number) > len(sizes)
    return number if is_usual else 0


def check_candidates(examples, file):
    """Warns of contexts with another number of candidates than most."""
    counts = np.bincount(examples.context)
    frequencies = np.bincount(counts, minlength=1)
    usual = int(np.flatnonzero(frequencies == frequencies.max()).max())
    expected = f"expected {usual} candidates per context, as most have"
    _warn_of_contexts(examples, file, counts != usual, expected, f"do not have {usual}")


def check_positives(examples, file):
    """Warns of contexts without a positive response: their other lines may be elsewhere."""
    is_wrong = np.bincount(examples.context, weights=examples.label) == 0
    expected = "expected the lines of a context in a row, with label 1 on one of them"
    _warn_of_contexts(examples, file, is_wrong, expected, "have no line with label 1")


def _warn_of_contexts(examples, file, is_wrong, expected, fault):
    wrong = np.flatnonzero(is_wrong)
    if not len(wrong):
        return
    first_line = np.searchsorted(examples.context, wrong[0]) + 1
    lines = np.count_nonzero(examples.context == wrong[0])
    received = f"lines: {lines}; {len(wrong):,} of {len(is_wrong):,} contexts {fault}"
    print(f"warning: {file}, line {first_line}: {expected}. Received: {received}", file=sys.stderr)
