"""A prepared response-selection dataset, as prepare.py or DAM's release wrote it, read from disk."""

import dataclasses
import pathlib
import reprlib
from collections.abc import Hashable

import numpy as np

from base.files import UserError
from data import pickles
from data.prepared import FACTS, VECTORS, VOCABULARY, Dataset, checked, read_facts, read_vectors
from data.vocabulary import Vocabulary
from tasks.selection.arrays import ARRAYS, read_split
from tasks.selection.recipes import PUBLISHED_CORPORA
from tasks.selection.split import SelectionSplit
from tasks.selection.text import WHITESPACE_TEXT, check_text

DATA, WORD2ID = "data.pkl", "word2id"
SPLITS = ("train", "dev", "test")
HASHED_WORDS = 2**24
"""More are not hashed to."""
LABELS = {0: 0, 1: 1, "0": 0, "1": 1}


@dataclasses.dataclass(frozen=True)
class SelectionDataset(Dataset):
    """What a prepared directory holds: `train`, `dev` and `test`, each a `SelectionSplit`."""

    vectors: np.ndarray
    """Word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding."""
    vocabulary: Vocabulary | None
    """`None` for the release's published files, which have none."""
    eos_id: int
    unk_id: int | None
    """The id of `_UNK_`; `None` where it is not known."""
    hashed_words: int
    """Ids of unknown words after those of the vocabulary, see `data.vocabulary.Vocabulary`."""
    text: dict
    """`tokenizer` and `lower` of `data.tokenizers.words_of`: how texts become its words."""

    def facts(self):
        own = {"eos_id": self.eos_id, "unk_id": self.unk_id, "hashed_words": self.hashed_words, "text": self.text}
        return {**super().facts(), **own}


def load_dataset(path, eos_id=None, name=None):
    """Reads a prepared directory: `word_embedding.pkl`, `arrays/` or, where there are none, `data.pkl`, and, where they
    exist, `dataset.json` and `vocabulary.txt` or `word2id`.

    Args:
        path: The directory.
        eos_id: `_EOS_` id, needed where there is no `dataset.json`; else the same.
        name: Of the corpus; `None`: what `dataset.json` says, or the directory's. A published one has its own `_EOS_`.

    Raises:
        UserError: on a missing or malformed file, and where files contradict each other.
    """
    path = pathlib.Path(path)
    if not path.is_dir():
        raise UserError(f"{path} is no directory; prepare.py makes one")
    facts = read_facts(path, "selection") if (path / FACTS).is_file() else {}
    vectors = read_vectors(path / VECTORS)
    if not facts and eos_id is None:
        eos_id = PUBLISHED_CORPORA.get(name)
    eos_id = _eos_id(path, facts, eos_id, len(vectors))
    hashed = facts.get("hashed_words", 0)
    if type(hashed) is not int or not 0 <= hashed <= HASHED_WORDS:
        raise UserError(f"{path / FACTS}: expected hashed_words from 0 to {HASHED_WORDS}. Received: {hashed!r:.60}")
    vocabulary = _vocabulary(path, eos_id, vectors.shape)
    if (path / ARRAYS).is_dir():
        splits = {name: read_split(path / ARRAYS, name, len(vectors) + hashed) for name in SPLITS}
    else:
        splits = _splits(path / DATA, eos_id, len(vectors) + hashed)
    name, unk_id = name or facts.get("name", path.name), facts.get("unk_id")
    text = check_text(facts.get("text", WHITESPACE_TEXT), path / "dataset.json")
    return SelectionDataset(path, name, splits, vectors, vocabulary, eos_id, unk_id, hashed, text)


def _eos_id(path, facts, given, rows):
    found = facts.get("eos_id", given)
    if found is None:
        raise UserError(
            f"{path} has no {FACTS} that says the id of _EOS_: give --eos_id, or --name=ubuntu-v1 (28270) or "
            "--name=douban (1) for the release's files"
        )
    if type(found) is not int or not 0 < found < rows:
        raise UserError(f"{path}: expected an id of _EOS_ from 1 to {rows - 1}. Received: {reprlib.repr(found)}")
    if given not in (None, found):
        raise UserError(f"{path / FACTS} says that the id of _EOS_ is {found}. Received: {given}")
    return found


def _vocabulary(path, eos_id, shape):
    """That of `vocabulary.txt`, or of the release's `word2id`; `None` where there is neither."""
    if (path / VOCABULARY).is_file():
        file, vocabulary = path / VOCABULARY, Vocabulary.load(path / VOCABULARY)
    elif (path / WORD2ID).is_file():
        file, vocabulary = path / WORD2ID, Vocabulary.load_word2id(path / WORD2ID, eos_id)
    else:
        return None
    if vocabulary.eos_id != eos_id:
        raise UserError(f"{file}: expected _EOS_ to be word {eos_id}. Received: word {vocabulary.eos_id}")
    if len(vocabulary) + 1 != shape[0]:
        raise UserError(
            f"{path}: {file.name} has {len(vocabulary)} words, so {VECTORS} should "
            f"have shape ({len(vocabulary) + 1}, dimension). Received: {shape}"
        )
    return vocabulary


def _splits(file, eos_id, rows):
    data = pickles.load(file)
    if not isinstance(data, (tuple, list)) or len(data) != len(SPLITS):
        raise UserError(f"{file}: expected a tuple (train, dev, test). Received: {type(data)}")
    return {name: _split(file, name, split, eos_id, rows) for name, split in zip(SPLITS, data, strict=True)}


def _split(file, name, split, eos_id, rows):
    if not isinstance(split, dict) or not {"y", "c", "r"} <= split.keys():
        raise UserError(f"{file}: expected {name} to be a dict with y, c and r")
    y, c, r = split["y"], split["c"], split["r"]
    with checked(file, f"lists of ids in {name}"):
        if not len(y) == len(c) == len(r):
            raise UserError(
                f"{file}: expected y, c and r of {name} to be equally long. Received: {len(y)}, {len(c)}, {len(r)}"
            )
        labels = [LABELS.get(label) if isinstance(label, Hashable) else None for label in y]
        if None in labels:
            wrong = reprlib.repr(y[labels.index(None)])
            raise UserError(f"{file}: expected the labels of {name} to be 0 or 1. Received: {wrong}")
        built = SelectionSplit.of(c, r, labels, eos_id)
    for ids in (built.turns.ids, built.responses.ids):
        if len(ids) and not 0 <= ids.min() <= ids.max() < rows:
            raise UserError(
                f"{file}: {name} holds ids from {ids.min()} to {ids.max()}, but {VECTORS} has rows 0 to {rows - 1}"
            )
    if len(c) and not (built.turns.ids == eos_id).any():
        raise UserError(f"{file}: expected contexts of {name} to hold the id of _EOS_. Received: {eos_id}")
    return built
