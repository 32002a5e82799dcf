"""Conversations read once into files: who answered what, however much there is of it.

turns.bin            texts of all turns, UTF-8, concatenated
turns.hashes.npy     a hash of each, int64, by which equal texts are found
turns.lengths.npy    bytes of each, int32
turns.places.npy     turns in front of each in its conversation, int32
words.npy            words of the distinct texts, ids, int32
"""

import contextlib
import itertools

import numpy as np

from data.flat_arrays import GrowingArray, StoredArray
from data.sequences import Sequences
from data.tokenizers import words_of
from data.vocabulary import SPECIALS

PART = 20_000
"""Conversations or texts that are in memory at once."""


class Spool:
    """The turns of conversations, in files; what is in memory is a few numbers per turn.

    Two texts are taken for equal where their hashes are: of 10 million different ones two are, once in 300,000 times.

    Args:
        directory: Where its files are made.
        conversations: Iterable of lists of texts, the oldest first; one may be the beginning of another.
    """

    def __init__(self, directory, conversations):
        self._directory, self._file = directory, directory / "turns.bin"
        stored = self._write(conversations)
        hashes, lengths, places = (array.read(0, len(array)) for array in stored)
        self.places = places
        """Turns in front of each turn in its conversation, int32 `(turns,)`."""
        self._ends = np.cumsum(lengths, dtype=np.int64)
        _, first, same = np.unique(hashes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order))
        self.numbers = rank[same]
        """Number of the text of each turn, int32 `(turns,)`: distinct texts are counted as they occur."""
        self._first = first[order]

    def _write(self, conversations):
        names = {"hashes": np.int64, "lengths": np.int32, "places": np.int32}
        files = [self._directory / f"turns.{name}.npy" for name in names]
        with contextlib.ExitStack() as stack:
            arrays = [stack.enter_context(GrowingArray(*each)) for each in zip(files, names.values(), strict=True)]
            texts = stack.enter_context(open(self._file, "wb"))
            for part in _parts(conversations):
                encoded = [turn.strip().encode() for turns in part for turn in turns]
                texts.writelines(encoded)
                places = itertools.chain.from_iterable(range(len(turns)) for turns in part)
                for array, values in zip(arrays, (map(hash, encoded), map(len, encoded), places), strict=True):
                    array.write(list(values))
        return [StoredArray(file) for file in files]

    def __len__(self):
        """How many distinct texts there are."""
        return len(self._first)

    def before(self, turns, count):
        """What was said before some turns.

        Args:
            turns: Which turns, int `(n,)`.
            count: How many texts in front of each.

        Returns:
            Numbers of texts, the oldest first, int32 `(n, count)`; -1: none.
        """
        back = np.arange(count, 0, -1)
        there = self.places[turns, None] >= back
        return np.where(there, self.numbers[np.where(there, turns[:, None] - back, 0)], np.int32(-1))

    def texts(self, numbers):
        """Yields texts, UTF-8; reads the file from front to end where the numbers ascend."""
        with open(self._file, "rb") as file:
            for part in range(0, len(numbers), PART):
                turns = self._first[numbers[part : part + PART]]
                starts = np.where(turns > 0, self._ends[turns - 1], 0)
                for start, end in zip(starts.tolist(), self._ends[turns].tolist(), strict=True):
                    if file.tell() != start:
                        file.seek(start)
                    yield file.read(end - start)

    def words(self, text):
        """Cuts the distinct texts into words.

        Args:
            text: `tokenizer` and `lower` of `data.tokenizers.words_of`.

        Returns:
            Every distinct word at the place of its id, as a `data.vocabulary.Vocabulary` numbers them, and the words of
            every text, a `Sequences` of ids, of which the ids are mapped into memory.
        """
        ids = {word: id for id, word in enumerate(("", *SPECIALS))}
        lengths, file = [], self._directory / "words.npy"
        with GrowingArray(file, np.int32) as stored:
            for part in _parts(self.texts(np.arange(len(self)))):
                cut = [words_of(encoded.decode(), **text) for encoded in part]
                lengths.append(np.fromiter(map(len, cut), np.int64, len(cut)))
                stored.write([ids.setdefault(word, len(ids)) for words in cut for word in words])
        lengths = np.concatenate([np.zeros(0, np.int64), *lengths])
        mapped = StoredArray(file)
        flat = mapped.mapped() if len(mapped) else np.zeros(0, np.int32)
        return list(ids), Sequences(flat, np.cumsum(lengths) - lengths, lengths)


def _parts(items):
    """Yields lists of so many items."""
    items = iter(items)
    while part := list(itertools.islice(items, PART)):
        yield part
