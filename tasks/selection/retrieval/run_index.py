"""The index of a run, which is built once from the conversations that the run has."""

import hashlib
import json
import os
import pathlib
import sys
import tempfile

from colloquy.base.files import UserError, check_output, checksums_of, writing
from colloquy.tasks.selection.retrieval.build import build, of_corpus
from colloquy.tasks.selection.retrieval.index import VERSION

# Directories of a run: a finished index, and conversations of the format `smn`.
INDEX = "index"
PAIRS = "pairs"


def index_of_run(path, predictor):
    """The index of the run of a `tasks.selection.predictor.SelectionPredictor`.

    It is the directory `index` of the run. If the run has none, the index is built from its
    directory `pairs`:

    - in `$XDG_CACHE_HOME/colloquy`, under a name that depends on its conversations and words;
    - where that cannot be written, as in a read-only container: in the user's directory for
      temporary files.

    Nothing is written into the run.

    Returns:
        Its directory; `None` if the run has neither directory.
    """
    own_index = path / INDEX
    if own_index.is_dir():
        return own_index
    conversations = path / PAIRS
    if not conversations.is_dir():
        return None

    name = _name_of_index(conversations, predictor)
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    index = pathlib.Path(cache, "colloquy", name)
    place = f"{index}"
    if not index.is_dir():
        try:
            check_output(index)
        except UserError as error:
            index = _own_temporary_directory() / name
            place = f"{error}; temporary files have it: {index}"
    if index.is_dir():
        return index

    print(f"{place}: built once, of {conversations}", file=sys.stderr)
    try:
        build(predictor, index, of_corpus("smn", conversations))
    except UserError:
        # Another process may have built it meanwhile.
        if not index.is_dir():
            raise
    return index


def _name_of_index(conversations, predictor):
    """A name for the index of conversations, a directory; it depends on all that the index has."""
    contents = [
        VERSION,
        predictor.vocabulary.digest(),
        predictor.text.to_json(),
        checksums_of(conversations),
    ]
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


def _own_temporary_directory():
    """Makes the user's directory for temporary files, to which no other user can write.

    Another user could make a directory of this name first, and put an index into it.
    """
    directory = pathlib.Path(tempfile.gettempdir(), f"colloquy-{os.getuid()}")
    with writing(directory):
        directory.mkdir(mode=0o700, exist_ok=True)
    if directory.lstat().st_uid != os.getuid():
        raise UserError(f"{directory} belongs to another user")
    return directory
