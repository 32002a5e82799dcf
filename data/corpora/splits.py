"""The splits of a corpus of conversations: its own, or drawn by a fixed seed."""

import collections
import math
import pathlib
import random
import re
from typing import Any, NamedTuple

from colloquy.base.files import PathLike, UserError, in_one_line
from colloquy.data.corpora.messages import Conversations
from colloquy.data.mojibake import REPAIRED, repair
from colloquy.data.report import Report

ALL = "all"
"""The key of `find_splits` for the files of a corpus without splits of its own."""
HELD_OUT = 500
"""Most conversations in dev, and in test, that are drawn."""
MIN_TURNS = 4
"""Turns of each conversation in dev and test, unless most conversations are shorter."""
SEED = 1
SHOWN_TURNS = 3
"""The most frequent turns that the report shows: notes of a program and empty values repeat."""
HTML = re.compile(
    r"&(?:#\d{1,6}|#x[0-9a-f]{1,6}|amp|lt|gt|quot|nbsp|apos);|<br */?>", re.IGNORECASE
)
LOST = "\ufffd"


class Split(NamedTuple):
    """The conversations of a split."""

    file: pathlib.Path
    """The file that they come from, or the directory of several files, for messages."""
    conversations: Conversations
    """Lists of turns."""


def read_splits(
    reader: Any, source: PathLike | None, report: Report | None = None
) -> dict[str, Split]:
    """Reads a corpus of conversations.

    Args:
        reader: Module with `find_splits` and `read`, see `data.corpora.Corpus`.
        source: Its directory; `None` if the reader finds it.
        report: `data.report.Report` of what was read.

    Returns:
        `{name: Split}`, with at least `train` and `dev`.
    """
    report = report or Report()
    splits = {}
    for split, files in reader.find_splits(source).items():
        conversations = reader.read(files, split, report)
        report.counts["conversations"] += len(conversations)
        report.counts["turns"] += sum(len(turns) for turns in conversations)
        origin = files[0] if len(files) == 1 else files[0].parent
        _repair(origin, conversations, report)
        splits[split] = Split(origin, conversations)
    _note_texts([turns for split in splits.values() for turns in split.conversations], report)
    if ALL not in splits:
        return splits
    report.note("train, dev and test were drawn from all conversations")
    return draw_splits(*splits[ALL])


def _repair(origin, conversations, report):
    """Repairs the turns of conversations by `data.mojibake`, in place."""
    num_repaired = 0
    for turns in conversations:
        for place, text in enumerate(turns):
            turns[place] = repair(text)
            num_repaired += turns[place] != text
    if num_repaired:
        report.note(f"{origin}: {REPAIRED} in {num_repaired:,} turns")


def _note_texts(conversations, report):
    """Notes the turns that repeat most, and those with marks of a page or with lost characters."""
    counts = collections.Counter()
    num_html = 0
    num_lost = 0
    for turns in conversations:
        counts.update(turns)
        for text in turns:
            num_html += HTML.search(text) is not None
            num_lost += LOST in text
    repeated = [(text, count) for text, count in counts.most_common(SHOWN_TURNS) if count > 2]
    if repeated:
        shown = ", ".join(f'{count:,} x "{in_one_line(text, 40)}"' for text, count in repeated)
        report.note(f"most frequent turns: {shown}")
    if num_html:
        report.note(f"{num_html:,} turns have marks of HTML, such as &amp; or <br>, which stay")
    if num_lost:
        report.note(f"{num_lost:,} turns have U+FFFD: their file has lost these characters")


def draw_splits(file: pathlib.Path, conversations: Conversations) -> dict[str, Split]:
    """Draws train, dev and test, `{name: Split}`.

    A sixth of the conversations is dev, a sixth test, each at most `HELD_OUT`.
    """
    if len(conversations) < 3:
        expected = "expected at least 3 conversations, for train, dev and test"
        raise UserError(f"{file}: {expected}. Received: {len(conversations)}")
    long = [number for number, turns in enumerate(conversations) if len(turns) >= MIN_TURNS]
    if len(long) < math.ceil(len(conversations) / 2):
        long = list(range(len(conversations)))

    size = min(HELD_OUT, max(1, len(long) // 6))
    held_out = random.Random(SEED).sample(long, 2 * size)
    train = set(range(len(conversations))).difference(held_out)
    numbers_by_split = {
        "train": sorted(train),
        "dev": held_out[:size],
        "test": held_out[size:],
    }
    splits = {}
    for split, numbers in numbers_by_split.items():
        splits[split] = Split(file, [conversations[number] for number in numbers])
    return splits
