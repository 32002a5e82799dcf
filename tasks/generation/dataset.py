"""A prepared dataset for response generation, as prepare.py wrote it, read from disk."""

import dataclasses
import pathlib

import numpy as np

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
from data.vocabulary import EOS_ID, Vocabulary
from tasks.generation.data import GenerationSplit
from tasks.generation.prepare import PAIRS, SPLITS, check_text


@dataclasses.dataclass(frozen=True)
class GenerationDataset(Dataset):
    """What a prepared directory holds: `splits` of `GenerationSplit`."""

    vocabulary: Vocabulary
    vectors: np.ndarray | None
    """Word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding."""
    tokenizer: str
    """Key of `data.tokenizers.TOKENIZERS`."""
    lower: bool
    """Whether texts are made lower case."""
    turns: int
    """How many utterances make a source."""

    def facts(self):
        return {**super().facts(), "text": {"tokenizer": self.tokenizer, "lower": self.lower, "turns": self.turns}}


def load_dataset(path):
    """Reads a prepared dataset.

    Raises:
        UserError: on a missing or malformed file, and where files contradict each other.
    """
    path = pathlib.Path(path)
    facts = read_facts(path, "generation")
    text = check_text(facts.get("settings"), path / FACTS)
    vocabulary = read_vocabulary(path / VOCABULARY)
    splits = _splits(path / PAIRS, vocabulary)
    vectors = read_embedding(path / VECTORS, vocabulary) if (path / VECTORS).exists() else None
    return GenerationDataset(path, facts["name"], splits, vocabulary, vectors, **text)


def _splits(file, vocabulary):
    data = pickles.load(file)
    splits = {}
    with checked(file):
        for name in SPLITS:
            pairs = data[name]
            if not all(type(seen) is bool for seen in pairs["seen"]):
                raise TypeError("seen must be True or False")
            splits[name] = GenerationSplit(
                source=Sequences.of(pairs["source"]),
                target=Sequences.of(pairs["target"]),
                source_texts=texts(pairs["source_text"]),
                target_texts=texts(pairs["target_text"]),
                seen=np.array(pairs["seen"], bool),
                bos=len(vocabulary) + 1,
            )
            _check(splits[name], len(vocabulary))
    return splits


def _check(split, words):
    for sequences in (split.source, split.target):
        if not len(split) == len(sequences) == len(split.source_texts) == len(split.target_texts):
            raise ValueError("source, target, their texts and seen must be of one length")
        if len(sequences.ids) and not 0 < sequences.ids.min() <= sequences.ids.max() <= words:
            raise ValueError(f"ids must be from 1 to {words}")
        if not sequences.lengths.all() or (sequences.ids[sequences.starts + sequences.lengths - 1] != EOS_ID).any():
            raise ValueError(f"sources and targets must end with {EOS_ID}")
