"""One corpus per file, and what turns corpora into batches. See `CORPORA`."""

import types
from typing import NamedTuple

from data.corpora import babi_dialog, conversations, cornell, dailydialog, smn, squad, subtitles


class Corpus(NamedTuple):
    """A row of `CORPORA`."""

    task: str
    """What its examples are for; `tasks/<task>/prepare.py` prepares them."""
    reader: types.ModuleType
    """Reads its files. For selection: `find_split(directory, split)`, `read(path, opener)`, `spans(path, size)` and
    `tokenize(text)`; for dialog: `find_tasks`, `read_dialogs`, `read_candidates`, `read_knowledge`, `unseen_entities`
    and `move`; for reading comprehension: `find_splits`, `read`, `tokenize` and `align`; for generation:
    `find_splits`, `read(paths, split)` and `TOKENIZER`, the name of the tokenizer that suits it."""


CORPORA = {
    "smn": Corpus("selection", smn),
    "babi-dialog": Corpus("dialog", babi_dialog),
    "squad": Corpus("reading_comprehension", squad),
    "dailydialog": Corpus("generation", dailydialog),
    "cornell": Corpus("generation", cornell),
    "subtitles": Corpus("generation", subtitles),
    "conversations": Corpus("generation", conversations),
}
"""What prepare.py can read, by the name that `--corpus` takes."""
