"""The turns of conversations, in a file: which text answers which.

Texts stay on disk; memory holds a few numbers per turn.
"""

import array
import itertools

import numpy as np

from data.flat_arrays import GrowingArray, StoredArray
from data.sequences import Sequences
from data.tokenizers import words_of
from data.vocabulary import SPECIALS

PART = 20_000
"""Texts in memory at once."""


class TurnStore:
    """The turns of conversations; equal texts have one number.

    Texts are equal if their hashes are: two of 10 million different texts match once in 300,000 stores.

    Args:
        directory: Directory of its files.
        conversations: Iterable of lists of texts, the oldest first; one may be the beginning of another.

    Attributes:
        numbers: Number of the text of each turn, counted in order of first occurrence, int32 `(turns,)`.
        places: Turns before each turn in its conversation, int32 `(turns,)`.
    """

    def __init__(self, directory, conversations):
        self._directory, self._file = directory, directory / "turns.bin"
        hashes, lengths, places = array.array("q"), array.array("i"), array.array("i")
        with open(self._file, "wb") as file:
            for turns in conversations:
                for place, turn in enumerate(turns):
                    text = turn.strip().encode()
                    lengths.append(file.write(text))
                    hashes.append(hash(text))
                    places.append(place)
        _, first, same = np.unique(np.asarray(hashes), return_index=True, return_inverse=True)
        order = np.argsort(first)
        self.numbers = np.argsort(order).astype(np.int32)[same]
        self.places, lengths = np.asarray(places), np.asarray(lengths)
        self._starts, self._lengths = (np.cumsum(lengths) - lengths)[first[order]], lengths[first[order]]

    def __len__(self):
        """The number of distinct texts."""
        return len(self._starts)

    def before(self, turns, count):
        """Numbers of the texts of the `count` turns before each of some turns, int `(n,)`.

        Returns:
            int32 `(n, count)`, the oldest first; -1: no turn.
        """
        back = np.arange(count, 0, -1)
        there = self.places[turns, None] >= back
        return np.where(there, self.numbers[np.where(there, turns[:, None] - back, 0)], np.int32(-1))

    def texts(self, numbers):
        """Yields texts, UTF-8; reads the file once from start to end if the numbers ascend."""
        with open(self._file, "rb") as file:
            for start, length in zip(self._starts[numbers], self._lengths[numbers], strict=True):
                file.seek(start)
                yield file.read(length)

    def words(self, text):
        """Splits the distinct texts into words, as `data.tokenizers.words_of` does with the settings `text`.

        Returns:
            Every distinct word, at the index that is its id in a `data.vocabulary.Vocabulary` of them; and the words of
            every text, `Sequences` of ids that are mapped into memory.
        """
        ids = {word: id for id, word in enumerate(("", *SPECIALS))}
        lengths, file, texts = array.array("q"), self._directory / "words.npy", self.texts(np.arange(len(self)))
        with GrowingArray(file, np.int32) as stored:
            while part := list(itertools.islice(texts, PART)):
                cut = [words_of(encoded.decode(), **text) for encoded in part]
                lengths.extend(map(len, cut))
                stored.write([ids.setdefault(word, len(ids)) for words in cut for word in words])
        lengths = np.asarray(lengths)
        return list(ids), Sequences(StoredArray(file).mapped(), np.cumsum(lengths) - lengths, lengths)
