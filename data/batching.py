"""Batches of examples of similar size, a pure function of the step: (seed, epoch) fix the order of
an epoch.

`stream_batches` hands them to the framework: `tf.data` on TensorFlow, plain Python elsewhere.
"""

import bisect
import collections
import concurrent.futures
import contextvars
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

In = TypeVar("In")
Out = TypeVar("Out")

# With XLA, lengths are rounded up to this: it compiles each shape anew, for up to a minute.
XLA_MULTIPLE = 16
THREADS = 2  # batches that are made at once
PREFETCHED = 4  # finished batches that wait


def stream_batches(make_batch: Callable[[int], Any], first_step: int, last_step: int) -> Any:
    """Streams the batches of the steps `range(first_step, last_step)`, and makes the next ones
    while one is computed.

    Args:
        make_batch: A pure function of a step that returns nested dicts or tuples of NumPy arrays.
            Their structure, ranks and dtypes are the same at every step. Several threads call it.

    Returns:
        On TensorFlow a `tf.data.Dataset` whose elements have open sizes, elsewhere an iterator of
        NumPy arrays.
    """
    import keras  # takes seconds; preparing needs none of it

    if keras.config.backend() == "tensorflow":
        return _stream_from_tensorflow(make_batch, first_step, last_step)
    return ahead(make_batch, range(first_step, last_step), THREADS)


def _stream_from_tensorflow(make_batch, first_step, last_step):
    import tensorflow as tf

    structure = make_batch(first_step)
    arrays = tf.nest.flatten(structure)
    dtypes = [array.dtype for array in arrays]

    def make_arrays(step):
        return tf.nest.flatten(make_batch(int(step)))

    def make_tensors(step):
        tensors = tf.numpy_function(make_arrays, [step], dtypes)
        for tensor, array in zip(tensors, arrays, strict=True):
            tensor.set_shape([None] * array.ndim)
        return tf.nest.pack_sequence_as(structure, tensors)

    options = tf.data.Options()
    # There is nothing to tune. The tuning thread sleeps longer each time, and closing the stream
    # waits for it.
    options.autotune.enabled = False
    return (
        tf.data.Dataset.range(first_step, last_step)
        .map(make_tensors, num_parallel_calls=THREADS, deterministic=True)
        .prefetch(PREFETCHED)
        .with_options(options)
    )


def ahead(function: Callable[[In], Out], inputs: Iterable[In], threads: int) -> Iterator[Out]:
    """Yields `function(x)` for each of some inputs, in their order, while threads compute the next
    ones. The threads see the caller's context variables, such as those of `engine.cancellation`.

    >>> list(ahead(abs, [-3, 2, -1], 2))
    [3, 2, 1]
    """
    inputs = iter(inputs)
    pool = concurrent.futures.ThreadPoolExecutor(threads)
    waiting: collections.deque[concurrent.futures.Future[Out]] = collections.deque()
    try:
        for x in itertools.islice(inputs, threads):
            waiting.append(pool.submit(contextvars.copy_context().run, function, x))
        while waiting:
            for x in itertools.islice(inputs, 1):
                waiting.append(pool.submit(contextvars.copy_context().run, function, x))
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def remembered(function: Callable[[int], Out]) -> Callable[[int], Out]:
    """Caches the last two results of a function of integers that several threads call; each result
    is made once.
    """
    cached = functools.lru_cache(maxsize=2)(function)
    lock = threading.Lock()

    def call(number):
        with lock:
            return cached(number)

    return call


class Batches(Sequence):
    """An epoch's batches in pools of `counts` batches; `make(pool)` makes those of one when the
    first is asked for.

    >>> batches = Batches([2, 3], lambda pool: [(pool, i) for i in range(2 + pool)])
    >>> len(batches), batches[2], batches[-1]
    (5, (1, 0), (1, 2))
    """

    def __init__(self, counts: Iterable[int], make: Callable[[int], Sequence]) -> None:
        self._starts = [0, *itertools.accumulate(counts)]
        self._pool = remembered(make)

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: Any) -> Any:
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

    def __init__(self, make_batches: Callable[[np.random.Generator], Sequence], seed: int) -> None:
        self._epoch = remembered(lambda epoch: make_batches(np.random.default_rng((seed, epoch))))
        self.steps = len(self._epoch(0))  # steps per epoch

    def batch(self, step: int) -> Any:
        """The batch of a step, counted from 0 over all epochs."""
        epoch, index = divmod(step, self.steps)
        return self._epoch(epoch)[index]


def batches_by_size(
    sizes: npt.ArrayLike, batch_size: int, rng: np.random.Generator | None = None, pool: int = 64
) -> Sequence:
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
        order = np.lexsort(sizes.T[::-1])  # sorts by its last key first
        return _cut(order, batch_size)
    pools = random_pools(len(sizes), batch_size, rng, pool)

    def make(number):
        rows, seed = pools[number]
        batches = like_batches(sizes[rows], batch_size, np.random.default_rng(seed))
        return [rows[batch] for batch in batches]

    counts = [_count_batches(len(rows), batch_size) for rows, _ in pools]
    return Batches(counts, make)


def random_pools(
    examples: int, batch_size: int, rng: np.random.Generator, pool: int
) -> list[tuple[np.ndarray, int]]:
    """All examples in random order, in parts of `pool` batches: a list of int arrays, each with a
    seed of its own.
    """
    parts = _cut(rng.permutation(examples), pool * batch_size)
    return list(zip(parts, rng.integers(2**63, size=len(parts)).tolist(), strict=True))


def like_batches(sizes: np.ndarray, batch_size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Cuts a pool of examples into batches of similar size on every axis, in random order, as
    `batches_by_size` does.

    The pool is sorted by the first axis and cut in four parts of whole batches, each part by the
    second axis and cut in four, and so on; the parts are then cut into batches, one of them maybe
    smaller than `batch_size`.
    """
    parts = [np.arange(len(sizes))]
    last_axis = sizes.shape[1] - 1
    for axis in range(last_axis):
        quarters = []
        for part in parts:
            quarter_size = batch_size * _count_batches(len(part), 4 * batch_size)
            quarters += _cut(_sort(part, sizes[:, axis]), quarter_size)
        parts = quarters

    batches = []
    for part in parts:
        batches += _cut(_sort(part, sizes[:, last_axis]), batch_size)
    return [batches[i] for i in rng.permutation(len(batches))]


def _sort(rows, sizes):
    """Sorts examples by their size; equal ones keep their order."""
    return rows[np.argsort(sizes[rows], kind="stable")]


def _count_batches(examples, batch_size):
    return -(-examples // batch_size)  # rounded up


def _cut(rows, size):
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def evenly_spaced(total: int, count: int) -> list[int]:
    """Indices of at most `count` of `total` examples, at equal distances, with first and last."""
    return np.unique(np.linspace(0, total - 1, min(count, total)).astype(int)).tolist()
