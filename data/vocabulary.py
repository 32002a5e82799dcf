"""The words that a model knows, and their ids."""

import collections
import dataclasses
import functools
import pathlib

from base.files import UserError, atomic_file

PADDING_ID, EOS_ID, UNK_ID = 0, 1, 2
SPECIALS = ("_EOS_", "_UNK_")
"""Words 1 and 2: the end of a turn, and every word that the vocabulary has not."""


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Words in order: the id of a word is its position, counted from 1; id 0 is padding.

    A word of a corpus that is spelled like a special is an unknown word to `encode`: the text of a
    user can neither end a turn nor stand for a known word.

    Args:
        words: Tuple of words, the first two being `_EOS_` and `_UNK_`; none twice, none empty or
            with ASCII white space in it.

    Raises:
        ValueError: on other words; the message calls the word with id `n` "line n".

    >>> vocabulary = Vocabulary(("_EOS_", "_UNK_", "hello", "there"))
    >>> vocabulary.encode(["hello", "you", "there", "_EOS_"])
    [3, 2, 4, 2]
    """

    words: tuple[str, ...]

    def __post_init__(self):
        object.__setattr__(self, "words", tuple(self.words))
        if self.words[:2] != SPECIALS:
            raise ValueError(f"lines 1 and 2 must be {SPECIALS}. Received: {self.words[:2]}")
        seen = {}
        for id, word in enumerate(self.words, 1):
            if word.encode().split() != [word.encode()]:
                raise ValueError(f"line {id} must be a word without white space. Received: {word!r}")
            if seen.setdefault(word, id) != id:
                raise ValueError(f"line {id} repeats line {seen[word]}. Received: {word!r}")

    @classmethod
    def count(cls, token_lists, min_count=1):
        """The vocabulary of a corpus: the specials, then its words, most frequent first.

        Words of equal count are in the order of their code points, whatever the corpus's order.

        Args:
            token_lists: Iterable of lists of words.
            min_count: Words that occur less often are left out.

        >>> Vocabulary.count([["b", "a"], ["c", "b"], ["_EOS_"]]).words
        ('_EOS_', '_UNK_', 'b', 'a', 'c')
        """
        counts = collections.Counter()
        for tokens in token_lists:
            counts.update(tokens)
        words = [word for word, n in counts.items() if n >= min_count and word not in SPECIALS]
        return cls((*SPECIALS, *sorted(words, key=lambda word: (-counts[word], word))))

    @classmethod
    def of(cls, words):
        """The vocabulary of some words, in their order, without specials, repeated ones and any with white space.

        >>> Vocabulary.of(["b", "a", "b", "_EOS_", "c d"]).words
        ('_EOS_', '_UNK_', 'b', 'a')
        """
        kept = (word for word in dict.fromkeys(words) if word.encode().split() == [word.encode()])
        return cls((*SPECIALS, *(word for word in kept if word not in SPECIALS)))

    @functools.cached_property
    def _ids(self):
        return {word: id for id, word in enumerate(self.words, 1) if word not in SPECIALS}

    def __len__(self):
        return len(self.words)

    def encode(self, tokens):
        """The ids of some words; `_UNK_`'s for those that are not in it."""
        ids = self._ids
        return [ids.get(token, UNK_ID) for token in tokens]

    def save(self, path):
        """Writes one word a line: line `n` is the word with id `n`. UTF-8."""
        with atomic_file(path) as file:
            file.writelines(f"{word}\n" for word in self.words)

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote.

        Raises:
            UserError: where the file is missing or not UTF-8, or a line is empty, repeated or not
                one word.
        """
        path = pathlib.Path(path)
        try:
            text = path.read_bytes().decode()
            return cls(tuple(text.removesuffix("\n").split("\n")))
        except OSError as error:
            raise UserError(f"{path}: expected a vocabulary. Received: {error.strerror}") from error
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise UserError(f"{path}: line {line} must be UTF-8. Received: {error.reason}") from error
        except ValueError as error:
            raise UserError(f"{path}: {error}") from error
