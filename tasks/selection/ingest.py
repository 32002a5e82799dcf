"""Encodes the lines of a corpus as the arrays of `tasks.selection.data`.

Lines are streamed: memory holds one block of them.
"""

import contextlib
import functools
import itertools
import sys

import numpy as np

from colloquy.data.flat_arrays import GrowingArray
from colloquy.tasks.selection.data import ARRAY_NAMES, path_of

BLOCK = 2**20
"""Ids of responses after which a block ends."""
CACHED_TEXTS = 2**16
"""Texts whose ids are cached: the turns of a conversation repeat line after line."""


def encode_lines(lines, tokenize, vocabulary):
    """Encodes lines, and yields them in blocks of whole contexts: `{name: list of integers}`, with
    the names of `tasks.selection.data.ARRAY_NAMES`. The blocks of a file are parts of its arrays.
    """

    @functools.lru_cache(CACHED_TEXTS)
    def encode(text):
        return vocabulary.encode(tokenize(text))

    block = {name: [] for name in ARRAY_NAMES}
    for turns, equal_lines in itertools.groupby(lines, key=lambda line: line.turns):
        if len(block["response_ids"]) > BLOCK:
            yield block
            block = {name: [] for name in ARRAY_NAMES}
        for text in turns:
            ids = encode(text)
            block["turn_ids"] += ids
            block["turn_lengths"].append(len(ids))
        num_lines = 0
        for line in equal_lines:
            ids = encode(line.response)
            block["response_ids"] += ids
            block["response_lengths"].append(len(ids))
            block["label"].append(line.label)
            num_lines += 1
        block["context_turns"].append(len(turns))
        block["context_lines"].append(num_lines)
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


def warn_of_contexts_without_positive(examples, file):
    """Warns of contexts without a positive response: their other lines may be elsewhere."""
    is_wrong = np.bincount(examples.context, weights=examples.label) == 0
    wrong = np.flatnonzero(is_wrong)
    if len(wrong):
        _warn(
            examples,
            file,
            wrong[0],
            "expected the lines of a context in a row, with label 1 on one of them. "
            f"{len(wrong):,} of {len(is_wrong):,} contexts have no line with label 1",
        )


def warn_of_other_numbers_of_candidates(examples, file):
    """Warns of contexts with other numbers of candidates than most: R10@1 is then not of ten.

    Equal contexts that follow each other are one, with the candidates of all.
    """
    num_candidates = np.bincount(examples.context)
    frequencies = np.bincount(num_candidates, minlength=1)
    # The largest of those that are equally frequent.
    usual = int(np.flatnonzero(frequencies == frequencies.max()).max())
    others = np.flatnonzero(num_candidates != usual)
    if len(others):
        _warn(
            examples,
            file,
            others[0],
            f"expected {usual} candidates per context, as most have. Received: "
            f"{num_candidates[others[0]]}; {len(others):,} of {len(num_candidates):,} contexts "
            "have other numbers (equal contexts that follow each other are one)",
        )


def _warn(examples, file, context, sentence):
    """Warns with the first line of a context."""
    first_line = np.searchsorted(examples.context, context) + 1
    print(f"warning: {file}, line {first_line}: {sentence}", file=sys.stderr)
