"""Readers of raw corpora, one per file, see `CORPORA`.

Files are UTF-8; those that end in `.gz` are decompressed. A missing, empty or malformed one is a
`UserError` that names the file and the line.
"""

import types
from typing import NamedTuple

from colloquy.data.corpora import (
    babi_dialog,
    conversations,
    cornell,
    dailydialog,
    smn,
    squad,
    subtitles,
)


class Corpus(NamedTuple):
    """A row of `CORPORA`."""

    task: str
    """The task whose `prepare.py` prepares it."""
    reader: types.ModuleType
    """Reader of its files. For selection: `find_split(directory, split)`, `read(path, opener)`,
    `spans(path, size)`. For dialog: `find_tasks`, `read_dialogs`, `read_candidates`,
    `read_knowledge`, `unseen_entities` and `move`. For reading comprehension: `find_splits`,
    `read`, `tokenize` and `align`. For generation: `find_splits` and `read(paths, split)`.
    `TOKENIZER` names the tokenizer that suits a corpus for selection or generation."""


CORPORA = {
    "smn": Corpus("selection", smn),
    "babi-dialog": Corpus("dialog", babi_dialog),
    "squad": Corpus("reading_comprehension", squad),
    "dailydialog": Corpus("generation", dailydialog),
    "cornell": Corpus("generation", cornell),
    "subtitles": Corpus("generation", subtitles),
    "conversations": Corpus("generation", conversations),
}
"""Values of `--corpus`."""
