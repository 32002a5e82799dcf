"""Batches of examples of like size, a pure function of the step: (seed, epoch) fix the order of an epoch."""

import bisect
import collections.abc
import functools
import itertools
import threading

import numpy as np


def remembered(function):
    """Caches the last two results of a function of integers that several threads call; each result is made once."""
    cached, lock = functools.lru_cache(maxsize=2)(function), threading.Lock()

    def call(number):
        with lock:
            return cached(number)

    return call


class Batches(collections.abc.Sequence):
    """An epoch's batches in pools, each made when a batch of it is asked for.

    Args:
        counts: Number of batches of each pool.
        make: Pure function of the number of a pool that gives the list of its batches.

    >>> batches = Batches([2, 3], lambda pool: [(pool, i) for i in range(2 + pool)])
    >>> len(batches), batches[2], batches[1:4], batches[-1]
    (5, (1, 0), [(0, 1), (1, 0), (1, 1)], (1, 2))
    """

    def __init__(self, counts, make):
        self._starts = [0, *itertools.accumulate(counts)]
        self._pool = remembered(make)

    def __len__(self):
        return self._starts[-1]

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        pool = bisect.bisect_right(self._starts, index) - 1
        return self._pool(pool)[index - self._starts[pool]]


class Epochs:
    """The batch of every step of a training, whatever step it starts or resumes at.

    Args:
        make_batches: Takes a `numpy.random.Generator` and returns a sequence of one epoch's batches, of the same length
            each time.
        seed: Epoch `e` draws from the generator seeded by `(seed, e)`.

    >>> epochs = Epochs(lambda rng: rng.permutation(3).tolist(), seed=1)
    >>> epochs.steps, [epochs.batch(step) for step in range(6)]
    (3, [0, 1, 2, 2, 0, 1])
    >>> epochs.batch(4)
    0
    """

    def __init__(self, make_batches, seed):
        self._epoch = remembered(lambda epoch: make_batches(np.random.default_rng((seed, epoch))))
        self.steps = len(self._epoch(0))
        """Steps per epoch."""

    def batch(self, step):
        """The batch of a step, counted from 0 over all epochs."""
        epoch, index = divmod(step, self.steps)
        return self._epoch(epoch)[index]


def batches_by_size(sizes, batch_size, rng=None, pool=64):
    """Cuts examples into batches of like size on every axis.

    A random pool of some batches is cut into batches of like size, and these are shuffled; see `like_batches`. The
    number of batches depends on the number of examples alone.

    Args:
        sizes: Size of each example on each axis, int `(examples, axes)`, the costliest axis first.
        batch_size: Examples per batch; the last of a pool may have fewer.
        rng: `numpy.random.Generator`; `None` keeps file order within equal sizes and sorts all
            examples in one pool, the cheapest batches first.
        pool: Batches sorted together: more leaves less padding, fewer makes a more random order.

    Returns:
        Sequence of int arrays: the examples of each batch.

    >>> [batch.tolist() for batch in batches_by_size(np.array([[9], [1], [8], [2]]), 2)]
    [[1, 3], [2, 0]]
    """
    sizes = np.asarray(sizes)
    if rng is None:
        order = np.lexsort(sizes.T[::-1])
        return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    pools = random_pools(len(sizes), batch_size, rng, pool)

    def make(number):
        rows, seed = pools[number]
        return [rows[batch] for batch in like_batches(sizes[rows], batch_size, np.random.default_rng(seed))]

    return Batches([-(-len(rows) // batch_size) for rows, _ in pools], make)


def random_pools(examples, batch_size, rng, pool):
    """All examples in random order, in parts of `pool` batches: a list of int arrays, each with a seed of its own."""
    order, size = rng.permutation(examples), pool * batch_size
    parts = [order[i : i + size] for i in range(0, examples, size)]
    return list(zip(parts, rng.integers(2**63, size=len(parts)).tolist(), strict=True))


def like_batches(sizes, batch_size, rng):
    """Cuts a pool of examples into batches of like size on every axis, in random order.

    The pool is sorted by the first axis and cut in four, each part by the second axis and cut in four, and so on; the
    parts are then cut into batches.

    Args:
        sizes, batch_size, rng: As in `batches_by_size`.

    Returns:
        List of int arrays: the examples of each batch, of which only one may be smaller than `batch_size`.
    """
    parts = [np.arange(len(sizes))]
    for axis in range(sizes.shape[1]):
        parts = [part[np.argsort(sizes[part, axis], kind="stable")] for part in parts]
        if axis < sizes.shape[1] - 1:
            parts = [piece for part in parts for piece in _cut(part, 4, batch_size)]
    batches = [part[i : i + batch_size] for part in parts for i in range(0, len(part), batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def _cut(part, pieces, batch_size):
    """Cuts into at most `pieces` parts of whole batches, so that only the last batch is partial."""
    whole = -(-len(part) // batch_size)
    step = -(-whole // pieces) * batch_size
    return [part[i : i + step] for i in range(0, len(part), step)]


def evenly_spaced(total, count):
    """Indices of at most `count` of `total` examples, at equal distances, the first and the last among them."""
    return np.unique(np.linspace(0, total - 1, min(count, total)).astype(int)).tolist()
