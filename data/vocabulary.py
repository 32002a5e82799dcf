"""Vocabularies: words and their ids. `data.graph_vocabulary` finds ids in a TensorFlow graph."""

import dataclasses
import functools
import hashlib
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from colloquy.base.files import PathLike, UserError, atomic_file
from colloquy.data.text_files import readable

# Ids in datasets of prepare.py. The release's vocabularies have others, see `Vocabulary.eos_id`.
PADDING_ID = 0
EOS_ID = 1
UNK_ID = 2
SPECIALS = ("_EOS_", "_UNK_")
"""The end of a turn, and words that are not in the vocabulary: words 1 and 2 of prepare.py's."""

HASHED_BYTES = 32
PRIME = 2**31 - 1
POWERS = tuple(pow(1_000_003, i, PRIME) for i in range(1, HASHED_BYTES + 1))


def hash_of(word: str) -> int:
    """Hash from 0 to 2^31 - 2: a polynomial in the first 32 bytes.

    A TensorFlow graph can compute it too, see `data.graph_vocabulary`.
    """
    first_bytes = word.encode(errors="replace")[:HASHED_BYTES]
    total = 0
    for power, byte in zip(POWERS, first_bytes, strict=False):
        total += power * byte
    return total % PRIME


def is_word(text: str) -> bool:
    """Whether a text is not empty and has no ASCII white space, at which `bytes.split` splits."""
    return text.encode().split() == [text.encode()]


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Words in order: the id of a word is its position, counted from 1; id 0 is padding.

    The words are distinct, have no ASCII white space, and contain `_EOS_`; otherwise a `ValueError`
    names the word with the id `n` as "line n".

    Words that are not in the vocabulary are unknown. So is a word of a text that is spelled like a
    special: `_EOS_` in the text of a user must not end a turn. Unknown words have the id of
    `_UNK_`, or one of `hashed` further ids, which follow the words; a hash assigns them.

    >>> vocabulary = Vocabulary(("_EOS_", "_UNK_", "hello", "there"))
    >>> vocabulary.encode(["hello", "you", "there", "_EOS_"])
    [3, 2, 4, 2]
    >>> Vocabulary(vocabulary.words, hashed=100).encode(["you", "hello", "you"])
    [89, 3, 89]
    """

    words: tuple[str, ...]
    hashed: int = 0
    """Number of ids for unknown words; 0: all of them have the id of `_UNK_`."""

    def __post_init__(self) -> None:
        seen: dict[str, int] = {}
        for id, word in enumerate(self.words, 1):
            if not is_word(word):
                raise ValueError(
                    f"line {id} must be a word without white space. Received: {word!r:.60}"
                )
            if seen.setdefault(word, id) != id:
                raise ValueError(f"line {id} repeats line {seen[word]}. Received: {word!r:.60}")
        if "_EOS_" not in seen:
            raise ValueError("one of its words must be _EOS_. Received: none")

    @functools.cached_property
    def eos_id(self) -> int:
        """The id of `_EOS_`, the end of a turn."""
        return self.words.index("_EOS_") + 1

    @functools.cached_property
    def unk_id(self) -> int:
        """The id of `_UNK_`; 0, padding, which models skip, if the vocabulary lacks it."""
        if "_UNK_" not in self.words:
            return PADDING_ID
        return self.words.index("_UNK_") + 1

    @classmethod
    def of_counts(cls, counts: Mapping[str, int], min_count: int = 1) -> Self:
        """The specials, then the words that occur `min_count` times or more.

        The words of `counts`, `{word: occurrences}`, are ordered by falling count, then by code
        points.

        >>> Vocabulary.of_counts({"a": 1, "b": 2, "_EOS_": 1, "c": 1}).words
        ('_EOS_', '_UNK_', 'b', 'a', 'c')
        """
        words = [word for word, count in counts.items() if count >= min_count]
        return cls.of(sorted(words, key=lambda word: (-counts[word], word)))

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        """The specials, then words in order, without repetitions and words with white space."""
        distinct = dict.fromkeys([*SPECIALS, *words])
        return cls(tuple(word for word in distinct if is_word(word)))

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The ids of the words that texts can have: all but the specials."""
        return {word: id for id, word in enumerate(self.words, 1) if word not in SPECIALS}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The ids of some words."""
        ids = self.ids
        return [ids.get(token) or self._unknown_id(token) for token in tokens]

    def _unknown_id(self, token):
        if not self.hashed:
            return self.unk_id
        return len(self.words) + 1 + hash_of(token) % self.hashed

    def word(self, id: int) -> str:
        """The word with an id; `_UNK_` for a hashed one."""
        if id > len(self.words):
            return "_UNK_"
        return self.words[id - 1]

    def in_brackets(self, words: Sequence[str]) -> str:
        """Joins words to a text, with brackets around those that are not in the vocabulary.

        >>> Vocabulary(("_EOS_", "_UNK_", "hello"), hashed=100).in_brackets(["hello", "you"])
        'hello [you]'
        """
        return " ".join(word if word in self.ids else f"[{word}]" for word in words)

    def digest(self) -> str:
        """SHA-256 of the words in their order, in hexadecimal digits."""
        return hashlib.sha256("\n".join(self.words).encode()).hexdigest()

    def save(self, path: PathLike) -> None:
        """Writes one word per line, UTF-8: line `n` is the word with id `n`."""
        with atomic_file(path) as file:
            file.writelines(f"{word}\n" for word in self.words)

    @classmethod
    def load(cls, path: PathLike, hashed: int = 0) -> Self:
        path = pathlib.Path(path)
        with readable(path, "a vocabulary"):
            text = path.read_bytes()
        try:
            return cls(tuple(text.decode().removesuffix("\n").split("\n")), hashed)
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise UserError(
                f"{path}: line {line} must be UTF-8. Received: {error.reason}"
            ) from error
        except ValueError as error:
            raise UserError(f"{path}: {error}") from error
