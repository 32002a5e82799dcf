"""The splits of a corpus of conversations: its own, or drawn by a fixed seed."""

import math
import pathlib
import random
from typing import NamedTuple

from colloquy.base.files import UserError

ALL = "all"
"""The key of `find_splits` for the files of a corpus without splits of its own."""
HELD_OUT = 500
"""Most conversations in dev, and in test, that are drawn."""
MIN_TURNS = 4
"""Turns of each conversation in dev and test, unless most conversations are shorter."""
SEED = 1


class Split(NamedTuple):
    """The conversations of a split."""

    file: pathlib.Path
    """The first file that they come from, for messages."""
    conversations: list
    """Lists of turns."""


def read_splits(reader, source, report=None):
    """Reads a corpus of conversations.

    Args:
        reader: Module with `find_splits` and `read`, see `data.corpora.Corpus`.
        source: Its directory; `None` if the reader finds it.
        report: `data.report.Report` of what was read.

    Returns:
        `{name: Split}`, with at least `train` and `dev`.
    """
    files_by_split = reader.find_splits(source)
    if ALL in files_by_split:
        files = files_by_split[ALL]
        return draw_splits(files[0], reader.read(files, ALL))
    splits = {}
    for split, files in files_by_split.items():
        splits[split] = Split(files[0], reader.read(files, split))
    return splits


def draw_splits(file, conversations):
    """Draws train, dev and test, `{name: Split}`.

    A sixth of the conversations is dev, a sixth test, each at most `HELD_OUT`.
    """
    long = [number for number, turns in enumerate(conversations) if len(turns) >= MIN_TURNS]
    if len(long) < math.ceil(len(conversations) / 2):
        long = list(range(len(conversations)))
    if len(long) < 2 or len(conversations) < 3:
        expected = "expected at least 3 conversations, for train, dev and test"
        raise UserError(f"{file}: {expected}. Received: {len(conversations)}")

    size = min(HELD_OUT, max(1, len(long) // 6))
    held_out = random.Random(SEED).sample(long, 2 * size)
    numbers_by_split = {
        "train": sorted(set(range(len(conversations))) - set(held_out)),
        "dev": held_out[:size],
        "test": held_out[size:],
    }
    splits = {}
    for split, numbers in numbers_by_split.items():
        splits[split] = Split(file, [conversations[number] for number in numbers])
    return splits
