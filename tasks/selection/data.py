"""A prepared response-selection dataset, read and checked.

Its directory `arrays` has the arrays of each split, see `tasks.selection.arrays`. The other files
are those of every dataset, see `data.prepared`.
"""

import dataclasses
import pathlib
from typing import Annotated

import numpy as np
from pydantic import Field

from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError
from colloquy.data.json_files import validated
from colloquy.data.prepared import (
    METADATA,
    VECTORS,
    VOCABULARY,
    Dataset,
    read_embedding,
    read_metadata,
)
from colloquy.data.tokenizer_config import TokenizerConfig
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.selection.arrays import read_split

ARRAYS = "arrays"
"""Directory of the arrays of all splits."""
SPLITS = ("train", "dev", "test")


class Metadata(Config):
    """Fields of `dataset.json` that a run needs, too: it keeps a copy."""

    eos_id: Positive | None = None
    """The id of `_EOS_`; `None`: a run whose dataset did not say."""
    unk_id: Positive | None = None
    """The id of `_UNK_`; `None`: not known."""
    hashed_words: Annotated[int, Field(ge=0, le=2**24)] = 0
    """Ids of unknown words after those of the vocabulary, see `data.vocabulary.Vocabulary`."""
    text: TokenizerConfig = TokenizerConfig()
    """How texts are split into words."""


def read_dataset_metadata(values, file):
    """Returns the `Metadata` among the fields of a JSON object; its other fields are ignored.

    A wrong value is a `UserError` that names `file`.
    """
    known = {name: value for name, value in values.items() if name in Metadata.model_fields}
    return validated(file, Metadata, known)


def read_tokenizer_config(run):
    """The `TokenizerConfig` that an `engine.run.Run` was trained with."""
    return read_dataset_metadata(run.dataset, run.path).text


@dataclasses.dataclass(frozen=True)
class SelectionDataset(Dataset):
    """A prepared directory. `splits` has `train`, `dev` and `test`, each a `SelectionSplit`."""

    vectors: np.ndarray
    """Word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding."""
    vocabulary: Vocabulary | None
    """`None` for a release of DAM that lacks the words."""
    # The fields of `Metadata`.
    eos_id: int
    unk_id: int | None
    hashed_words: int
    text: TokenizerConfig

    def metadata(self):
        own = Metadata.model_validate(self, from_attributes=True)
        return {**super().metadata(), **own.to_json()}


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
            raise UserError(
                f"{path / VOCABULARY}: expected _EOS_ to be word {metadata.eos_id}. "
                f"Received: word {vocabulary.eos_id}"
            )
    vectors = read_embedding(path / VECTORS, vocabulary)
    if metadata.eos_id is None or metadata.eos_id >= len(vectors):
        raise UserError(
            f"{path / METADATA}: expected eos_id, an id of _EOS_ from 1 to {len(vectors) - 1}. "
            f"Received: {metadata.eos_id}"
        )
    num_ids = len(vectors) + metadata.hashed_words
    splits = {split: read_split(path / ARRAYS, split, num_ids) for split in SPLITS}
    return SelectionDataset(
        path=path,
        name=values["name"],
        splits=splits,
        vectors=vectors,
        vocabulary=vocabulary,
        **dict(metadata),
    )


def as_texts(sequences, index, vocabulary):
    """Some lists of `Sequences` as texts, with spaces between the words.

    `index` is the numbers of the lists, an int array or a slice.
    """
    return [" ".join(map(vocabulary.word, ids)) for ids in sequences.lists(index)]
