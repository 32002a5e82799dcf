"""A prepared dataset for reading comprehension, as prepare.py wrote it, read from disk."""

import dataclasses
import pathlib

import numpy as np

from base.files import UserError
from data import pickles
from data.prepared import read_embedding, read_facts
from data.sequences import Sequences
from data.vocabulary import Vocabulary
from tasks.reading_comprehension.batches import ReadingSplit, Tokens
from tasks.reading_comprehension.prepare import CHARACTERS, FACTS, READING, SPLITS, VECTORS, VOCABULARY


@dataclasses.dataclass(frozen=True)
class ReadingDataset:
    """What a prepared directory holds."""

    path: pathlib.Path
    name: str
    splits: dict[str, ReadingSplit]
    vectors: np.ndarray
    """Word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding."""
    vocabulary: Vocabulary
    """Its words are lower case."""
    characters: Vocabulary

    def facts(self):
        """What a run remembers of its dataset, ready for JSON."""
        return {"path": str(self.path.resolve()), "name": self.name}


def load_dataset(path):
    """Reads a prepared dataset.

    Raises:
        UserError: on a missing or malformed file, and where files contradict each other.
    """
    path = pathlib.Path(path)
    facts = read_facts(path, FACTS, "reading_comprehension")
    vocabulary, characters = (Vocabulary.load(path / name) for name in (VOCABULARY, CHARACTERS))
    vectors = read_embedding(path / VECTORS, vocabulary)
    splits = _splits(path / READING, vocabulary, characters)
    return ReadingDataset(path, facts.get("name", path.name), splits, vectors, vocabulary, characters)


def _splits(file, vocabulary, characters):
    data = pickles.load(file)
    try:
        tokens = Tokens.of(data["tokens"], vocabulary, characters)
        contexts = Sequences.of([context["tokens"] for context in data["contexts"]])
        texts = [context["text"] for context in data["contexts"]]
        offsets = [context["offsets"] for context in data["contexts"]]
        splits = {}
        for name in SPLITS:
            items = data["splits"].get(name, [])
            splits[name] = ReadingSplit(
                tokens,
                contexts,
                texts,
                offsets,
                ids=[item["id"] for item in items],
                context=np.array([item["context"] for item in items], np.int64),
                questions=Sequences.of([item["tokens"] for item in items]),
                answers=[item["answers"] for item in items],
                spans=[[tuple(span) for span in item["spans"]] for item in items],
                question_texts=[item["question"] for item in items],
            )
            _check(splits[name], len(tokens.words))
        return splits
    except (TypeError, KeyError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise UserError(f"{file}: expected what prepare.py writes. {type(error).__name__}: {error}") from error


def _check(split, tokens):
    for sequences in (split.contexts, split.questions):
        if len(sequences.ids) and not 0 < sequences.ids.min() <= sequences.ids.max() < tokens:
            raise ValueError(f"tokens must be from 1 to {tokens - 1}")
    for row, spans in enumerate(split.spans):
        length = split.contexts.lengths[split.context[row]]
        if not spans or not all(0 <= first <= last < length for first, last in spans):
            raise ValueError(f"question {split.ids[row]}: spans must be within its {length} words")
