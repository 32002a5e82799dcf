"""Batches of examples of similar size, a pure function of the step: (seed, epoch) fix the order of
an epoch.

`stream_of` hands them to the framework: `tf.data` on TensorFlow, plain Python elsewhere.
"""

import bisect
import collections.abc
import concurrent.futures
import functools
import itertools
import threading

import numpy as np

# lengths are rounded up to this with XLA, which compiles each shape anew, for up to a minute
XLA_MULTIPLE = 16


def stream_of(make_arrays, first, last):
    """Streams the arrays of the steps `range(first, last)`, and makes the next ones while one is
    computed.

    `make_arrays` is a pure function of a step that returns nested dicts or tuples of NumPy arrays,
    whose structure, ranks and dtypes are the same at every step. Several threads call it. On
    TensorFlow the result is a `tf.data.Dataset` whose element has open sizes, elsewhere an iterator
    of arrays.
    """
    import keras  # takes seconds; preparing needs none of it

    def made():
        return ahead(make_arrays, range(first, last), 4)

    if keras.config.backend() != "tensorflow":
        return made()
    import tensorflow as tf

    def spec_of(array):
        return tf.TensorSpec([None] * array.ndim, array.dtype)

    options = tf.data.Options()
    # nothing to tune, and its thread sleeps ever longer, which the end waits for
    options.autotune.enabled = False
    signature = tf.nest.map_structure(spec_of, make_arrays(first))
    return (
        tf.data.Dataset.from_generator(made, output_signature=signature)
        .prefetch(2)
        .with_options(options)
    )


def ahead(function, inputs, threads):
    """Yields `function(each)` for each of some inputs, in their order, while threads compute the
    next ones.

    >>> list(ahead(abs, [-3, 2, -1], 2))
    [3, 2, 1]
    """
    inputs, pool = iter(inputs), concurrent.futures.ThreadPoolExecutor(threads)
    try:
        waiting = collections.deque(
            pool.submit(function, each) for each in itertools.islice(inputs, threads)
        )
        while waiting:
            waiting.extend(pool.submit(function, each) for each in itertools.islice(inputs, 1))
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def remembered(function):
    """Caches the last two results of a function of integers that several threads call; each result
    is made once.
    """
    cached, lock = functools.lru_cache(maxsize=2)(function), threading.Lock()

    def call(number):
        with lock:
            return cached(number)

    return call


class Batches(collections.abc.Sequence):
    """An epoch's batches in pools of `counts` batches; `make(pool)` makes those of one when the
    first is asked for.

    >>> batches = Batches([2, 3], lambda pool: [(pool, i) for i in range(2 + pool)])
    >>> len(batches), batches[2], batches[-1]
    (5, (1, 0), (1, 2))
    """

    def __init__(self, counts, make):
        self._starts = [0, *itertools.accumulate(counts)]
        self._pool = remembered(make)

    def __len__(self):
        return self._starts[-1]

    def __getitem__(self, index):
        index = range(len(self))[index]
        pool = bisect.bisect_right(self._starts, index) - 1
        return self._pool(pool)[index - self._starts[pool]]


class Epochs:
    """The batch of every step of a training, whatever step it starts or resumes at.

    `make_batches` takes a `numpy.random.Generator`, in epoch `e` the one seeded by `(seed, e)`, and
    returns a sequence of one epoch's batches, always of the same length.

    >>> epochs = Epochs(lambda rng: rng.permutation(3).tolist(), seed=1)
    >>> epochs.steps, [epochs.batch(step) for step in range(6)]
    (3, [0, 1, 2, 2, 0, 1])
    """

    def __init__(self, make_batches, seed):
        self._epoch = remembered(lambda epoch: make_batches(np.random.default_rng((seed, epoch))))
        self.steps = len(self._epoch(0))  # steps per epoch

    def batch(self, step):
        """The batch of a step, counted from 0 over all epochs."""
        epoch, index = divmod(step, self.steps)
        return self._epoch(epoch)[index]


def batches_by_size(sizes, batch_size, rng=None, pool=64):
    """Cuts examples into batches of similar size on every axis; their number depends on that of the
    examples alone.

    `sizes` are int `(examples, axes)`, the costliest axis first. `pool` batches are sorted
    together: more leaves less padding, fewer makes a more random order. Without an `rng` equal
    sizes stay in file order, and all examples are one pool, the cheapest batches first. The result
    is a sequence of int arrays, the examples of each batch.

    >>> [batch.tolist() for batch in batches_by_size(np.array([[9], [1], [8], [2]]), 2)]
    [[1, 3], [2, 0]]
    """
    sizes = np.asarray(sizes)
    if rng is None:
        return _cut(np.lexsort(sizes.T[::-1]), batch_size)
    pools = random_pools(len(sizes), batch_size, rng, pool)

    def make(number):
        rows, seed = pools[number]
        return [
            rows[batch]
            for batch in like_batches(sizes[rows], batch_size, np.random.default_rng(seed))
        ]

    return Batches([-(-len(rows) // batch_size) for rows, _ in pools], make)


def random_pools(examples, batch_size, rng, pool):
    """All examples in random order, in parts of `pool` batches: a list of int arrays, each with a
    seed of its own.
    """
    parts = _cut(rng.permutation(examples), pool * batch_size)
    return list(zip(parts, rng.integers(2**63, size=len(parts)).tolist(), strict=True))


def like_batches(sizes, batch_size, rng):
    """Cuts a pool of examples into batches of similar size on every axis, in random order, as
    `batches_by_size` does.

    The pool is sorted by the first axis and cut in four parts of whole batches, each part by the
    second axis and cut in four, and so on; the parts are then cut into batches, one of them maybe
    smaller than `batch_size`.
    """
    parts = [np.arange(len(sizes))]
    for axis in range(sizes.shape[1]):
        parts = [part[np.argsort(sizes[part, axis], kind="stable")] for part in parts]
        if axis < sizes.shape[1] - 1:
            parts = [
                piece
                for part in parts
                for piece in _cut(part, batch_size * -(-len(part) // (4 * batch_size)))
            ]
    batches = [batch for part in parts for batch in _cut(part, batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def _cut(rows, size):
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def evenly_spaced(total, count):
    """Indices of at most `count` of `total` examples, at equal distances, the first and the last
    among them.
    """
    return np.unique(np.linspace(0, total - 1, min(count, total)).astype(int)).tolist()
