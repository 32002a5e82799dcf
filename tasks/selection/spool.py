"""Conversations read once into files: who answered what, however much there is of it.

turns.bin            texts of all turns, UTF-8, concatenated
turns.hashes.npy     a hash of each, int64, by which equal texts are found
turns.lengths.npy    bytes of each, int32
turns.places.npy     turns in front of each in its conversation, int32
words.npy            words of the distinct texts, ids, int32
"""

import numpy as np

from data.flat_arrays import GrowingArray, StoredArray
from data.sequences import Sequences
from data.tokenizers import words_of
from data.vocabulary import SPECIALS

FLUSH = 2**18
"""Items that are kept in memory before they are written."""


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
        arrays = [GrowingArray(file, dtype) for file, dtype in zip(files, names.values(), strict=True)]
        hashes, lengths, places = (array.items for array in arrays)
        with open(self._file, "wb") as texts:
            for turns in conversations:
                encoded = [turn.strip().encode() for turn in turns]
                texts.writelines(encoded)
                hashes.extend(map(hash, encoded))
                lengths.extend(map(len, encoded))
                places.extend(range(len(encoded)))
                if len(lengths) > FLUSH:
                    for array in arrays:
                        array.flush()
        for array in arrays:
            array.close()
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
        turns = self._first[numbers]
        starts = np.where(turns > 0, self._ends[turns - 1], 0)
        with open(self._file, "rb") as file:
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
        lengths, file = np.zeros(len(self), np.int64), self._directory / "words.npy"
        with GrowingArray(file, np.int32) as stored:
            for number, encoded in enumerate(self.texts(np.arange(len(self)))):
                words = words_of(encoded.decode(), **text)
                stored.items.extend([ids.setdefault(word, len(ids)) for word in words])
                lengths[number] = len(words)
                if len(stored.items) > FLUSH:
                    stored.flush()
        mapped = StoredArray(file)
        flat = mapped.mapped() if len(mapped) else np.zeros(0, np.int32)
        return list(ids), Sequences(flat, np.cumsum(lengths) - lengths, lengths)
