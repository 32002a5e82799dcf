"""One corpus a file, and what turns corpora into batches. See `CORPORA`."""

import types
from typing import NamedTuple

from data import babi_dialog, smn, squad


class Corpus(NamedTuple):
    """A row of `CORPORA`."""

    task: str
    """What its examples are for; `data.prepare_<task>` prepares them."""
    reader: types.ModuleType
    """Reads its files. For selection: `find_split(directory, split)`, `read(path, opener)` and `tokenize(text)`; for
    dialog: `find_tasks`, `read_dialogs`, `read_candidates`, `read_knowledge`, `unseen_entities` and `move`;
    for reading: `find_splits`, `read`, `tokenize` and `align`."""


CORPORA = {
    "smn": Corpus("selection", smn),
    "babi-dialog": Corpus("dialog", babi_dialog),
    "squad": Corpus("reading", squad),
}
"""What prepare.py can read, by the name that `--corpus` takes."""
