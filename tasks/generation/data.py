"""Response generation: pairs of source and target, read from prepared files, and their batches as
NumPy arrays.

Letters: B pairs   S source words   T target words
"""

import dataclasses
import pathlib
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from colloquy.base.config import Config, Positive, make_config
from colloquy.base.files import UserError
from colloquy.data import pickles, prepared
from colloquy.data.sequences import Sequences
from colloquy.data.text_files import read_json
from colloquy.data.tokenizers import TOKENIZERS, words_of
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, Vocabulary

PAIRS = "pairs.pkl"
SPLITS = ("train", "dev")
MAX_SOURCE, MAX_TARGET = 60, 50  # ids that a model reads and writes
References = Annotated[dict[str, Annotated[list[str], Field(min_length=1)]], Field(min_length=1)]
"""A file of references: source -> correct replies."""


class TokenizerConfig(Config):
    """From raw strings to words: the same for a dataset, its models and their users."""

    tokenizer: Literal[tuple(TOKENIZERS)]
    """Key of `data.tokenizers.TOKENIZERS`."""
    lower: bool
    """Make texts lower case."""
    turns: Positive
    """Utterances of a source, the last ones."""

    def words(self, text):
        return words_of(text, self.tokenizer, self.lower)

    def join(self, words):
        return TOKENIZERS[self.tokenizer].detokenize(words)


def read_tokenizer_config(found, file):
    """Reads `TokenizerConfig` from the JSON object of settings in a file; a wrong or missing one is a
    `UserError`.
    """
    found = found if isinstance(found, dict) else {}
    return make_config(
        TokenizerConfig,
        {name: found.get(name) for name in TokenizerConfig.model_fields},
        f"{file}: ",
    )


@dataclasses.dataclass(frozen=True)
class GenerationSplit:
    """The pairs of a split."""

    source: Sequences  # word ids of the turns before, `_EOS_` after each
    target: Sequences  # word ids of the replies, `_EOS_` at the end
    bos: int  # the id before the first word of a target: the one after those of the vocabulary
    source_texts: list[str] = ()  # words separated by spaces, turns by tabs
    target_texts: list[str] = ()
    seen: np.ndarray | None = None  # True where the pair is in train too, bool `(pairs,)`
    # compare a reply with all targets of its source at once, not with each by itself
    several: bool = False

    def __len__(self):
        return len(self.source)

    @property
    def sizes(self):
        """Target and source ids of each pair, int `(pairs, 2)`: targets cost more."""
        return np.stack([self.target.lengths, self.source.lengths], axis=1)

    def in_direction_of(self, config):
        """The split as a model with this config reads it: a reverse model reads targets and writes
        sources.
        """
        if not config.reverse:
            return self
        sides = self.target, self.source, self.bos, self.target_texts, self.source_texts
        return GenerationSplit(*sides, self.seen, self.several)

    def collate(self, rows, multiple=1, max_source=None, max_target=None):
        """Makes a batch of pairs for teacher forcing; `S` and `T` are rounded up to `multiple`.

        Returns `({"source": (B, S), "target_in": (B, T)}, target (B, T))`, int32, padded with 0 on
        the right. `target_in` is `target` moved right by one, after `bos`. The last `max_source`
        ids of a source and the first `max_target` of a target are kept; `None`: all.

        >>> source, target = Sequences.of([[5, 6, 1]]), Sequences.of([[7, 8, 1]])
        >>> split = GenerationSplit(source, target, bos=9)
        >>> inputs, target = split.collate([0], multiple=4, max_source=2, max_target=2)
        >>> inputs["source"].tolist(), inputs["target_in"].tolist(), target.tolist()
        ([[6, 1, 0, 0]], [[9, 7, 0, 0]], [[7, 8, 0, 0]])
        """
        S = self.source.width(rows, max_source, multiple)
        T = self.target.width(rows, max_target, multiple)
        source = self.source.padded(rows, S, max_source, keep="last")
        target = self.target.padded(rows, T, max_target, keep="first")
        before = np.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=self.bos)
        return {
            "source": source,
            "target_in": np.where(target == PADDING_ID, PADDING_ID, before),
        }, target


@dataclasses.dataclass(frozen=True)
class GenerationDataset(prepared.Dataset):
    """A prepared dataset: `splits` of `GenerationSplit`."""

    vocabulary: Vocabulary
    vectors: np.ndarray | None  # word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding
    text: TokenizerConfig

    def metadata(self):
        return {**super().metadata(), "text": self.text.to_json()}


def load_dataset(path):
    """Reads a prepared dataset; a missing or malformed file is a `UserError`."""
    path = pathlib.Path(path)
    metadata = prepared.read_metadata(path, "generation")
    text = read_tokenizer_config(metadata.get("settings"), path / prepared.METADATA)
    vocabulary = prepared.read_vocabulary(path / prepared.VOCABULARY)
    pairs = pickles.load(path / PAIRS)
    with prepared.checked(path / PAIRS):
        splits = {name: _split(pairs[name], vocabulary) for name in SPLITS}
    file = path / prepared.VECTORS
    vectors = prepared.read_embedding(file, vocabulary) if file.exists() else None
    return GenerationDataset(path, metadata["name"], splits, vocabulary, vectors, text)


def encode_pairs(utterances, pairs, vocabulary):
    """Encodes pairs of utterances, lists of words, as prepared files have them, without `seen`.

    Of a pair `(start, stop)` utterance `stop - 1` is the target, those from `start` to it the
    source.
    """
    ids = [[*vocabulary.encode(words), EOS_ID] for words in utterances]
    joined = [" ".join(words) for words in utterances]
    return {
        "source": [[id for turn in ids[start : stop - 1] for id in turn] for start, stop in pairs],
        "target": [ids[stop - 1] for _, stop in pairs],
        "source_text": ["\t".join(joined[start : stop - 1]) for start, stop in pairs],
        "target_text": [joined[stop - 1] for _, stop in pairs],
    }


def _split(pairs, vocabulary):
    source, target = Sequences.of(pairs["source"]), Sequences.of(pairs["target"])
    columns = (
        prepared.texts(pairs["source_text"]),
        prepared.texts(pairs["target_text"]),
        pairs["seen"],
    )
    if set(map(type, pairs["seen"])) - {bool}:
        raise TypeError("seen must be True or False")
    for sequences in (source, target):
        if set(map(len, columns)) != {len(sequences)}:
            raise ValueError("source, target, their texts and seen must be of one length")
        if len(sequences.ids) and not 0 < sequences.ids.min() <= sequences.ids.max() <= len(
            vocabulary
        ):
            raise ValueError(f"ids must be from 1 to {len(vocabulary)}")
        if (
            not sequences.lengths.all()
            or (sequences.ids[sequences.starts + sequences.lengths - 1] != EOS_ID).any()
        ):
            raise ValueError(f"sources and targets must end with {EOS_ID}")
    return GenerationSplit(
        source, target, len(vocabulary) + 1, *columns[:2], np.array(pairs["seen"], bool)
    )


def read_references(path, vocabulary, text):
    """Reads sources with several references each.

        {"how are you ?": ["fine , thanks", "not so well"], "hello\\tgood morning": ["fine"]}

    The turns of a source are separated by tabs. Each reference is a pair; the split has `several`
    set.
    """
    found, utterances, pairs = read_json(path, References), [], []
    for source, references in found.items():
        turns, targets = (
            [text.words(each) for each in said] for said in (source.split("\t"), references)
        )
        if not all([*turns, *targets]):
            raise UserError(f"{path}: expected texts with words for the source {source[:60]!r}")
        for target in targets:
            start = len(utterances)
            utterances += [*turns[-text.turns :], target]
            pairs.append((start, len(utterances)))
    encoded = encode_pairs(utterances, pairs, vocabulary)
    return dataclasses.replace(
        _split({**encoded, "seen": [False] * len(pairs)}, vocabulary), several=True
    )
