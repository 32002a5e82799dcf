"""Pairs of source and target, read from prepared files or from a file of references."""

import dataclasses
import pathlib
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from colloquy.base.config import Positive, make_config
from colloquy.base.files import UserError
from colloquy.data import pickles, prepared
from colloquy.data.json_files import read_json
from colloquy.data.sequences import Sequences
from colloquy.data.tokenizer_config import TokenizerConfig
from colloquy.data.tokenizers import TOKENIZERS
from colloquy.data.vocabulary import EOS_ID, Vocabulary
from colloquy.tasks.generation.split import GenerationSplit

PAIRS = "pairs.pkl"
SPLITS = ("train", "dev")
"""Splits that a dataset must have; it may have others, such as test."""
MAX_SOURCE = 60
"""Most ids of a source that a model reads."""
MAX_TARGET = 50
"""Most ids of a target that a model learns."""
Replies = Annotated[list[str], Field(min_length=1)]
References = Annotated[dict[str, Replies], Field(min_length=1)]
"""A file of references: source -> correct replies."""


class SourceConfig(TokenizerConfig):
    """How the turns of a conversation become a source."""

    tokenizer: Literal[tuple(TOKENIZERS)]
    """Key of `data.tokenizers.TOKENIZERS`."""
    lower: bool
    """Make texts lower case."""
    turns: Positive
    """Utterances of a source, the last ones."""

    def join(self, words):
        """Joins words to a text as people write it; the tokenizer guesses the spaces."""
        return TOKENIZERS[self.tokenizer].detokenize(words)


def read_source_config(settings, file):
    """Reads a `SourceConfig` from the JSON object of settings in a file.

    A wrong or missing one is a `UserError`.
    """
    if not isinstance(settings, dict):
        settings = {}
    fields = {name: settings.get(name) for name in SourceConfig.model_fields}
    return make_config(SourceConfig, fields, f"{file}: ")


@dataclasses.dataclass(frozen=True)
class GenerationDataset(prepared.Dataset):
    """A prepared dataset: `splits` of `GenerationSplit`."""

    vocabulary: Vocabulary
    source_config: SourceConfig

    def metadata(self):
        return {**super().metadata(), "text": self.source_config.to_json()}


def load_dataset(path):
    """Reads a prepared dataset; a missing or malformed file is a `UserError`."""
    path = pathlib.Path(path)
    metadata = prepared.read_metadata(path, "generation")
    source_config = read_source_config(metadata.get("settings"), path / prepared.METADATA)
    vocabulary = prepared.read_vocabulary(path / prepared.VOCABULARY)
    pairs = pickles.load(path / PAIRS)
    splits = {}
    with prepared.checked(path / PAIRS):
        for name in (*SPLITS, *sorted(set(pairs) - set(SPLITS))):
            splits[name] = _make_split(pairs[name], vocabulary)
    return GenerationDataset(path, metadata["name"], splits, vocabulary, source_config)


def encode_pairs(utterances, ranges, vocabulary):
    """Encodes pairs of utterances as prepared files have them, without `seen`.

    Args:
        utterances: Lists of words.
        ranges: `(start, stop)` of each pair: utterance `stop - 1` is the target, those before it
            the source.
        vocabulary: `data.vocabulary.Vocabulary`.
    """
    ids_of_utterances = [[*vocabulary.encode(words), EOS_ID] for words in utterances]
    texts = [" ".join(words) for words in utterances]
    encoded = {"source": [], "target": [], "source_text": [], "target_text": []}
    for start, stop in ranges:
        target = stop - 1
        source_ids = []
        for ids in ids_of_utterances[start:target]:
            source_ids += ids
        encoded["source"].append(source_ids)
        encoded["target"].append(ids_of_utterances[target])
        encoded["source_text"].append("\t".join(texts[start:target]))
        encoded["target_text"].append(texts[target])
    return encoded


def _make_split(pairs, vocabulary):
    """Checks the pairs of a split and makes a `GenerationSplit` of them."""
    source = Sequences.of(pairs["source"])
    target = Sequences.of(pairs["target"])
    source_texts = prepared.texts(pairs["source_text"])
    target_texts = prepared.texts(pairs["target_text"])
    seen = pairs["seen"]
    if any(type(value) is not bool for value in seen):
        raise TypeError("seen must be True or False")
    lengths = {len(column) for column in (source, target, source_texts, target_texts, seen)}
    if len(lengths) > 1:
        raise ValueError("source, target, their texts and seen must be of one length")
    for sequences in (source, target):
        _check_ids(sequences, vocabulary)
    return GenerationSplit(
        source=source,
        target=target,
        begin_id=len(vocabulary) + 1,
        source_texts=source_texts,
        target_texts=target_texts,
        seen=np.array(seen, bool),
    )


def _check_ids(sequences, vocabulary):
    """Raises a `ValueError` unless all ids are known and `_EOS_` ends each list."""
    ids = sequences.ids
    is_known = (ids > 0) & (ids <= len(vocabulary))
    if not is_known.all():
        raise ValueError(f"ids must be from 1 to {len(vocabulary)}")
    last = sequences.starts + sequences.lengths - 1
    if not sequences.lengths.all() or (ids[last] != EOS_ID).any():
        raise ValueError(f"sources and targets must end with {EOS_ID}")


def read_references(path, vocabulary, source_config):
    """Reads sources with several references each; each reference is a pair.

        {"how are you ?": ["fine , thanks", "not so well"], "hello\\tgood morning": ["fine"]}

    The turns of a source are separated by tabs. The split has `has_several_references` set.
    """
    # Each pair adds its turns and its target, so it is a range of the utterances.
    utterances = []
    ranges = []
    for source, references in read_json(path, References).items():
        turns = [source_config.words(turn) for turn in source.split("\t")]
        targets = [source_config.words(reference) for reference in references]
        if not all([*turns, *targets]):
            raise UserError(f"{path}: expected texts with words for the source {source[:60]!r}")
        for target in targets:
            start = len(utterances)
            utterances += turns[-source_config.turns :]
            utterances.append(target)
            ranges.append((start, len(utterances)))
    encoded = encode_pairs(utterances, ranges, vocabulary)
    split = _make_split({**encoded, "seen": [False] * len(ranges)}, vocabulary)
    return dataclasses.replace(split, has_several_references=True)
