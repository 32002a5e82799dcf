"""`layers.match_aggregation` against loops from the paper (Zhou et al. 2018, section 3.6)."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import on_tensorflow, randomised, to_numpy
from reference import aggregate_in_loops, max_pool_in_loops

from layers.match_aggregation import MatchAggregation, pooled_size

B, N, K, J, C = 2, 3, 11, 13, 7  # batch, candidates, words, words, matches


def apply(layer, image, mask=None):
    """The layer's scores of images `(B, N, T, K, J, C)`, masks `(B, N, T, K, J)`."""
    return layer([image[..., c] for c in range(C)], mask)


def built(max_turns, max_words, **settings):
    layer = MatchAggregation(max_turns, max_words, (17, 19), **settings)
    layer.build([(None,) * 5] * C)
    return randomised(layer, 1)


def test_pooled_size_counts_the_cells_of_two_poolings():
    for size in range(1, 60):
        cells = np.zeros((size, 1, 1, 1)), np.ones((size, 1, 1), bool)
        assert pooled_size(size) == len(max_pool_in_loops(*max_pool_in_loops(*cells, 3), 3)[0])


@pytest.mark.parametrize("sizes", [(5, 13), (2, 9), (7, 10)])  # all remainders after division by 3
def test_match_aggregation_release_matches_release(sizes):
    turns, words = sizes
    layer = built(turns, words, scale=1.5, masking="release")
    x = np.random.default_rng(5).normal(size=(1, 2, turns, words, words, C)).astype("float32")
    found = to_numpy(apply(layer, x, np.zeros(x.shape[:-1], bool)))  # nothing is masked
    for n in range(2):
        expected = aggregate_in_loops(x[0, n], None, layer, 1.5, release=True)
        np.testing.assert_allclose(found[0, n], expected, atol=1e-5)


@on_tensorflow
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("turns", [1, 2, 9])
def test_match_aggregation_in_bfloat16_has_the_gradient_of_float32(turns, compiled):
    # TensorFlow's own gradient of a kernel is garbage for images of two turns, at either convolution: off by .5 or more
    # for every image. What rounding makes of a maximum is off by as much for some images, not for all.
    gradients = {}
    for policy in ("float32", "mixed_bfloat16"):
        layer = built(9, J, dtype=policy)

        def compute(image, weight, layer=layer):
            kernels = [convolution.kernel.value for convolution in layer.convolutions]
            with tf.GradientTape() as tape:
                score = tf.reduce_sum(apply(layer, image) * weight)
            return tape.gradient(score, kernels)

        signature = [tf.TensorSpec([None] * 5 + [C], "float32"), tf.TensorSpec([None, None], "float32")]
        gradients[policy] = tf.function(compute, input_signature=signature) if compiled else compute
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        image = tf.constant(rng.normal(size=(B, N, turns, K, J, C)), "float32")
        weight = tf.constant(rng.normal(size=(B, N)), "float32")
        exact, rough = (map(to_numpy, compute(image, weight)) for compute in gradients.values())
        errors.append([np.linalg.norm(r - e) / np.linalg.norm(e) for e, r in zip(exact, rough, strict=True)])
    assert np.isfinite(errors).all()
    assert np.max(np.min(errors, axis=0)) < 0.25
