"""The arrays of a split, each in a file `SPLIT.NAME.npy`, which is mapped into memory.

turn_ids           words of the turns of all contexts, uint16 or uint32
turn_lengths       number of words of each turn
context_turns      number of turns of each context
context_lines      number of lines, that is of candidates, of each context
response_ids       words of the responses of all lines, uint16 or uint32
response_lengths   number of words of each response
label              of each line: 1 positive, 0 negative
"""

import pathlib

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.flat_arrays import map_array
from colloquy.data.sequences import Sequences
from colloquy.tasks.selection.split import SelectionSplit

NAMES = (
    "turn_ids",
    "turn_lengths",
    "context_turns",
    "context_lines",
    "response_ids",
    "response_lengths",
    "label",
)


def path_of(directory, split, name):
    return pathlib.Path(directory) / f"{split}.{name}.npy"


def array_dtypes(num_ids):
    """`{name: dtype}` of the arrays of a split whose ids are below `num_ids`."""
    ids_dtype = "uint16" if num_ids <= 2**16 else "uint32"
    dtypes = dict.fromkeys(NAMES, "int32")
    return {**dtypes, "turn_ids": ids_dtype, "response_ids": ids_dtype}


def read_split(directory, split, num_ids):
    """Returns a `SelectionSplit` of arrays that are mapped into memory and checked.

    Ids must be below `num_ids`.
    """
    where = pathlib.Path(directory) / split
    limits = {"turn_ids": num_ids, "response_ids": num_ids, "label": 2}
    arrays = {}
    for name in NAMES:
        array = map_array(path_of(directory, split, name))
        limit = limits.get(name, 2**31)  # the others are counts
        if len(array) and not 0 <= array.min() <= array.max() < limit:
            raise UserError(
                f"{where}.{name}: expected 0 to {limit - 1}. "
                f"Received: {array.min()} to {array.max()}"
            )
        arrays[name] = array
    for name, other in (("context_lines", "context_turns"), ("response_lengths", "label")):
        if len(arrays[name]) != len(arrays[other]):
            raise UserError(f"{where}: {name} and {other} must be equally long")

    def starts(lengths, items):
        return _starts(arrays[lengths], len(arrays[items]), f"{where}.{lengths}")

    turn_starts = starts("turn_lengths", "turn_ids")
    first_turn_of_context = starts("context_turns", "turn_lengths")
    first_line_of_context = starts("context_lines", "label")
    response_starts = starts("response_lengths", "response_ids")
    contexts = np.arange(len(first_line_of_context))
    return SelectionSplit(
        turns=Sequences(arrays["turn_ids"], turn_starts, arrays["turn_lengths"]),
        first_turn_of_context=first_turn_of_context,
        num_turns_of_context=arrays["context_turns"],
        responses=Sequences(arrays["response_ids"], response_starts, arrays["response_lengths"]),
        # Contexts of two and of three lines: [0, 0, 1, 1, 1].
        context_of_line=np.repeat(contexts, arrays["context_lines"]),
        label=arrays["label"],
    )


def _starts(lengths, num_items, where):
    """The index of the first item of each of some lists, which follow each other in an array.

    Lists of two, of no and of three items start at 0, 2 and 2. A `UserError` refuses lists that do
    not have `num_items` items together.
    """
    stops = np.cumsum(lengths, dtype=np.int64)
    received = stops[-1] if len(stops) else 0
    if received != num_items:
        raise UserError(f"{where}: expected a sum of {num_items:,}. Received: {received:,}")
    return stops - lengths


def write_split(split, directory, name, num_ids):
    """Writes the arrays of a `SelectionSplit`, whose ids are below `num_ids`."""
    arrays = {
        "turn_ids": split.turns.flat(),
        "turn_lengths": split.turns.lengths,
        "context_turns": split.num_turns_of_context,
        "context_lines": np.bincount(split.context_of_line, minlength=split.num_contexts),
        "response_ids": split.responses.flat(),
        "response_lengths": split.responses.lengths,
        "label": split.label,
    }
    for array_name, dtype in array_dtypes(num_ids).items():
        np.save(path_of(directory, name, array_name), arrays[array_name].astype(dtype))
