"""Prepares a corpus of DAM's release, whose words are ids already: `data.corpora.dam_release`."""

import pathlib

from colloquy.base.files import UserError
from colloquy.data.corpora import dam_release
from colloquy.data.prepared import VECTORS, checked, read_embedding
from colloquy.tasks.selection.arrays import write_split
from colloquy.tasks.selection.data import ARRAYS, Metadata
from colloquy.tasks.selection.split import SelectionSplit
from colloquy.tasks.selection.statistics import Prepared

PUBLISHED_EOS_IDS = {"ubuntu-v1": 28270, "douban": 1}
"""`{--name of prepare.py: id of _EOS_ in the data.pkl that the authors published}`."""


def prepare_release(source, settings, directory):
    """Writes the arrays of all splits into a directory.

    Args:
        source: Directory of the release.
        settings: `tasks.selection.prepare.Settings`.
        directory: Directory of the dataset.

    Returns:
        `Prepared`.
    """
    source = pathlib.Path(source)
    file = source / "data.pkl"
    eos_id = settings.eos_id or PUBLISHED_EOS_IDS.get(settings.name)
    if eos_id is None:
        raise UserError(
            f"{file} lacks the id of _EOS_: "
            "give --eos_id, or --name=ubuntu-v1 (28270) or --name=douban (1)"
        )
    # The vectors bound the ids, so they come first. The examples come last: they take minutes.
    vectors = read_embedding(source / VECTORS)
    if eos_id >= len(vectors):
        raise UserError(
            f"{source}: expected an id of _EOS_ from 1 to {len(vectors) - 1}. Received: {eos_id}"
        )
    vocabulary = None
    words = source / "word2id"
    if words.is_file():
        vocabulary = dam_release.load_word2id(words, eos_id)
    if vocabulary and len(vocabulary) + 1 != len(vectors):
        raise UserError(
            f"{source}: expected {len(vectors) - 1} words, as {VECTORS} has vectors. "
            f"Received: {len(vocabulary)} in word2id"
        )

    files = {}
    with checked(file, "lists of ids and labels"):
        for name, (contexts, responses, labels) in dam_release.read(file).items():
            split = SelectionSplit.of(contexts, responses, labels, eos_id)
            _check_ids(split, f"{file}, {name}", len(vectors))
            if len(split) and not any(eos_id in context for context in contexts):
                raise UserError(
                    f"{file}, {name}: expected contexts with the id of _EOS_, {eos_id}. "
                    "Received: none"
                )
            write_split(split, directory / ARRAYS, name, len(vectors))
            # An empty split has arrays, but does not count as a split of the corpus.
            if len(split):
                files[name] = file
    if not files:
        raise UserError(f"{file}: expected contexts. Received: none")
    # The id is 0 if the words lack _UNK_.
    unk_id = (vocabulary.unk_id or None) if vocabulary else None
    return Prepared(
        settings=settings.replace(eos_id=eos_id),
        vocabulary=vocabulary,
        vectors=vectors,
        metadata=Metadata(eos_id=eos_id, unk_id=unk_id),
        files=files,
        num_unknown={},
    )


def _check_ids(split, where, num_ids):
    """Refuses ids without a vector as a `UserError`."""
    for ids in (split.turns.ids, split.responses.ids):
        if len(ids) and not 0 <= ids.min() <= ids.max() < num_ids:
            raise UserError(
                f"{where}: expected ids from 0 to {num_ids - 1}. "
                f"Received: from {ids.min()} to {ids.max()}"
            )
