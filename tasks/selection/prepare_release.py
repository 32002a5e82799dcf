"""Prepares a corpus of DAM's release, whose words are ids already: `data.corpora.dam_release`."""

import pathlib

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.corpora import dam_release
from colloquy.data.prepared import VECTORS, checked, read_vector_table
from colloquy.tasks.selection.data import ARRAYS, write_split
from colloquy.tasks.selection.recipes import PUBLISHED_CORPORA
from colloquy.tasks.selection.split import SelectionSplit
from colloquy.tasks.selection.statistics import Prepared, statistics_of


def prepare_release(source, settings, directory):
    """Writes the arrays of all splits into a directory.

    Args:
        source: Directory of the release.
        settings: `tasks.selection.prepare.Settings`.
        directory: Directory of the dataset.

    Returns:
        `Prepared`.
    """
    # The vectors first: a wrong id need not wait for the examples, which take minutes to read.
    file = pathlib.Path(source) / "data.pkl"
    vectors = read_vector_table(pathlib.Path(source) / VECTORS)
    eos_id = settings.eos_id or PUBLISHED_CORPORA.get(settings.name)
    if eos_id is None:
        how = "give --eos_id, or --name=ubuntu-v1 (28270) or --name=douban (1)"
        raise UserError(f"{file} lacks the id of _EOS_: {how}")
    if eos_id >= len(vectors):
        expected = f"expected an id of _EOS_ from 1 to {len(vectors) - 1}"
        raise UserError(f"{source}: {expected}. Received: {eos_id}")
    with checked(file, "lists of ids and labels"):
        splits = dam_release.read(source)
    vocabulary = dam_release.read_vocabulary(source, eos_id)
    if vocabulary and len(vocabulary) + 1 != len(vectors):
        expected = f"expected {len(vectors) - 1} words, one per vector"
        raise UserError(f"{source}/word2id: {expected}. Received: {len(vocabulary)}")
    unk_id = vocabulary.unk_id if vocabulary else 0

    statistics = {}
    (directory / ARRAYS).mkdir()
    for name, (contexts, responses, labels) in splits.items():
        with checked(file, f"lists of ids in {name}"):
            split = SelectionSplit.of(contexts, responses, labels, eos_id)
        _check_ids(split, f"{file}, {name}", eos_id, len(vectors))
        write_split(split, directory / ARRAYS, name, len(vectors))
        if len(split):
            unknown = 0
            if unk_id:
                unknown = int(np.sum(split.turns.flat() == unk_id))
                unknown += int(np.sum(split.responses.flat() == unk_id))
            statistics[name] = {"file": file.name, **statistics_of(split, unknown)}
    return Prepared(
        settings=settings.replace(eos_id=eos_id),
        vocabulary=vocabulary,
        vectors=vectors,
        statistics=statistics,
        metadata={"eos_id": eos_id, "unk_id": unk_id or None, "hashed_words": 0},
    )


def _check_ids(split, where, eos_id, num_ids):
    for ids in (split.turns.ids, split.responses.ids):
        if len(ids) and not 0 <= ids.min() <= ids.max() < num_ids:
            received = f"from {ids.min()} to {ids.max()}"
            raise UserError(f"{where}: expected ids from 0 to {num_ids - 1}. Received: {received}")
    if len(split) and not (split.turns.ids == eos_id).any():
        raise UserError(f"{where}: expected contexts with the id of _EOS_. Received: {eos_id}")
