"""Texts as ids of words, concatenated in a file: of a corpus only the distinct words are in memory."""

import collections

import numpy as np


def numbering():
    """A dictionary that numbers what it is asked for, in order.

    >>> numbers = numbering()
    >>> [numbers[word] for word in "a b a c".split()], list(numbers)
    ([0, 1, 0, 2], ['a', 'b', 'c'])
    """
    numbers = collections.defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


def flatten(numbers, starts, lengths):
    """The ids of some texts, concatenated.

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
