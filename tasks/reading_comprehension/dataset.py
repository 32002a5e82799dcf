"""A prepared dataset for reading comprehension, as prepare.py wrote it, read from disk."""

import dataclasses
import pathlib

import numpy as np

from base.files import UserError
from data import pickles
from data.prepared import (
    FACTS,
    VECTORS,
    VOCABULARY,
    Dataset,
    checked,
    read_embedding,
    read_facts,
    read_vocabulary,
    texts,
)
from data.sequences import Sequences
from data.vocabulary import Vocabulary
from tasks.reading_comprehension.data import ReadingSplit, Tokens
from tasks.reading_comprehension.prepare import CHARACTERS, READING, SPLITS


@dataclasses.dataclass(frozen=True)
class ReadingDataset(Dataset):
    """What a prepared directory holds: `splits` of `ReadingSplit`."""

    vectors: np.ndarray
    """Word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding."""
    vocabulary: Vocabulary
    """Its words are lower case."""
    characters: Vocabulary
    trained_words: int = 0
    """How many of the vocabulary's words, the last ones, have a made-up vector that can be trained."""


def load_dataset(path):
    """Reads a prepared dataset.

    Raises:
        UserError: on a missing or malformed file, and where files contradict each other.
    """
    path = pathlib.Path(path)
    facts = read_facts(path, "reading_comprehension")
    vocabulary, characters = (read_vocabulary(path / name) for name in (VOCABULARY, CHARACTERS))
    vectors = read_embedding(path / VECTORS, vocabulary)
    splits = _splits(path / READING, vocabulary, characters)
    trained = facts.get("trained_words", 0)
    if type(trained) is not int or not 0 <= trained < len(vocabulary):
        raise UserError(f"{path / FACTS}: expected trained_words below {len(vocabulary)}. Received: {trained!r:.60}")
    return ReadingDataset(path, facts["name"], splits, vectors, vocabulary, characters, trained)


def _splits(file, vocabulary, characters):
    data = pickles.load(file)
    with checked(file):
        tokens = Tokens.of(texts(data["tokens"]), vocabulary, characters)
        contexts = Sequences.of([context["tokens"] for context in data["contexts"]])
        of_contexts = texts([context["text"] for context in data["contexts"]])
        offsets = [context["offsets"] for context in data["contexts"]]
        _check_ids(contexts, len(tokens.words))
        _check_offsets(offsets, contexts, of_contexts)
        splits = {}
        for name in SPLITS:
            items = data["splits"].get(name, [])
            splits[name] = ReadingSplit(
                tokens,
                contexts,
                of_contexts,
                offsets,
                ids=texts([item["id"] for item in items]),
                context=Sequences.of([[item["context"] for item in items]]).ids.astype(np.int64),
                questions=Sequences.of([item["tokens"] for item in items]),
                answers=[texts(item["answers"]) for item in items],
                spans=_spans(items),
                question_texts=texts([item["question"] for item in items]),
            )
            _check(splits[name], len(tokens.words))
    return splits


def _spans(items):
    """First and last tokens of each question's answers, as tuples; what is one object in the file is one here."""
    spans = {id(item["spans"]): item["spans"] for item in items}
    spans = {key: [(first, last) for first, last in found] for key, found in spans.items()}
    if not all(type(place) is int for found in spans.values() for span in found for place in span):
        raise TypeError("spans must be whole numbers")
    return [spans[id(item["spans"])] for item in items]


def _check_offsets(offsets, contexts, of_contexts):
    packed = Sequences.of(offsets)
    if len(packed) and (packed.lengths != 2 * contexts.lengths).any():
        raise ValueError("offsets must be the start and the end of each token")
    for row, text in enumerate(of_contexts):
        places = packed.ids[packed.starts[row] : packed.starts[row] + packed.lengths[row]]
        if len(places) and not (places[0] >= 0 and places[-1] <= len(text) and (np.diff(places) >= 0).all()):
            raise ValueError(f"offsets of context {row} must rise and end within its {len(text)} characters")


def _check_ids(sequences, tokens):
    if len(sequences.ids) and not 0 < sequences.ids.min() <= sequences.ids.max() < tokens:
        raise ValueError(f"tokens must be from 1 to {tokens - 1}")


def _check(split, tokens):
    _check_ids(split.questions, tokens)
    if len(split) and not 0 <= split.context.min() <= split.context.max() < len(split.contexts):
        raise ValueError(f"contexts must be from 0 to {len(split.contexts) - 1}")
    for row, spans in enumerate(split.spans):
        length = split.contexts.lengths[split.context[row]]
        if not spans or not all(0 <= first <= last < length for first, last in spans):
            raise ValueError(f"question {split.ids[row]:.60}: spans must be within its {length} words")
