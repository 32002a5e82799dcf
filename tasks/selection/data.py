"""A prepared response-selection dataset: its files, read and checked.

    arrays/    `SPLIT.NAME.npy`, arrays of whole numbers, which are mapped into memory

The arrays of a split:

    turn_ids           words of the turns of all contexts, uint16 or uint32
    turn_lengths       number of words of each turn
    context_turns      number of turns of each context
    context_lines      number of lines, that is of candidates, of each context
    response_ids       words of the responses of all lines, uint16 or uint32
    response_lengths   number of words of each response
    label              of each line: 1 positive, 0 negative

See `data.prepared` for the other files.
"""

import dataclasses
import pathlib
import reprlib
from typing import Annotated

import numpy as np
from pydantic import Field

from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError
from colloquy.data.flat_arrays import map_array
from colloquy.data.prepared import (
    METADATA,
    VECTORS,
    VOCABULARY,
    Dataset,
    read_metadata,
    read_vector_table,
)
from colloquy.data.sequences import Sequences
from colloquy.data.text_files import validated
from colloquy.data.tokenizer_config import TokenizerConfig
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.selection.split import SelectionSplit

ARRAYS = "arrays"
SPLITS = ("train", "dev", "test")
ARRAY_NAMES = {
    "turn_ids": None,
    "turn_lengths": "int32",
    "context_turns": "int32",
    "context_lines": "int32",
    "response_ids": None,
    "response_lengths": "int32",
    "label": "int32",
}
"""The arrays of a split with their types; `None`: see `ids_dtype`."""


class Metadata(Config):
    """Metadata of a prepared directory that runs on it keep."""

    eos_id: int | None = None
    """The id of `_EOS_`."""
    unk_id: Positive | None = None
    """The id of `_UNK_`; `None`: not known."""
    hashed_words: Annotated[int, Field(ge=0, le=2**24)] = 0
    """Ids of unknown words after those of the vocabulary, see `data.vocabulary.Vocabulary`."""
    text: TokenizerConfig = TokenizerConfig()
    """How texts become words."""


def check_metadata(values, file):
    """Returns the fields of `Metadata` of a JSON object, checked, as a dict.

    A wrong one is a `UserError` that names `file`.
    """
    known = {name: value for name, value in values.items() if name in Metadata.model_fields}
    return validated(file, Metadata, known).to_json()


def read_tokenizer_config(run):
    """The settings of `data.tokenizers.words_of` that an `engine.run.Run` was trained with."""
    return check_metadata(run.dataset, run.path)["text"]


@dataclasses.dataclass(frozen=True)
class SelectionDataset(Dataset):
    """A prepared directory: `splits` has `train`, `dev` and `test`, each a `SelectionSplit`; see
    also `Metadata`.
    """

    vectors: np.ndarray  # word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding
    vocabulary: Vocabulary | None  # `None` for a release that lacks the words
    eos_id: int
    unk_id: int | None
    hashed_words: int
    text: dict

    def metadata(self):
        own = {name: getattr(self, name) for name in Metadata.model_fields}
        return {**super().metadata(), **own}


def load_dataset(path):
    """Reads a prepared directory.

    Raises:
        UserError: A file is missing or malformed, or files contradict each other.
    """
    path = pathlib.Path(path)
    values = read_metadata(path, "selection")
    metadata = check_metadata(values, path / METADATA)
    vectors = read_vector_table(path / VECTORS)
    eos_id = metadata["eos_id"]
    if eos_id is None or not 0 < eos_id < len(vectors):
        expected = f"expected eos_id, an id of _EOS_ from 1 to {len(vectors) - 1}"
        raise UserError(f"{path / METADATA}: {expected}. Received: {reprlib.repr(eos_id)}")

    vocabulary = None
    if (path / VOCABULARY).is_file():
        vocabulary = _read_vocabulary(path / VOCABULARY, eos_id, vectors.shape)
    num_ids = len(vectors) + metadata["hashed_words"]
    splits = {split: read_split(path / ARRAYS, split, num_ids) for split in SPLITS}
    return SelectionDataset(path, values["name"], splits, vectors, vocabulary, **metadata)


def _read_vocabulary(file, eos_id, shape):
    vocabulary = Vocabulary.load(file)
    if vocabulary.eos_id != eos_id:
        expected = f"expected _EOS_ to be word {eos_id}"
        raise UserError(f"{file}: {expected}. Received: word {vocabulary.eos_id}")
    if len(vocabulary) + 1 != shape[0]:
        expected = f"{VECTORS} should have shape ({len(vocabulary) + 1}, dimension)"
        message = f"{file.name} has {len(vocabulary)} words, so {expected}. Received: {shape}"
        raise UserError(f"{file.parent}: {message}")
    return vocabulary


def as_texts(sequences, index, vocabulary):
    """The lists of ids at an index as texts, with spaces between the words."""
    return [" ".join(map(vocabulary.word, ids)) for ids in sequences.lists(index)]


# === Arrays of a split ===


def path_of(directory, split, name):
    return pathlib.Path(directory) / f"{split}.{name}.npy"


def ids_dtype(num_ids):
    """The type of arrays of ids below `num_ids`."""
    return "uint16" if num_ids <= 2**16 else "uint32"


def read_split(directory, split, num_ids):
    """Returns a `SelectionSplit` of arrays that are mapped into memory and checked.

    Ids must be below `num_ids`.
    """
    where = pathlib.Path(directory) / split
    limits = {"turn_ids": num_ids, "response_ids": num_ids, "label": 2}
    arrays = {}
    for name in ARRAY_NAMES:
        array = map_array(path_of(directory, split, name))
        _check_range(array, f"{where}.{name}", limits.get(name, 2**31))
        arrays[name] = array
    _check_sum(arrays, "context_turns", "turn_lengths", where)
    _check_sum(arrays, "turn_lengths", "turn_ids", where)
    _check_sum(arrays, "context_lines", "label", where)
    _check_sum(arrays, "response_lengths", "response_ids", where)
    if len(arrays["context_lines"]) != len(arrays["context_turns"]):
        raise UserError(f"{where}: context_lines and context_turns must be equally long")
    if len(arrays["response_lengths"]) != len(arrays["label"]):
        raise UserError(f"{where}: response_lengths and label must be equally long")

    contexts = np.arange(len(arrays["context_lines"]), dtype=np.int32)
    return SelectionSplit(
        turns=_sequences(arrays["turn_ids"], arrays["turn_lengths"]),
        context_start=_starts(arrays["context_turns"]),
        context_turns=arrays["context_turns"],
        responses=_sequences(arrays["response_ids"], arrays["response_lengths"]),
        context=np.repeat(contexts, arrays["context_lines"]),
        label=arrays["label"],
    )


def _check_range(array, where, limit):
    if not len(array):
        return
    smallest, largest = int(array.min()), int(array.max())
    if smallest < 0 or largest >= limit:
        wrong = smallest if smallest < 0 else largest
        raise UserError(f"{where}: expected numbers from 0 to {limit - 1}. Received: {wrong}")


def _check_sum(arrays, counts, items, where):
    """Refuses an array of counts that do not add up to the length of the counted array."""
    total = int(arrays[counts].sum(dtype=np.int64))
    if total != len(arrays[items]):
        expected = f"expected {len(arrays[items]):,}, the number of {items}, as sum of {counts}"
        raise UserError(f"{where}: {expected}. Received: {total:,}")


def _starts(lengths):
    """The first place of each list, if the lists follow each other."""
    return np.cumsum(lengths, dtype=np.int64) - lengths


def _sequences(ids, lengths):
    return Sequences(ids, _starts(lengths), lengths)


def write_split(split, directory, name, num_ids):
    """Writes the arrays of a `SelectionSplit`, whose ids are below `num_ids`."""
    arrays = {
        "turn_ids": split.turns.flat(),
        "turn_lengths": split.turns.lengths,
        "context_turns": split.context_turns,
        "context_lines": np.bincount(split.context, minlength=len(split.context_turns)),
        "response_ids": split.responses.flat(),
        "response_lengths": split.responses.lengths,
        "label": split.label,
    }
    for array, dtype in ARRAY_NAMES.items():
        values = arrays[array].astype(dtype or ids_dtype(num_ids))
        np.save(path_of(directory, name, array), values)
