"""A split of response selection as flat arrays in files, mapped into memory when it is read.

For each split, `SPLIT.NAME.npy`:

    ids                                 words of all turns and responses, as they stood in the corpus; uint16 or uint32
    turn_starts, turn_lengths           turns of all contexts: where in `ids` they begin, how many words they have
    context_start, context_turns        first turn of each context, number of its turns
    response_starts, response_lengths   response of each line
    context, label                      context of each line, 1 positive or 0 negative
"""

import contextlib
import pathlib

import numpy as np

from base.files import UserError
from data.flat_arrays import GrowingArray, StoredArray
from data.sequences import Sequences
from tasks.selection.split import SelectionSplit

ARRAYS = "arrays"
"""Directory of the files in a prepared dataset."""
TYPES = {
    **{"turn_starts": "int64", "turn_lengths": "int32", "context_start": "int64", "context_turns": "int32"},
    **{"response_starts": "int64", "response_lengths": "int32", "context": "int32", "label": "int32"},
}


def path_of(directory, split, name):
    """The file of an array."""
    return pathlib.Path(directory) / f"{split}.{name}.npy"


@contextlib.contextmanager
def growing(directory, split, **types):
    """Opens files of a split to write: `{name: data.flat_arrays.GrowingArray}`, closed when the block ends."""
    with contextlib.ExitStack() as stack:
        files = {name: GrowingArray(path_of(directory, split, name), dtype) for name, dtype in types.items()}
        yield {name: stack.enter_context(file) for name, file in files.items()}


def read_split(directory, split, words):
    """Maps the arrays of a split into memory, and looks through them once.

    Args:
        directory: Where its files are.
        split: Its name.
        words: Rows of the word vectors, which every id is below.

    Raises:
        UserError: where a file is missing, or says what cannot be.
    """
    found = {name: StoredArray(path_of(directory, split, name)) for name in ("ids", *TYPES)}
    _check_types(found)
    turns, contexts, lines = (len(found[name]) for name in ("turn_starts", "context_start", "context"))
    sizes = {"turn_lengths": turns, "context_turns": contexts}
    sizes |= dict.fromkeys(("response_starts", "response_lengths", "label"), lines)
    for name, size in sizes.items():
        if len(found[name]) != size:
            raise UserError(f"{found[name].path}: expected {size:,} numbers. Received: {len(found[name]):,}")
    _check_range(found["ids"], words)
    _check_range(found["label"], 2)
    _check_range(found["context"], contexts)
    _check_order(found["context"])
    _check_places(found["turn_starts"], found["turn_lengths"], len(found["ids"]))
    _check_places(found["response_starts"], found["response_lengths"], len(found["ids"]))
    _check_places(found["context_start"], found["context_turns"], turns)
    arrays = {name: array.mapped() for name, array in found.items()}
    return SelectionSplit(
        turns=Sequences(arrays["ids"], arrays["turn_starts"], arrays["turn_lengths"]),
        context_start=arrays["context_start"],
        context_turns=arrays["context_turns"],
        responses=Sequences(arrays["ids"], arrays["response_starts"], arrays["response_lengths"]),
        context=arrays["context"],
        label=arrays["label"],
    )


def _check_types(arrays):
    for name, found in arrays.items():
        known = [TYPES[name]] if name in TYPES else ["uint16", "uint32"]
        if found.dtype not in known:
            raise UserError(f"{found.path}: expected {' or '.join(known)}. Received: {found.dtype}")


def _check_range(array, limit):
    """Refuses an array with numbers that are not from 0 to `limit - 1`."""
    for _, block in array.blocks():
        lowest, highest = block.min(), block.max()
        if lowest < 0 or highest >= limit:
            wrong = lowest if lowest < 0 else highest
            raise UserError(f"{array.path}: expected numbers from 0 to {limit - 1}. Received: {wrong}")


def _check_order(array):
    """Refuses an array with a number below the one before it."""
    last = 0
    for _, block in array.blocks():
        if np.diff(block, prepend=last).min() < 0:
            raise UserError(f"{array.path}: expected numbers that do not fall. Received: one below the one before it")
        last = block[-1]


def _check_places(starts, lengths, limit):
    """Refuses lists that do not lie within an array of `limit` numbers."""
    _check_range(starts, limit + 1)
    _check_range(lengths, limit + 1)
    for start, block in starts.blocks():
        end = (block + lengths.read(start, start + len(block))).max()
        if end > limit:
            raise UserError(f"{starts.path}: expected lists that end at {limit} at most. Received: {end}")
