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
from typing import Annotated

import numpy as np
from pydantic import Field

from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError
from colloquy.data.flat_arrays import map_array
from colloquy.data.json_files import validated
from colloquy.data.prepared import (
    METADATA,
    VECTORS,
    VOCABULARY,
    Dataset,
    read_embedding,
    read_metadata,
)
from colloquy.data.sequences import Sequences
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
COUNTED = {
    "turn_lengths": "turn_ids",
    "context_turns": "turn_lengths",
    "context_lines": "label",
    "response_lengths": "response_ids",
}
"""Arrays of counts -> the arrays whose places they count."""


class Metadata(Config):
    """Metadata of a prepared directory that runs on it keep."""

    eos_id: Positive | None = None
    """The id of `_EOS_`; `None`: a run whose dataset did not say."""
    unk_id: Positive | None = None
    """The id of `_UNK_`; `None`: not known."""
    hashed_words: Annotated[int, Field(ge=0, le=2**24)] = 0
    """Ids of unknown words after those of the vocabulary, see `data.vocabulary.Vocabulary`."""
    text: TokenizerConfig = TokenizerConfig()
    """How texts become words."""


def read_dataset_metadata(values, file):
    """Returns the `Metadata` among the fields of a JSON object.

    A wrong one is a `UserError` that names `file`.
    """
    known = {name: value for name, value in values.items() if name in Metadata.model_fields}
    return validated(file, Metadata, known)


def read_tokenizer_config(run):
    """The `TokenizerConfig` that an `engine.run.Run` was trained with."""
    return read_dataset_metadata(run.dataset, run.path).text


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
    text: TokenizerConfig

    def metadata(self):
        own = {name: getattr(self, name) for name in Metadata.model_fields}
        return {**super().metadata(), **Metadata(**own).to_json()}


def load_dataset(path):
    """Reads a prepared directory.

    Raises:
        UserError: A file is missing or malformed, or files contradict each other.
    """
    path = pathlib.Path(path)
    values = read_metadata(path, "selection")
    metadata = read_dataset_metadata(values, path / METADATA)
    vocabulary = None
    if (path / VOCABULARY).is_file():
        vocabulary = Vocabulary.load(path / VOCABULARY)
        if metadata.eos_id and vocabulary.eos_id != metadata.eos_id:
            expected = f"expected _EOS_ to be word {metadata.eos_id}"
            received = f"Received: word {vocabulary.eos_id}"
            raise UserError(f"{path / VOCABULARY}: {expected}. {received}")
    vectors = read_embedding(path / VECTORS, vocabulary)
    if metadata.eos_id is None or metadata.eos_id >= len(vectors):
        expected = f"expected eos_id, an id of _EOS_ from 1 to {len(vectors) - 1}"
        raise UserError(f"{path / METADATA}: {expected}. Received: {metadata.eos_id}")
    num_ids = len(vectors) + metadata.hashed_words
    splits = {split: read_split(path / ARRAYS, split, num_ids) for split in SPLITS}
    return SelectionDataset(path, values["name"], splits, vectors, vocabulary, **dict(metadata))


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
        limit = limits.get(name, 2**31)
        if len(array) and not 0 <= array.min() <= array.max() < limit:
            received = f"{array.min()} to {array.max()}"
            raise UserError(f"{where}.{name}: expected 0 to {limit - 1}. Received: {received}")
        arrays[name] = array
    for name, other in (("context_lines", "context_turns"), ("response_lengths", "label")):
        if len(arrays[name]) != len(arrays[other]):
            raise UserError(f"{where}: {name} and {other} must be equally long")

    starts = {}
    for counts, items in COUNTED.items():
        starts[counts] = _starts(arrays[counts], len(arrays[items]), f"{where}.{counts}")
    return SelectionSplit(
        turns=Sequences(arrays["turn_ids"], starts["turn_lengths"], arrays["turn_lengths"]),
        first_turn_of_context=starts["context_turns"],
        num_turns_of_context=arrays["context_turns"],
        responses=Sequences(
            arrays["response_ids"], starts["response_lengths"], arrays["response_lengths"]
        ),
        context_of_line=np.repeat(np.arange(len(starts["context_lines"])), arrays["context_lines"]),
        label=arrays["label"],
    )


def _starts(counts, total, where):
    """The first place of each of some lists that follow each other, and have `total` places."""
    stops = np.cumsum(counts, dtype=np.int64)
    received = stops[-1] if len(stops) else 0
    if received != total:
        raise UserError(f"{where}: expected a sum of {total:,}. Received: {received:,}")
    return stops - counts


def write_split(split, directory, name, num_ids):
    """Writes the arrays of a `SelectionSplit`, whose ids are below `num_ids`."""
    arrays = {
        "turn_ids": split.turns.flat(),
        "turn_lengths": split.turns.lengths,
        "context_turns": split.num_turns_of_context,
        "context_lines": np.bincount(split.context_of_line, minlength=split.num_contexts),
        "response_ids": split.responses.flat(),
        "response_lengths": split.responses.lengths,
        "label": split.label,
    }
    for array, dtype in ARRAY_NAMES.items():
        values = arrays[array].astype(dtype or ids_dtype(num_ids))
        np.save(path_of(directory, name, array), values)
