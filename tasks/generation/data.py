"""Pairs of source and target, read from prepared files, and their batches as NumPy arrays.

Letters: B pairs   S source words   T target words
"""

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
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, Vocabulary

PAIRS = "pairs.pkl"
SPLITS = ("train", "dev")
"""Splits that a dataset must have; it may have others, such as test."""
MAX_SOURCE = 60
"""Most ids of a source that a model reads."""
MAX_TARGET = 50
"""Most ids of a target that a model learns."""
References = Annotated[dict[str, Annotated[list[str], Field(min_length=1)]], Field(min_length=1)]
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
class GenerationSplit:
    """The pairs of a split."""

    source: Sequences
    """Word ids of the turns before, `_EOS_` after each."""
    target: Sequences
    """Word ids of the replies, `_EOS_` at the end."""
    bos: int
    """The id before the first word of a target: the one after those of the vocabulary."""
    source_texts: list[str] = ()
    """Words separated by spaces, turns by tabs."""
    target_texts: list[str] = ()
    seen: np.ndarray | None = None
    """True where the pair is in train too, bool `(pairs,)`."""
    several: bool = False
    """True if a reply is compared with all targets of its source at once; otherwise it is compared
    with the target of its pair."""

    def __len__(self):
        return len(self.source)

    @property
    def sizes(self):
        """Target and source ids of each pair, int `(pairs, 2)`: targets cost more."""
        return np.stack([self.target.lengths, self.source.lengths], axis=1)

    def in_direction_of(self, config):
        """The split as a model with this config reads it.

        A reverse model reads targets and writes sources.
        """
        if not config.reverse:
            return self
        return dataclasses.replace(
            self,
            source=self.target,
            target=self.source,
            source_texts=self.target_texts,
            target_texts=self.source_texts,
        )

    def collate(self, rows, multiple=1, max_source=None, max_target=None):
        """Makes a batch of pairs for teacher forcing.

        Args:
            rows: Numbers of pairs, int `(B,)`.
            multiple: `S` and `T` are multiples of it.
            max_source: Keep the last `max_source` ids of a source; `None`: all.
            max_target: Keep the first `max_target` ids of a target; `None`: all.

        Returns:
            `({"source": (B, S), "target_in": (B, T)}, target (B, T))`, int32, padded with 0 on the
            right. `target_in` is `target` moved right by one, after `bos`.

        >>> source, target = Sequences.of([[5, 6, 1]]), Sequences.of([[7, 8, 1]])
        >>> split = GenerationSplit(source, target, bos=9)
        >>> inputs, target = split.collate([0], multiple=4, max_source=2, max_target=2)
        >>> inputs["source"].tolist(), inputs["target_in"].tolist(), target.tolist()
        ([[6, 1, 0, 0]], [[9, 7, 0, 0]], [[7, 8, 0, 0]])
        """
        S = self.source.width(rows, max_source, multiple)
        T = self.target.width(rows, max_target, multiple)
        source_BS = self.source.padded(rows, S, max_source, keep="last")
        target_BT = self.target.padded(rows, T, max_target, keep="first")
        before_BT = np.pad(target_BT[:, :-1], ((0, 0), (1, 0)), constant_values=self.bos)
        target_in_BT = np.where(target_BT == PADDING_ID, PADDING_ID, before_BT)
        return {"source": source_BS, "target_in": target_in_BT}, target_BT


@dataclasses.dataclass(frozen=True)
class GenerationDataset(prepared.Dataset):
    """A prepared dataset: `splits` of `GenerationSplit`."""

    vocabulary: Vocabulary
    text: SourceConfig

    def metadata(self):
        return {**super().metadata(), "text": self.text.to_json()}


def load_dataset(path):
    """Reads a prepared dataset; a missing or malformed file is a `UserError`."""
    path = pathlib.Path(path)
    metadata = prepared.read_metadata(path, "generation")
    text = read_source_config(metadata.get("settings"), path / prepared.METADATA)
    vocabulary = prepared.read_vocabulary(path / prepared.VOCABULARY)
    pairs = pickles.load(path / PAIRS)
    splits = {}
    with prepared.checked(path / PAIRS):
        others = sorted(set(pairs) - set(SPLITS))
        for name in (*SPLITS, *others):
            splits[name] = _make_split(pairs[name], vocabulary)
    return GenerationDataset(path, metadata["name"], splits, vocabulary, text)


def encode_pairs(utterances, pairs, vocabulary):
    """Encodes pairs of utterances as prepared files have them, without `seen`.

    Args:
        utterances: Lists of words.
        pairs: `(start, stop)`: utterance `stop - 1` is the target, those before it the source.
        vocabulary: `data.vocabulary.Vocabulary`.
    """
    ids_of_utterances = [[*vocabulary.encode(words), EOS_ID] for words in utterances]
    texts = [" ".join(words) for words in utterances]
    encoded = {"source": [], "target": [], "source_text": [], "target_text": []}
    for start, stop in pairs:
        target = stop - 1
        source_ids = [id for ids in ids_of_utterances[start:target] for id in ids]
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
        bos=len(vocabulary) + 1,
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
    is_any_empty = not sequences.lengths.all()
    if is_any_empty or (ids[last] != EOS_ID).any():
        raise ValueError(f"sources and targets must end with {EOS_ID}")


def read_references(path, vocabulary, text):
    """Reads sources with several references each; each reference is a pair.

        {"how are you ?": ["fine , thanks", "not so well"], "hello\\tgood morning": ["fine"]}

    The turns of a source are separated by tabs. The split has `several` set.
    """
    utterances = []
    pairs = []
    for source, references in read_json(path, References).items():
        turns = [text.words(turn) for turn in source.split("\t")]
        targets = [text.words(reference) for reference in references]
        if not all([*turns, *targets]):
            raise UserError(f"{path}: expected texts with words for the source {source[:60]!r}")
        for target in targets:
            start = len(utterances)
            utterances += [*turns[-text.turns :], target]
            pairs.append((start, len(utterances)))
    encoded = encode_pairs(utterances, pairs, vocabulary)
    split = _make_split({**encoded, "seen": [False] * len(pairs)}, vocabulary)
    return dataclasses.replace(split, several=True)
