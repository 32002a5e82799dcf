"""Texts as numbers of words, one behind the other in a file: what a corpus takes of memory is its distinct words."""

import collections
import functools

import numpy as np

CACHED = 2**16
"""Texts whose words are remembered: those of a conversation come again, line after line."""


class Words:
    """The distinct words of a corpus, numbered as they come.

    Args:
        tokenize: Function from a text to its list of words.

    >>> words = Words(str.split)
    >>> words.numbers("a b a"), words.numbers("c b"), list(words)
    ((0, 1, 0), (2, 1), ['a', 'b', 'c'])
    """

    def __init__(self, tokenize):
        found = collections.defaultdict()
        found.default_factory = found.__len__
        self._found = found
        self.numbers = functools.lru_cache(CACHED)(lambda text: tuple([found[word] for word in tokenize(text)]))
        """Function from a text to the numbers of its words."""

    def __len__(self):
        return len(self._found)

    def __iter__(self):
        return iter(self._found)


def flatten(numbers, starts, lengths):
    """The numbers of some texts, one text behind the other.

    Args:
        numbers: A `data.flat_arrays.StoredArray` of all texts.
        starts, lengths: Where these begin in it, ascending, and how long they are, int `(texts,)`.

    Returns:
        An array of the numbers.
    """
    if not len(starts):
        return np.zeros(0, numbers.dtype)
    around = numbers.read(starts[0], starts[-1] + lengths[-1])
    before = np.cumsum(lengths) - lengths
    return around[np.arange(lengths.sum()) + np.repeat(starts - starts[0] - before, lengths)]
