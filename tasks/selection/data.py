"""A prepared response-selection dataset: its files, read and checked.

    data.pkl   (train, dev, test), each {"y": labels, "c": contexts, "r": responses} of word ids;
               each turn of a context is followed by the id of `_EOS_`. DAM's release can train on
               it.
    arrays/    The same as flat arrays, `SPLIT.NAME.npy`, which are mapped into memory:
               ids                                 words of all turns and responses in corpus order,
               uint16 or uint32 turn_starts, turn_lengths           turns of all contexts, within
               `ids` context_start, context_turns        first turn of each context, number of its
               turns response_starts, response_lengths   response of each line, within `ids`
               context, label                      context of each line; 1 positive, 0 negative

See `data.prepared` for the other files.
"""

import dataclasses
import pathlib
import reprlib
from collections.abc import Hashable
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError
from colloquy.data import pickles
from colloquy.data.flat_arrays import StoredArray
from colloquy.data.prepared import (
    METADATA,
    VECTORS,
    VOCABULARY,
    Dataset,
    checked,
    read_metadata,
    read_vectors,
)
from colloquy.data.sequences import Sequences
from colloquy.data.text_files import validated
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.selection.recipes import PUBLISHED_CORPORA
from colloquy.tasks.selection.split import SelectionSplit

DATA, ARRAYS, WORD2ID = "data.pkl", "arrays", "word2id"
SPLITS = ("train", "dev", "test")
TYPES = {
    **{
        "turn_starts": "int64",
        "turn_lengths": "int32",
        "context_start": "int64",
        "context_turns": "int32",
    },
    **{
        "response_starts": "int64",
        "response_lengths": "int32",
        "context": "int32",
        "label": "int32",
    },
}
"""The arrays of a split, but for `ids`."""
LABELS = {0: 0, 1: 1, "0": 0, "1": 1}


class TokenizerConfig(Config):
    """Arguments of `data.tokenizers.words_of`; the defaults suit the release's files."""

    tokenizer: Literal[WHITESPACE, *TOKENIZERS] = WHITESPACE
    lower: bool = False


class Metadata(Config):
    """Metadata of a prepared directory that runs on it keep."""

    eos_id: int | None = None
    """The id of `_EOS_`."""
    unk_id: Positive | None = None
    """The id of `_UNK_`; `None`: not known."""
    hashed_words: Annotated[int, Field(ge=0, le=2**24)] = 0
    """Ids of unknown words after those of the vocabulary, see `data.vocabulary.Vocabulary`."""
    text: TokenizerConfig = TokenizerConfig()


def check_metadata(found, file):
    """The `Metadata` in the JSON object of a file, as a dict; a wrong one is a `UserError`."""
    return validated(
        file, Metadata, {name: found[name] for name in Metadata.model_fields.keys() & found.keys()}
    ).to_json()


def read_tokenizer_config(run):
    """The settings of `data.tokenizers.words_of` that an `engine.run.Run` was trained with."""
    return check_metadata(run.dataset, run.path)["text"]


@dataclasses.dataclass(frozen=True)
class SelectionDataset(Dataset):
    """A prepared directory: `splits` has `train`, `dev` and `test`, each a `SelectionSplit`; see
    also `Metadata`.
    """

    vectors: np.ndarray  # word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding
    vocabulary: Vocabulary | None  # `None` for the release's published files, which lack one
    eos_id: int
    unk_id: int | None
    hashed_words: int
    text: dict

    def metadata(self):
        return {
            **super().metadata(),
            **{name: getattr(self, name) for name in Metadata.model_fields},
        }


def load_dataset(path, eos_id=None, name=None):
    """Reads a prepared directory; a `UserError` if a file is missing or malformed, or files
    contradict each other.

    `eos_id` is needed where there is no `dataset.json`; else it must agree. `name` is that of the
    corpus, by default of `dataset.json` or the directory; that of a published corpus implies its
    `eos_id`.
    """
    path = pathlib.Path(path)
    if not path.is_dir():
        raise UserError(f"{path} is no directory; prepare.py makes one")
    found = read_metadata(path, "selection") if (path / METADATA).is_file() else {}
    metadata, vectors = check_metadata(found, path / METADATA), read_vectors(path / VECTORS)
    if not found and eos_id is None:
        eos_id = PUBLISHED_CORPORA.get(name)
    stated = metadata["eos_id"]
    if stated is None and eos_id is None:
        how = "give --eos_id, or --name=ubuntu-v1 (28270) or --name=douban (1) for the release's files"
        raise UserError(f"{path} lacks {METADATA} with the id of _EOS_: {how}")
    if None not in (stated, eos_id) and stated != eos_id:
        raise UserError(
            f"{path / METADATA} says that the id of _EOS_ is {stated!r:.20}. Received: {eos_id}"
        )
    eos_id = metadata["eos_id"] = eos_id if stated is None else stated
    if not 0 < eos_id < len(vectors):
        wrong = f"expected an id of _EOS_ from 1 to {len(vectors) - 1}. Received: {reprlib.repr(eos_id)}"
        raise UserError(f"{path}: {wrong}")
    vocabulary = _vocabulary(path, eos_id, vectors.shape)
    words = len(vectors) + metadata["hashed_words"]
    if (path / ARRAYS).is_dir():
        splits = {split: read_split(path / ARRAYS, split, words) for split in SPLITS}
    else:
        data = pickles.load(path / DATA)
        if not isinstance(data, (tuple, list)) or len(data) != len(SPLITS):
            raise UserError(
                f"{path / DATA}: expected a tuple (train, dev, test). Received: {type(data)}"
            )
        lists = zip(SPLITS, data, strict=True)
        splits = {
            name: _split_of(path / DATA, name, of_split, eos_id, words) for name, of_split in lists
        }
    return SelectionDataset(
        path, name or found.get("name", path.name), splits, vectors, vocabulary, **metadata
    )


def _vocabulary(path, eos_id, shape):
    """The words of `vocabulary.txt`, or of the release's `word2id`; `None` if there is neither."""
    file = next((path / name for name in (VOCABULARY, WORD2ID) if (path / name).is_file()), None)
    if file is None:
        return None
    vocabulary = (
        Vocabulary.load(file) if file.name == VOCABULARY else Vocabulary.load_word2id(file, eos_id)
    )
    if vocabulary.eos_id != eos_id:
        raise UserError(
            f"{file}: expected _EOS_ to be word {eos_id}. Received: word {vocabulary.eos_id}"
        )
    if len(vocabulary) + 1 != shape[0]:
        expected = (
            f"so {VECTORS} should have shape ({len(vocabulary) + 1}, dimension). Received: {shape}"
        )
        raise UserError(f"{path}: {file.name} has {len(vocabulary)} words, {expected}")
    return vocabulary


def as_texts(sequences, index, vocabulary):
    """The lists of ids at an index as texts, with spaces between the words."""
    return [" ".join(map(vocabulary.word, ids)) for ids in sequences.lists(index)]


def _split_of(file, name, lists, eos_id, words):
    if not isinstance(lists, dict) or not {"y", "c", "r"} <= lists.keys():
        raise UserError(f"{file}: expected {name} to be a dict with y, c and r")
    y, c, r = lists["y"], lists["c"], lists["r"]
    with checked(file, f"lists of ids in {name}"):
        if not len(y) == len(c) == len(r):
            raise ValueError(
                f"y, c and r must be equally long. Received: {len(y)}, {len(c)}, {len(r)}"
            )
        labels = [LABELS.get(label) if isinstance(label, Hashable) else None for label in y]
        if None in labels:
            wrong = reprlib.repr(y[labels.index(None)])
            raise UserError(
                f"{file}: expected the labels of {name} to be 0 or 1. Received: {wrong}"
            )
        split = SelectionSplit.of(c, r, labels, eos_id)
    for ids in (split.turns.ids, split.responses.ids):
        if len(ids) and not 0 <= ids.min() <= ids.max() < words:
            held = f"{name} holds ids from {ids.min()} to {ids.max()}"
            raise UserError(f"{file}: {held}, but {VECTORS} has rows 0 to {words - 1}")
    if len(c) and not (split.turns.ids == eos_id).any():
        raise UserError(
            f"{file}: expected contexts of {name} to hold the id of _EOS_. Received: {eos_id}"
        )
    return split


def path_of(directory, split, name):
    return pathlib.Path(directory) / f"{split}.{name}.npy"


def read_split(directory, split, words, ids="ids"):
    """Maps the arrays of a split, whose `ids` are below `words`, into memory, after one pass over
    them.

    A `UserError` if a file is missing, or arrays contradict each other.
    """
    found = {name: StoredArray(path_of(directory, split, name)) for name in (ids, *TYPES)}
    for name, array in found.items():
        expected = [TYPES[name]] if name in TYPES else ["uint16", "uint32"]
        if array.dtype not in expected:
            raise UserError(
                f"{array.path}: expected {' or '.join(expected)}. Received: {array.dtype}"
            )
    for name in ("response_starts", "label"):
        _check_length(found[name], found["context"])
    _check_range(found[ids], words)
    _check_range(found["label"], 2)
    _check_range(found["context"], len(found["context_start"]), ascending=True)
    lists = [("turn_starts", "turn_lengths", ids), ("response_starts", "response_lengths", ids)]
    for starts, lengths, of in [*lists, ("context_start", "context_turns", "turn_starts")]:
        _check_places(found[starts], found[lengths], len(found[of]))
    arrays = {name: array.mapped() for name, array in found.items()}
    turns, responses = (
        Sequences(*(arrays[name] for name in (of, starts, lengths)))
        for starts, lengths, of in lists
    )
    lines = {name: arrays[name] for name in ("context_start", "context_turns", "context", "label")}
    return SelectionSplit(turns=turns, responses=responses, **lines)


def _check_length(array, other):
    if len(array) != len(other):
        raise UserError(f"{array.path}: expected {len(other):,} numbers. Received: {len(array):,}")


def _check_range(array, limit, ascending=False):
    last = 0
    for _, block in array.blocks():
        wrong = (block < 0) | (block >= limit)
        if ascending:
            wrong |= np.diff(block, prepend=last) < 0
            last = block[-1]
        if wrong.any():
            expected = f"{'ascending ' * ascending}numbers from 0 to {limit - 1}"
            raise UserError(f"{array.path}: expected {expected}. Received: {block[wrong][0]}")


def _check_places(starts, lengths, limit):
    """Refuses lists that lie outside an array of `limit` numbers."""
    _check_length(starts, lengths)
    _check_range(lengths, limit + 1)
    for place, first in starts.blocks():
        wrong = (first < 0) | (
            first > limit - lengths.read(place, place + len(first)).astype(np.int64)
        )
        if wrong.any():
            expected = f"lists in {limit} numbers"
            raise UserError(
                f"{starts.path}: expected {expected}. Received: one that starts at {first[wrong][0]}"
            )
