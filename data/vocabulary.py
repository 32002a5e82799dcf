"""Vocabularies: words and their ids, in Python and inside a TensorFlow graph."""

import dataclasses
import functools
import pathlib
import re

from colloquy.base.files import UserError, atomic_file
from colloquy.data.text_files import read_lines, readable

PADDING_ID, EOS_ID, UNK_ID = 0, 1, 2
"""Ids in datasets of prepare.py; the release's vocabularies have others, see `Vocabulary.eos_id`
and `unk_id`.
"""
# the end of a turn, and words not in the vocabulary: words 1 and 2 of prepare.py's
SPECIALS = ("_EOS_", "_UNK_")

SPACE = re.compile("[ \t\r\v\f]+")

HASHED_BYTES, PRIME = 32, 2**31 - 1
POWERS = tuple(pow(1_000_003, i, PRIME) for i in range(1, HASHED_BYTES + 1))


def hash_of(word):
    """Hash from 0 to 2^31 - 2: a polynomial in the first 32 bytes, which a graph can compute
    too.
    """
    return (
        sum(
            power * byte for power, byte in zip(POWERS, word.encode(errors="replace"), strict=False)
        )
        % PRIME
    )


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

    def __post_init__(self):
        object.__setattr__(self, "words", tuple(self.words))
        seen = {}
        for id, word in enumerate(self.words, 1):
            if word.encode().split() != [word.encode()]:
                raise ValueError(
                    f"line {id} must be a word without white space. Received: {word!r:.60}"
                )
            if seen.setdefault(word, id) != id:
                raise ValueError(f"line {id} repeats line {seen[word]}. Received: {word!r:.60}")
        if "_EOS_" not in seen:
            raise ValueError("one of its words must be _EOS_. Received: none")

    @functools.cached_property
    def eos_id(self):
        """The id of `_EOS_`, the end of a turn."""
        return self.words.index("_EOS_") + 1

    @functools.cached_property
    def unk_id(self):
        """The id of `_UNK_`; 0, padding, which models skip, if the vocabulary lacks it."""
        return self.words.index("_UNK_") + 1 if "_UNK_" in self.words else PADDING_ID

    @classmethod
    def of_counts(cls, counts, min_count=1):
        """The specials, then the words of `{word: occurrences}` with `min_count`, by falling count
        and code points.

        >>> Vocabulary.of_counts({"a": 1, "b": 2, "_EOS_": 1, "c": 1}).words
        ('_EOS_', '_UNK_', 'b', 'a', 'c')
        """
        words = [word for word, n in counts.items() if n >= min_count and word not in SPECIALS]
        return cls((*SPECIALS, *sorted(words, key=lambda word: (-counts[word], word))))

    @classmethod
    def of(cls, words):
        """The specials, then words in order, without repetitions and words with white space."""
        kept = (word for word in dict.fromkeys(words) if word.encode().split() == [word.encode()])
        return cls((*SPECIALS, *(word for word in kept if word not in SPECIALS)))

    @functools.cached_property
    def _ids(self):
        return {word: id for id, word in enumerate(self.words, 1) if word not in SPECIALS}

    def __len__(self):
        return len(self.words)

    def encode(self, tokens):
        """The ids of some words; unknown ones have `unk_id` or a hashed id."""
        ids, unknown = self._ids, self.unk_id
        if not self.hashed:
            return [ids.get(token, unknown) for token in tokens]
        first = len(self.words) + 1
        return [
            ids[token] if token in ids else first + hash_of(token) % self.hashed for token in tokens
        ]

    def word(self, id):
        """The word with an id; `_UNK_` for a hashed one."""
        return self.words[id - 1] if id <= len(self.words) else self.words[self.unk_id - 1]

    def save(self, path):
        """Writes one word per line, UTF-8: line `n` is the word with id `n`."""
        with atomic_file(path) as file:
            file.writelines(f"{word}\n" for word in self.words)

    @classmethod
    def load(cls, path, hashed=0):
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

    @classmethod
    def load_word2id(cls, path, eos_id):
        """Reads `word2id` of DAM's release: words, each followed by its id, in any order, separated
        by white space.

        An id without a word gets one that no text contains. The file may lack `_EOS_` or spell it
        differently.
        """
        lines = read_lines(path, "words and ids")
        tokens = ((number, token) for number, line in lines for token in SPACE.split(line) if token)
        words = {eos_id: "_EOS_"}
        for number, word in tokens:
            _, id = next(tokens, (number, ""))
            if not re.fullmatch("[0-9]{1,9}", id):
                raise UserError(
                    f"{path}, line {number}: expected an id after {word!r:.60}. Received: {id!r:.60}"
                )
            if int(id) not in (0, eos_id) and words.setdefault(int(id), word) != word:
                known = words[int(id)]
                raise UserError(f"{path}, line {number}: expected a new id; {id} is {known!r:.60}")
        if max(words) > 2 * len(words) + eos_id:
            raise UserError(f"{path}: expected ids of {len(words):,} words. Received: {max(words)}")
        try:
            return cls(tuple(words.get(id, f"_{id}_") for id in range(1, max(words) + 1)))
        except ValueError as error:
            raise UserError(f"{path}: {str(error).replace('line', 'id')}") from error


class WordIds:
    """`Vocabulary.encode` inside a TensorFlow graph; an exported model must track `table`."""

    def __init__(self, vocabulary):
        import tensorflow as tf

        words = {word: id for id, word in enumerate(vocabulary.words, 1) if id != vocabulary.eos_id}
        values = tf.constant(list(words.values()), tf.int32)
        initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(list(words)), values)
        self.table = tf.lookup.StaticHashTable(initializer, vocabulary.unk_id)
        self._vocabulary = vocabulary

    def __call__(self, words):
        """The ids of words, string of any shape, `(n,)` if some are hashed: int32."""
        import tensorflow as tf

        ids, vocabulary = self.table.lookup(words), self._vocabulary
        if not vocabulary.hashed:
            return ids
        bytes_NH = tf.cast(tf.io.decode_raw(words, tf.uint8, fixed_length=HASHED_BYTES), tf.int64)
        hashes = tf.reduce_sum(bytes_NH * tf.constant(POWERS, tf.int64), axis=-1) % PRIME
        hashed = len(vocabulary) + 1 + tf.cast(hashes % vocabulary.hashed, tf.int32)
        return tf.where(ids == vocabulary.unk_id, hashed, ids)
