"""data/batching.py."""

import itertools

import numpy as np

from data.batching import batches_by_size, epochs_of


def sizes(examples, seed=0):
    return np.random.default_rng(seed).integers(1, 50, size=(examples, 3))


def test_every_example_is_in_one_batch():
    for examples in (1, 7, 100, 1201):
        for rng in (None, np.random.default_rng(3)):
            batches = batches_by_size(sizes(examples), 7, rng)
            assert sorted(np.concatenate(batches).tolist()) == list(range(examples))
            assert max(len(batch) for batch in batches) <= 7


def test_number_of_batches_depends_on_the_number_of_examples_alone():
    counts = {len(batches_by_size(sizes(1201, seed), 7, np.random.default_rng(seed))) for seed in range(9)}
    assert len(counts) == 1
    assert counts.pop() <= 1201 / 7 + 17  # at most one partial batch a part


def test_batches_hold_examples_of_like_size():
    size = sizes(64 * 32)
    batches = batches_by_size(size, 32, np.random.default_rng(1))
    spread = np.mean([np.ptp(size[batch], axis=0) for batch in batches], axis=0)
    # Sixteen parts: each axis spans about a quarter of its range, the last one a sixteenth.
    assert (spread < [14, 14, 30]).all()
    in_random_order = np.array_split(np.random.default_rng(1).permutation(len(size)), 64)
    assert (np.mean([np.ptp(size[b], axis=0) for b in in_random_order], axis=0) > 40).all()


def test_order_is_shuffled_and_repeats_with_its_seed():
    def order(seed):
        return np.concatenate(batches_by_size(sizes(700), 7, np.random.default_rng(seed))).tolist()

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_epochs_of_resumes_anywhere():
    def make_batches(rng):
        return rng.permutation(5).tolist()

    whole = list(itertools.islice(epochs_of(make_batches, seed=4), 23))
    assert whole[:5] != whole[5:10]  # epochs differ
    assert sorted(whole[5:10]) == [0, 1, 2, 3, 4]
    for start in (0, 1, 5, 12):
        resumed = list(itertools.islice(epochs_of(make_batches, 4, start), 23 - start))
        assert resumed == whole[start:]
