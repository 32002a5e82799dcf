"""Layers in one operation, without padding or with a gradient of their own, against the plain way,
also backwards.
"""

import functools
import gc

import keras
import numpy as np
import pytest
import tensorflow as tf
from gradients import gradients_of
from helpers import on_tensorflow, randomised, to_numpy
from keras.src.saving.serialization_lib import ObjectSharingScope
from layer_cases import B, D, E, J, S, T, built, floats

from colloquy.layers.attentive_module import AttentiveModule
from colloquy.layers.bilstm import BiLSTM
from colloquy.layers.gradients import add_bias
from colloquy.layers.layer_norm import LayerNorm
from colloquy.layers.match_aggregation import MatchAggregation
from colloquy.layers.recurrent_encoder import RecurrentEncoder
from colloquy.models.bidaf import BiDAF, BiDAFConfig


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        *(("float32", 3e-6), ("mixed_bfloat16", 2e-2)),
        # These are no one operation. JAX has no float64 by default; on PyTorch, Keras's own layer
        # normalizes in float32.
        *(("mixed_float16", 3e-3), pytest.param("float64", 1e-9, marks=on_tensorflow)),
    ],
)
def test_layer_norm_is_keras_own_also_backwards(dtype, tolerance, rows):
    rng, found = np.random.default_rng(1), []
    x, upstream = keras.ops.cast(
        rng.normal(2.0, 3.0, (2, rows, 3, 7)), dtype.removeprefix("mixed_")
    )
    gamma, beta = rng.normal(size=(2, 7))
    for kind in (LayerNorm, keras.layers.LayerNormalization):
        layer = kind(epsilon=1e-3, dtype=dtype)
        layer.build(x.shape)
        layer.set_weights([gamma, beta])
        inputs = [x, *layer.trainable_variables]
        found.append(gradients_of(lambda x, *_, layer=layer: layer(x), inputs, upstream))
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(
            one, other, rtol=tolerance, atol=tolerance * np.abs(other).max(initial=0.0)
        )


@pytest.mark.parametrize("biases", [1, D])
def test_add_bias_is_addition_also_backwards(biases):
    inputs, upstream = [floats(B, T, D), floats(biases)], floats(B, T, D, seed=1)
    found = [gradients_of(add, inputs, upstream) for add in (add_bias, lambda x, b: x + b)]
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=on_tensorflow)])
def test_add_bias_counts_beyond_256_in_bfloat16(compiled):
    x, b = keras.ops.zeros((10_000, 3), "bfloat16"), keras.ops.zeros(3, "bfloat16")
    _, _, found = gradients_of(tf.function(add_bias) if compiled else add_bias, [x, b])
    np.testing.assert_allclose(found, 10_000, rtol=0.004)


@on_tensorflow
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("features", [D, 4 * J + 1], ids=["narrow", "wide"])
@pytest.mark.parametrize("rows", [1, 8 * B], ids=["few", "many"])
def test_bilstm_by_kernels_is_keras_own_also_backwards(rows, features, training):
    (_, (_, mask)), found = built("BiLSTM"), []
    layer, x, mask = BiLSTM(J), floats(rows, S, features), np.tile(mask, (8, 1))[-rows:]
    layer.build(x.shape)
    for layer.fast in (True, False):
        upstream, inputs = floats(rows, S, 2 * J, seed=9), [x, *layer.trainable_variables]
        found.append(
            gradients_of(lambda x, *_: layer(x, mask, training=training), inputs, upstream)
        )
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape and np.abs(other).max() > 0.02
        np.testing.assert_allclose(one, other, atol=1e-5)


@on_tensorflow
def test_bilstm_is_keras_own_in_float16_and_where_xla_compiles():
    assert BiLSTM(3, dtype="mixed_bfloat16").fast
    assert not BiLSTM(3, dtype="mixed_float16").fast
    model = BiDAF(BiDAFConfig(vocabulary_size=7, characters=5, trained_words=3, hidden=2))
    layers = [layer for layer in model.layers if isinstance(layer, BiLSTM)]
    assert len(layers) == 4 and all(layer.fast for layer in layers)
    model.compile(jit_compile=True)
    assert model.jit_compile and not any(layer.fast for layer in layers)


@pytest.mark.parametrize("layer", [BiLSTM, functools.partial(RecurrentEncoder, "gru")])
def test_layers_of_a_model_that_is_loaded_share_no_direction(layer):
    """Keras's `load_model` took a new layer for a collected one with the same `id`, now and
    then.
    """
    made = []
    with ObjectSharingScope():
        for _ in range(30):
            made.append(layer(units=4))
            gc.collect(0)
    both = [one.both if layer is BiLSTM else one.stack[0] for one in made]
    assert len({id(one) for b in both for one in (b.forward_layer, b.backward_layer)}) == 60


LEADING = {  # of query and key
    "query along an axis": ((2, 1), (2, 3)),
    "key along another axis": ((2, 3), (1, 3)),
    "both": ((2, 3, 1), (2, 1, 4)),
    "none": ((), ()),
}


@pytest.mark.parametrize("leading", LEADING)
def test_unpadded_words_give_what_padded_ones_give(leading):
    """Also by gradients, and with sentences of nothing but padding; padded words are zero whatever
    they are given.
    """
    rng = np.random.default_rng(3)
    query_lead, key_lead = LEADING[leading]
    query, key = (
        rng.normal(size=(*lead, n, 6)).astype("float32")
        for lead, n in ((query_lead, 5), (key_lead, 4))
    )
    query_mask = np.arange(5) < rng.integers(0, 6, (*query_lead, 1))
    query_mask[..., 0] |= not query_lead
    key_mask = np.arange(4) < rng.integers(0, 5, (*key_lead, 1))
    key_mask[..., 0] |= not key_lead
    layer = AttentiveModule(scalar_bias=leading == "both")
    layer.build(query.shape, key.shape)
    randomised(layer, seed=4)
    lead = np.broadcast_shapes(query_lead, key_lead)
    assert layer.compute_output_shape(query.shape, key.shape) == (*lead, 5, 6)
    real = np.broadcast_to(query_mask & key_mask.any(axis=-1, keepdims=True), (*lead, 5))
    upstream = rng.normal(size=(*lead, 5, 6)).astype("float32")
    found = []

    def attend(query, key, *_):
        return layer(query, key, key, query_mask, key_mask)

    for unpad, upstream_of in (
        (True, upstream),
        (False, upstream),
        (True, upstream * real[..., None]),
    ):
        layer.fast = unpad
        found.append(gradients_of(attend, [query, key, *layer.trainable_variables], upstream_of))
    assert 0 < real.mean() and not found[-1][0][~real].any()
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_allclose(one, other, atol=5e-5)
    assert not to_numpy(layer(query, key, key, np.zeros_like(query_mask), key_mask)).any()


@on_tensorflow
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("turns", [2, pytest.param(9, marks=pytest.mark.slow)])
def test_match_aggregation_in_bfloat16_has_the_gradient_of_float32(turns, compiled):
    """TensorFlow's own gradient of a kernel is garbage for images of two turns, at either
    convolution.

    It is off by .5 or more for every image. Rounding a maximum is off by as much for some images,
    not for all.
    """
    gradients = {}
    for policy in ("float32", "mixed_bfloat16"):
        layer = MatchAggregation(9, E, (17, 19), dtype=policy)
        layer.build([(None,) * 5] * J)
        randomised(layer, 1)

        def compute(image, weight, layer=layer):
            kernels = [convolution.kernel.value for convolution in layer.convolutions]
            with tf.GradientTape() as tape:
                score = tf.reduce_sum(layer(tf.unstack(image, axis=-1)) * weight)
            return tape.gradient(score, kernels)

        signature = [
            tf.TensorSpec([None] * 5 + [J], "float32"),
            tf.TensorSpec([None, None], "float32"),
        ]
        gradients[policy] = tf.function(compute, input_signature=signature) if compiled else compute
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        image = tf.constant(rng.normal(size=(B, T, turns, D, E, J)), "float32")
        weight = tf.constant(rng.normal(size=(B, T)), "float32")
        exact, rough = (map(to_numpy, compute(image, weight)) for compute in gradients.values())
        errors.append(
            [np.linalg.norm(r - e) / np.linalg.norm(e) for e, r in zip(exact, rough, strict=True)]
        )
    assert np.isfinite(errors).all()
    assert np.max(np.min(errors, axis=0)) < 0.25
