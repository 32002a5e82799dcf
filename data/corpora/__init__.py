"""Readers of raw corpora, one per file, see `CORPORA`.

Files are UTF-8; those that end in `.gz` are decompressed. A missing, empty or malformed one is a
`UserError` that names the file and the line.
"""

import types
from typing import NamedTuple

from colloquy.data.corpora import (
    babi_dialog,
    chitchat,
    conversations,
    cornell,
    dailydialog,
    dam_release,
    smn,
    squad,
    subtitles,
)


class Corpus(NamedTuple):
    """A row of `CORPORA`."""

    tasks: tuple[str, ...]
    """The tasks whose `prepare.py` can prepare it, the default one first."""
    reader: types.ModuleType
    """Reader of its files. Of lines for selection: `find_split(directory, split)`,
    `read(path, report)`. Of conversations, for selection and generation:
    `find_splits(directory)` and `read(paths, split, report)`, which `splits.read_splits` calls with
    a `data.report.Report`. For dialog:
    `find_tasks`, `read_dialogs`, `read_candidates`, `read_knowledge`, `unseen_entities` and `move`.
    For reading comprehension: `find_splits` and `read`. `TOKENIZER` names the
    tokenizer that suits a corpus for selection or generation."""

    @property
    def task(self) -> str:
        """The task by default."""
        return self.tasks[0]


CORPORA = {
    "chitchat": Corpus(("selection", "generation"), chitchat),
    "smn": Corpus(("selection",), smn),
    "dam-release": Corpus(("selection",), dam_release),
    "babi-dialog": Corpus(("dialog",), babi_dialog),
    "squad": Corpus(("reading_comprehension",), squad),
    "dailydialog": Corpus(("generation", "selection"), dailydialog),
    "cornell": Corpus(("generation", "selection"), cornell),
    "subtitles": Corpus(("generation", "selection"), subtitles),
    "conversations": Corpus(("generation", "selection"), conversations),
}
"""Values of `--corpus`."""
