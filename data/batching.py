"""Batches of examples of like size, in an order that a seed and an epoch fix."""

import itertools

import numpy as np


def batches_by_size(sizes, batch_size, rng=None, pool=64):
    """Cuts examples into batches of like size on every axis.

    A random pool of some batches is sorted by the first axis and cut in four, each part by the second
    axis and cut in four, and so on; the parts are then cut into batches, and all batches shuffled.
    How many batches there are depends on the number of examples alone.

    Args:
        sizes: Size of each example on each axis, int `(examples, axes)`, the costliest axis first.
        batch_size: Examples a batch; the last of a part may have fewer.
        rng: `numpy.random.Generator`; `None` keeps file order within equal sizes and sorts all
            examples in one pool, the cheapest batches first.
        pool: Batches sorted together: more leaves less padding, fewer makes a more random order.

    Returns:
        List of int arrays: the examples of each batch.

    >>> [batch.tolist() for batch in batches_by_size(np.array([[9], [1], [8], [2]]), 2)]
    [[1, 3], [2, 0]]
    """
    sizes = np.asarray(sizes)
    if rng is None:
        order = np.lexsort(sizes.T[::-1])
        return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    order = rng.permutation(len(sizes))
    batches = []
    for i in range(0, len(order), pool * batch_size):
        parts = [order[i : i + pool * batch_size]]
        for axis in range(sizes.shape[1]):
            ordered = [part[np.argsort(sizes[part, axis], kind="stable")] for part in parts]
            if axis < sizes.shape[1] - 1:
                parts = [piece for part in ordered for piece in _cut(part, 4, batch_size)]
            else:
                parts = ordered
        for part in parts:
            batches += [part[j : j + batch_size] for j in range(0, len(part), batch_size)]
    return [batches[j] for j in rng.permutation(len(batches))]


def _cut(part, pieces, batch_size):
    """Cuts into at most `pieces` parts of whole batches, so that only the last batch is partial."""
    whole = -(-len(part) // batch_size)
    step = -(-whole // pieces) * batch_size
    return [part[i : i + step] for i in range(0, len(part), step)]


def epochs_of(make_batches, seed, start=0):
    """All batches of all epochs without end, from batch `start` on.

    Args:
        make_batches: Takes a `numpy.random.Generator` and returns the list of one epoch's batches,
            of the same length each time.
        seed: Epoch `e` draws from the generator seeded by `(seed, e)`, so that any epoch can be made
            again without those before it.
        start: Batches to skip, counted over all epochs.

    Yields:
        What the lists hold.

    >>> def two(rng):
    ...     return rng.permutation(2).tolist()
    >>> whole = list(itertools.islice(epochs_of(two, seed=1), 8))
    >>> list(itertools.islice(epochs_of(two, seed=1, start=3), 5)) == whole[3:]
    True
    """
    length = len(make_batches(np.random.default_rng((seed, 0))))
    for epoch in itertools.count(start // length):
        batches = make_batches(np.random.default_rng((seed, epoch)))
        yield from batches[start % length :] if epoch == start // length else batches
