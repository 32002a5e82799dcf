"""Batches of examples of similar size.

The seed and the number of an epoch decide the order of its batches. So a training that resumes at
any step gets the batch of that step again.
"""

import bisect
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

XLA_MULTIPLE = 16
"""With XLA, lengths are rounded up to this: it compiles each shape anew, for up to a minute."""
BATCHES_PER_POOL = 64
"""`batches_by_size` draws the examples of this many batches at random and sorts them together.

More leave less padding, fewer make a more random order.
"""


def remembered(function: Callable) -> Callable:
    """Caches the last two results of a function of integers that several threads call.

    Two, because a thread may ask for the next result while another still uses the last one.
    """
    cached = functools.lru_cache(maxsize=2)(function)
    lock = threading.Lock()

    def call(number):
        with lock:
            return cached(number)

    return call


class Batches(Sequence):
    """The batches of an epoch. They are made a pool at a time, when one of the pool is asked for.

    Args:
        counts: The number of batches in each pool.
        make_pool: Function from the number of a pool to its batches.

    >>> batches = Batches([2, 3], lambda pool: [(pool, i) for i in range(2 + pool)])
    >>> len(batches), batches[2], batches[-1]
    (5, (1, 0), (1, 2))
    """

    def __init__(self, counts: Iterable[int], make_pool: Callable[[int], Sequence]) -> None:
        # The index of the first batch of each pool, then the number of batches: [0, 2, 5].
        self._starts = [0, *itertools.accumulate(counts)]
        self._make_pool = remembered(make_pool)

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: Any) -> Any:
        # A range counts a negative index from the end, and refuses one that is too large.
        index = range(len(self))[index]
        pool = bisect.bisect_right(self._starts, index) - 1
        place_in_pool = index - self._starts[pool]
        return self._make_pool(pool)[place_in_pool]


class Epochs:
    """The batch of every step of a training, whatever step it starts or resumes at.

    `make_batches` takes a `numpy.random.Generator`, in epoch `e` the one seeded by `(seed, e)`, and
    returns a sequence of one epoch's batches, always of the same length.

    >>> epochs = Epochs(lambda rng: rng.permutation(3).tolist(), seed=1)
    >>> epochs.steps, [epochs.batch(step) for step in range(6)]
    (3, [0, 1, 2, 2, 0, 1])
    """

    def __init__(self, make_batches: Callable[[np.random.Generator], Sequence], seed: int) -> None:
        def make_epoch(epoch):
            return make_batches(np.random.default_rng((seed, epoch)))

        self._make_epoch = remembered(make_epoch)
        self.steps = len(self._make_epoch(0))
        """Steps per epoch."""

    def batch(self, step: int) -> Any:
        """The batch of a step, counted from 0 over all epochs."""
        epoch, index = divmod(step, self.steps)
        return self._make_epoch(epoch)[index]


def batches_by_size(
    sizes: npt.ArrayLike, batch_size: int, rng: np.random.Generator | None = None
) -> Sequence:
    """Cuts examples into batches of similar size on every axis.

    With an `rng` the batches are in random order. Without one all examples are sorted, the cheapest
    first; equal sizes stay in file order. The number of batches depends on the number of examples
    alone.

    Args:
        sizes: Int `(examples, axes)`, the costliest axis first.

    Returns:
        A sequence of int arrays, the examples of each batch.

    >>> [batch.tolist() for batch in batches_by_size(np.array([[9], [1], [8], [2]]), 2)]
    [[1, 3], [2, 0]]
    """
    sizes = np.asarray(sizes)
    if rng is None:
        # `lexsort` takes the most important key last.
        order = np.lexsort(sizes.T[::-1])
        return _cut(order, batch_size)
    pools = random_pools(len(sizes), batch_size, rng, BATCHES_PER_POOL)

    def make_pool(number):
        examples, seed = pools[number]
        batches = cut_by_size(sizes[examples], batch_size, np.random.default_rng(seed))
        return [examples[batch] for batch in batches]

    counts = [_divide_up(len(examples), batch_size) for examples, _ in pools]
    return Batches(counts, make_pool)


def random_pools(
    num_examples: int, batch_size: int, rng: np.random.Generator, batches_per_pool: int
) -> list[tuple[np.ndarray, int]]:
    """Cuts all examples, in random order, into pools: their int arrays, each with a seed."""
    pools = _cut(rng.permutation(num_examples), batches_per_pool * batch_size)
    seeds = rng.integers(2**63, size=len(pools)).tolist()
    return list(zip(pools, seeds, strict=True))


def cut_by_size(sizes: np.ndarray, batch_size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Cuts a pool of examples into batches of similar size on every axis, in random order.

    The pool is sorted by the first axis and cut into four parts of whole batches. Each part is
    sorted by the second axis and cut into four, and so on. After the last axis, the parts are cut
    into batches. The last batch of a part may be smaller than `batch_size`.
    """
    parts = [np.arange(len(sizes))]
    last_axis = sizes.shape[1] - 1
    for axis in range(last_axis):
        quarters = []
        for part in parts:
            num_batches = _divide_up(len(part), batch_size)
            quarter_size = batch_size * _divide_up(num_batches, 4)
            quarters += _cut(_sort(part, sizes[:, axis]), quarter_size)
        parts = quarters

    batches = []
    for part in parts:
        batches += _cut(_sort(part, sizes[:, last_axis]), batch_size)
    return [batches[i] for i in rng.permutation(len(batches))]


def _sort(examples, sizes):
    """Sorts examples by their size; equal ones keep their order."""
    return examples[np.argsort(sizes[examples], kind="stable")]


def _divide_up(total, size):
    """The quotient, rounded up."""
    return -(-total // size)


def _cut(examples, size):
    return [examples[i : i + size] for i in range(0, len(examples), size)]


def evenly_spaced(total: int, count: int) -> list[int]:
    """Indices of at most `count` of `total` examples, at equal distances, with first and last."""
    return np.unique(np.linspace(0, total - 1, min(count, total)).astype(int)).tolist()
