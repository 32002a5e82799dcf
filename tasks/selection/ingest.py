"""Encodes the lines of a corpus as the arrays of `tasks.selection.arrays`.

Lines are streamed: memory holds one block of them.
"""

import contextlib
import functools
import itertools

import numpy as np

from colloquy.data.flat_arrays import GrowingArray
from colloquy.tasks.selection import arrays

BLOCK = 2**20
"""Ids of responses after which a block ends."""
CACHED_TEXTS = 2**16
"""Texts whose ids are cached: the turns of a conversation repeat line after line."""


def write_lines(lines, tokenizer, vocabulary, directory, split):
    """Writes the arrays of a split.

    Args:
        lines: Iterable of `data.corpora.smn.Line`.
        tokenizer: `data.tokenizer_config.TokenizerConfig`.
        vocabulary: `data.vocabulary.Vocabulary`.
        directory: Directory of the arrays.
        split: Name of the split.

    Returns:
        The number of words outside of the vocabulary.
    """

    @functools.lru_cache(CACHED_TEXTS)
    def encode(text):
        return vocabulary.encode(tokenizer.words(text))

    num_unknown = 0
    num_ids = 1 + len(vocabulary) + vocabulary.hashed
    with contextlib.ExitStack() as stack:
        files = {}
        for name, dtype in arrays.array_dtypes(num_ids).items():
            array = GrowingArray(arrays.path_of(directory, split, name), dtype)
            files[name] = stack.enter_context(array)
        for block in _encode(lines, encode):
            for name, values in block.items():
                files[name].write(values)
            for name in ("turn_ids", "response_ids"):
                ids = np.asarray(block[name])
                is_unknown = (ids == vocabulary.unk_id) | (ids > len(vocabulary))
                num_unknown += int(is_unknown.sum())
    return num_unknown


def _encode(lines, encode):
    """Yields blocks of whole contexts, `{name: list of integers}`: parts of the arrays."""
    block = {name: [] for name in arrays.NAMES}
    for turns, equal_lines in itertools.groupby(lines, key=lambda line: line.turns):
        if len(block["response_ids"]) > BLOCK:
            yield block
            block = {name: [] for name in arrays.NAMES}
        for turn in turns:
            ids = encode(turn)
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
