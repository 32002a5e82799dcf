"""The words that a model knows, and their ids."""

import collections
import dataclasses
import functools
import pathlib
import re

from base.files import UserError, atomic_file
from data.text_files import read_lines

PADDING_ID, EOS_ID, UNK_ID = 0, 1, 2
"""What prepare.py gives; the release's vocabularies have others, see `Vocabulary.eos_id` and `Vocabulary.unk_id`."""
SPECIALS = ("_EOS_", "_UNK_")
"""The end of a turn, and every word that the vocabulary has not: words 1 and 2 of what prepare.py makes."""

SPACE = re.compile("[ \t\r\v\f]+")

HASHED_BYTES, PRIME = 32, 2**31 - 1
POWERS = tuple(pow(1_000_003, i, PRIME) for i in range(1, HASHED_BYTES + 1))


def hash_of(word):
    """A number from 0 to 2^31 - 2 for a word: a polynomial in its first 32 bytes, so that a graph can compute it too.

    >>> hash_of("a") == ord("a") * 1_000_003
    True
    """
    return sum(power * byte for power, byte in zip(POWERS, word.encode(errors="replace"), strict=False)) % PRIME


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Words in order: the id of a word is its position, counted from 1; id 0 is padding.

    A word of a corpus that is spelled like a special is an unknown word to `encode`: the text of a
    user can neither end a turn nor stand for a known word.

    Args:
        words: Tuple of words, none twice, none empty or with ASCII white space in it; `_EOS_` is one of them.
        hashed: So many ids follow, which unknown words have by their hash: two places that hold the same unknown word
            hold the same id. 0: all are `_UNK_`.

    Raises:
        ValueError: on other words; the message calls the word with id `n` "line n".

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
                raise ValueError(f"line {id} must be a word without white space. Received: {word!r:.60}")
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
        """The id of `_UNK_`, every other word; 0, padding, where there is none: models pass over it."""
        return self.words.index("_UNK_") + 1 if "_UNK_" in self.words else PADDING_ID

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
        return cls.of_counts(counts, min_count)

    @classmethod
    def of_counts(cls, counts, min_count=1):
        """As `count`, from `{word: how often it occurs}`."""
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
        """The ids of some words; `unk_id`, or one of the hashed ids, for those that are not in it."""
        ids, unknown = self._ids, self.unk_id
        if not self.hashed:
            return [ids.get(token, unknown) for token in tokens]
        first = len(self.words) + 1
        return [ids[token] if token in ids else first + hash_of(token) % self.hashed for token in tokens]

    def word(self, id):
        """The word with an id; `_UNK_` for a hashed one."""
        return self.words[id - 1] if id <= len(self.words) else self.words[self.unk_id - 1]

    def save(self, path):
        """Writes one word per line: line `n` is the word with id `n`. UTF-8."""
        with atomic_file(path) as file:
            file.writelines(f"{word}\n" for word in self.words)

    @classmethod
    def load(cls, path, hashed=0):
        """Reads what `save` wrote.

        Args:
            path: The file.
            hashed: As of `Vocabulary`; the file does not say.

        Raises:
            UserError: where the file is missing or not UTF-8, or a line is empty, repeated or not
                one word.
        """
        path = pathlib.Path(path)
        try:
            text = path.read_bytes().decode()
            return cls(tuple(text.removesuffix("\n").split("\n")), hashed)
        except OSError as error:
            raise UserError(f"{path}: expected a vocabulary. Received: {error.strerror}") from error
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise UserError(f"{path}: line {line} must be UTF-8. Received: {error.reason}") from error
        except ValueError as error:
            raise UserError(f"{path}: {error}") from error

    @classmethod
    def load_word2id(cls, path, eos_id):
        """Reads the vocabulary of DAM's release: words, each followed by its id, in any order.

        Args:
            path: `word2id`; word and id are separated by spaces, a tab or a new line. An id that no word has gets one
                that no text has.
            eos_id: The id of `_EOS_`, which the file may leave out or spell in another way.

        Raises:
            UserError: where the file is missing, an id is none or given twice, or `_EOS_` has another id.
        """
        lines = read_lines(path, "words and ids")
        tokens = ((number, token) for number, line in lines for token in SPACE.split(line) if token)
        words = {eos_id: "_EOS_"}
        for number, word in tokens:
            _, id = next(tokens, (number, ""))
            if not re.fullmatch("[0-9]{1,9}", id):
                raise UserError(f"{path}, line {number}: expected an id after {word!r:.60}. Received: {id!r:.60}")
            if int(id) not in (0, eos_id) and words.setdefault(int(id), word) != word:
                known = words[int(id)]
                raise UserError(f"{path}, line {number}: expected a word with an id of its own, {id} is {known!r:.60}")
        if max(words) > 2 * len(words) + eos_id:
            raise UserError(f"{path}: expected ids of {len(words):,} words. Received: {max(words)}")
        try:
            return cls(tuple(words.get(id, f"_{id}_") for id in range(1, max(words) + 1)))
        except ValueError as error:
            raise UserError(f"{path}: {str(error).replace('line', 'id')}") from error
