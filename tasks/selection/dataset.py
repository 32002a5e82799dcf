"""A prepared response-selection dataset, as prepare.py or DAM's release wrote it, read from disk."""

import dataclasses
import json
import pathlib

import numpy as np

from base.files import UserError
from data import pickles
from data.prepared import read_vectors
from data.vocabulary import Vocabulary
from tasks.selection.batches import SelectionSplit
from tasks.selection.text import WHITESPACE_TEXT, check_text

SPLITS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True)
class SelectionDataset:
    """What a prepared directory holds."""

    path: pathlib.Path
    name: str
    """The corpus, as in `results/published.json` where it has published scores."""
    splits: dict[str, SelectionSplit]
    """`train`, `dev` and `test`; an absent one has no lines."""
    vectors: np.ndarray
    """Word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding."""
    vocabulary: Vocabulary | None
    """`None` for the release's published files, which have none."""
    eos_id: int
    unk_id: int | None
    text: dict
    """`tokenizer` and `lower` of `data.tokenizers.words_of`: how texts become its words."""

    def facts(self):
        """What a run remembers of its dataset, ready for JSON."""
        return {
            "path": str(self.path.resolve()),
            "name": self.name,
            "eos_id": self.eos_id,
            "unk_id": self.unk_id,
            "text": self.text,
        }


def load_dataset(path, eos_id=None):
    """Reads `data.pkl`, `word_embedding.pkl` and, where they exist, `vocabulary.txt` and `dataset.json`.

    Args:
        path: The directory.
        eos_id: `_EOS_` id, needed where there is no `dataset.json`; else the same.

    Raises:
        UserError: on a missing or malformed file, and where files contradict each other.
    """
    path = pathlib.Path(path)
    if not path.is_dir():
        raise UserError(f"{path} is no directory; prepare.py makes one")
    facts = _facts(path / "dataset.json")
    if eos_id is None:
        eos_id = facts.get("eos_id")
    elif eos_id != facts.get("eos_id", eos_id):
        raise UserError(f"{path / 'dataset.json'} says that the id of _EOS_ is {facts['eos_id']}. Received: {eos_id}")
    if eos_id is None:
        raise UserError(
            f"{path} has no dataset.json that says the id of _EOS_: give --eos_id "
            "(the release's: 28270 for Ubuntu, 1 for Douban)"
        )
    vectors = read_vectors(path / "word_embedding.pkl")
    if not 0 < eos_id < len(vectors):
        raise UserError(f"{path}: expected an id of _EOS_ from 1 to {len(vectors) - 1}. Received: {eos_id}")
    vocabulary = None
    if (path / "vocabulary.txt").is_file():
        vocabulary = Vocabulary.load(path / "vocabulary.txt")
        if len(vocabulary) + 1 != len(vectors):
            raise UserError(
                f"{path}: vocabulary.txt has {len(vocabulary)} words, so word_embedding.pkl should "
                f"have shape ({len(vocabulary) + 1}, dimension). Received: {vectors.shape}"
            )
    splits = _splits(path / "data.pkl", eos_id, len(vectors))
    name, unk_id = facts.get("name", path.name), facts.get("unk_id")
    text = check_text(facts.get("text", WHITESPACE_TEXT), path / "dataset.json")
    return SelectionDataset(path, name, splits, vectors, vocabulary, eos_id, unk_id, text)


def _facts(file):
    if not file.is_file():
        return {}
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{file}: expected JSON. {error}") from error
    if not isinstance(facts, dict) or facts.get("task") != "selection":
        raise UserError(f'{file}: expected an object with "task": "selection"')
    return facts


def _splits(file, eos_id, rows):
    data = pickles.load(file)
    if not isinstance(data, (tuple, list)) or len(data) != len(SPLITS):
        raise UserError(f"{file}: expected a tuple (train, dev, test). Received: {type(data)}")
    splits = {}
    for name, split in zip(SPLITS, data, strict=True):
        if not isinstance(split, dict) or not {"y", "c", "r"} <= split.keys():
            raise UserError(f"{file}: expected {name} to be a dict with y, c and r")
        y, c, r = split["y"], split["c"], split["r"]
        try:
            if not len(y) == len(c) == len(r):
                raise UserError(
                    f"{file}: expected y, c and r of {name} to be equally long. Received: {len(y)}, {len(c)}, {len(r)}"
                )
            built = SelectionSplit.of(c, r, [int(label) for label in y], eos_id)
        except (TypeError, ValueError, OverflowError) as error:
            raise UserError(f"{file}: expected lists of ids in {name}. {error}") from error
        for ids in (built.turns.ids, built.responses.ids):
            if len(ids) and not 0 <= ids.min() <= ids.max() < rows:
                raise UserError(
                    f"{file}: {name} holds ids from {ids.min()} to {ids.max()}, but "
                    f"word_embedding.pkl has rows 0 to {rows - 1}"
                )
        if not np.isin(built.label, (0, 1)).all():
            raise UserError(f"{file}: expected the labels of {name} to be 0 or 1")
        if len(c) and not any(eos_id in context for context in c):
            raise UserError(f"{file}: expected contexts of {name} to hold the id of _EOS_. Received: {eos_id}")
        splits[name] = built
    return splits
