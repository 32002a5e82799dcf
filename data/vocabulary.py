"""Vocabularies: words and their ids, in Python and inside a TensorFlow graph."""

import dataclasses
import functools
import hashlib
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

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

    A TensorFlow graph can compute it too, see `WordIds`.
    """
    first_bytes = word.encode(errors="replace")[:HASHED_BYTES]
    total = 0
    for power, byte in zip(POWERS, first_bytes, strict=False):
        total += power * byte
    return total % PRIME


def is_word(text: str) -> bool:
    """Whether a text is not empty and has no ASCII white space."""
    return text.encode().split() == [text.encode()]


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Words in order: the id of a word is its position, counted from 1; id 0 is padding.

    `words` are distinct, without ASCII white space, `_EOS_` among them; else a `ValueError` names
    word `n` as "line n". To `encode` a word that is spelled like a special is unknown: the text of
    a user cannot end a turn. Unknown words share `hashed` further ids, assigned by hash; 0: all are
    `_UNK_`.

    >>> vocabulary = Vocabulary(("_EOS_", "_UNK_", "hello", "there"))
    >>> vocabulary.encode(["hello", "you", "there", "_EOS_"])
    [3, 2, 4, 2]
    >>> Vocabulary(vocabulary.words, hashed=100).encode(["you", "hello", "you"])
    [89, 3, 89]
    """

    words: tuple[str, ...]
    hashed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
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
    def _ids(self):
        return {word: id for id, word in enumerate(self.words, 1) if word not in SPECIALS}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The ids of some words; unknown ones have `unk_id` or a hashed id."""
        ids = self._ids
        return [ids.get(token) or self._unknown_id(token) for token in tokens]

    def _unknown_id(self, token):
        if not self.hashed:
            return self.unk_id
        return len(self.words) + 1 + hash_of(token) % self.hashed

    def word(self, id: int) -> str:
        """The word with an id; `_UNK_` for a hashed one."""
        if id > len(self.words):
            id = self.unk_id
        return self.words[id - 1]

    def in_brackets(self, words: Sequence[str]) -> str:
        """Joins words to a text, with brackets around those that are not in the vocabulary.

        >>> Vocabulary(("_EOS_", "_UNK_", "hello"), hashed=100).in_brackets(["hello", "you"])
        'hello [you]'
        """
        shown = []
        for word, id in zip(words, self.encode(words), strict=True):
            is_known = id != self.unk_id and id <= len(self.words)
            shown.append(word if is_known else f"[{word}]")
        return " ".join(shown)

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


class WordIds:
    """`Vocabulary.encode` inside a TensorFlow graph; an exported model must track `table`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        import tensorflow as tf

        # A text that contains `_EOS_` does not end a turn.
        ids = {word: id for id, word in enumerate(vocabulary.words, 1)}
        del ids["_EOS_"]
        initializer = tf.lookup.KeyValueTensorInitializer(
            keys=tf.constant(list(ids)), values=tf.constant(list(ids.values()), tf.int32)
        )
        self.table = tf.lookup.StaticHashTable(initializer, vocabulary.unk_id)
        self._vocabulary = vocabulary

    def __call__(self, words: Any) -> Any:
        """The ids of words, string of any shape, `(n,)` if some are hashed: int32."""
        import tensorflow as tf

        vocabulary = self._vocabulary
        ids = self.table.lookup(words)
        if not vocabulary.hashed:
            return ids
        # As `hash_of`.
        bytes_NH = tf.io.decode_raw(words, tf.uint8, fixed_length=HASHED_BYTES)
        powers_H = tf.constant(POWERS, tf.int64)
        hash_N = tf.reduce_sum(tf.cast(bytes_NH, tf.int64) * powers_H, axis=-1) % PRIME
        first_hashed = len(vocabulary) + 1
        hashed_N = first_hashed + tf.cast(hash_N % vocabulary.hashed, tf.int32)
        return tf.where(ids == vocabulary.unk_id, hashed_N, ids)
