"""`layers.masking` against loops from the definitions."""

import math

import keras
import numpy as np
import pytest
from gradients import gradients_of
from helpers import to_numpy
from reference import max_pool_in_loops

from colloquy.layers.masked_images import max_pool_3d
from colloquy.layers.masking import masked_softmax, release_softmax, zero_padding

A, H, Q, K = 2, 3, 5, 7  # leading axes, queries, keys
HALF = ("float16", "bfloat16")


def softmax_in_loops(row, real):
    """`exp(x_k) / sum exp` over the real entries of one row; zeros where there is none."""
    total = sum(math.exp(x) for x, is_real in zip(row, real, strict=True) if is_real)
    return [math.exp(x) / total if is_real else 0.0 for x, is_real in zip(row, real, strict=True)]


@pytest.mark.parametrize("dtype", ("float32", *HALF))
def test_zero_padding_matches_definition(dtype):
    x = keras.ops.cast(np.array([[1.5, np.nan, -np.inf], [-2, 3, np.inf]], "float32"), dtype)
    found = zero_padding(x, np.array([[True, False, False]]))
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    assert to_numpy(found).tolist() == [[1.5, 0, 0], [-2, 0, 0]]


def test_zero_padding_lets_no_gradient_through():
    x, mask = np.array([2.0, np.nan, np.inf, 3.0], "float32"), np.array([True, False, False, True])
    _, gradient = gradients_of(lambda x: keras.ops.sum(zero_padding(x, mask) ** 2), [x])
    assert gradient.tolist() == [4, 0, 0, 6]


def test_masked_softmax_matches_definition():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (A, H, Q, K)).astype("float32")
    for shape in [(A, H, Q, K), (A, 1, 1, K), (K,), (H, Q, 1), None]:
        mask = None if shape is None else rng.random(shape) < 0.5
        found = to_numpy(masked_softmax(logits, mask))
        full = np.broadcast_to(True if mask is None else mask, logits.shape)
        for at in np.ndindex(A, H, Q):
            np.testing.assert_allclose(found[at], softmax_in_loops(logits[at], full[at]), atol=1e-6)


@pytest.mark.parametrize("dtype", ("float32", *HALF))
@pytest.mark.parametrize("garbage", (0.0, -6e4, np.inf, np.nan))
def test_masked_softmax_gives_exact_zeros_without_a_real_key(dtype, garbage):
    logits = np.full((2, 3), garbage, "float32")
    logits[1, 2] = -1.0
    mask = np.array([[False, False, False], [False, False, True]])
    found = to_numpy(masked_softmax(keras.ops.cast(logits, dtype), mask))
    assert found.tolist() == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("garbage", (0.0, np.inf, np.nan))
def test_masked_softmax_has_finite_gradients(garbage):
    logits = np.random.default_rng(4).normal(size=(3, K)).astype("float32")
    mask = np.array([[True] * K, [True] * 3 + [False] * 4, [False] * K])
    logits = np.where(mask, logits, garbage).astype("float32")
    value = np.arange(K, dtype="float32")
    p, gradient = gradients_of(
        lambda x: masked_softmax(x, mask), [logits], np.broadcast_to(value, logits.shape)
    )
    expected = p * (value - (p @ value)[:, None])  # d(p . v) / dx = p (v - p . v)
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


def test_masked_softmax_with_some_real_keeps_rows_without_a_real_key():
    rng = np.random.default_rng(0)
    logits, mask = (
        rng.normal(size=(2, 5, 7)).astype("float32"),
        np.arange(7) < np.array([[[0]], [[3]]]),
    )
    found, whole = (
        to_numpy(masked_softmax(logits, mask, some_real=some)) for some in (True, False)
    )
    np.testing.assert_array_equal(found[1], whole[1])
    np.testing.assert_allclose(found[0], 1 / 7, rtol=1e-6)
    assert not whole[0].any() and not found[1, :, 3:].any()


def test_release_softmax_matches_definition():
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 3, (A, H, Q, K)).astype("float32")
    query_mask, key_mask = rng.random((A, 1, Q)) < 0.6, rng.random((A, H, K)) < 0.6
    key_mask[0, 0] = False
    found = to_numpy(release_softmax(logits, query_mask, key_mask))
    for a, h, q in np.ndindex(A, H, Q):
        real = key_mask[a, h] if query_mask[a, 0, q] else np.zeros(K, bool)
        expected = softmax_in_loops(logits[a, h, q], real) if real.any() else [1 / K] * K
        np.testing.assert_allclose(found[a, h, q], expected, atol=1e-6)


@pytest.mark.parametrize("dtype", ("float32", *HALF))
def test_max_pool_3d_takes_the_maximum_of_real_cells(dtype):
    rng = np.random.default_rng(0)
    x = keras.ops.cast(rng.normal(-3.0, 1.0, (2, 3, 6, 9, 5)), dtype)
    mask = rng.random(x.shape[:-1]) < 0.3
    mask[:, :, :3, 3:6] = False
    found, found_mask = map(to_numpy, max_pool_3d(x, mask))
    for b in range(2):
        expected, expected_mask = max_pool_in_loops(to_numpy(x)[b], mask[b], 3)
        np.testing.assert_array_equal(found[b], expected.astype("float32"))
        np.testing.assert_array_equal(found_mask[b], expected_mask)
    every, _ = max_pool_in_loops(to_numpy(x)[0], np.ones_like(mask[0]), 3)
    np.testing.assert_array_equal(to_numpy(max_pool_3d(x))[0], every.astype("float32"))
