"""The loop and the operation of `layers.tensorflow_kernels.bilstm` against Keras's loop."""

import functools
import gc

import numpy as np
import pytest
from gradients import gradients_of
from helpers import on_tensorflow, to_numpy
from keras import ops
from keras.src.saving.serialization_lib import ObjectSharingScope
from layer_cases import B, D, J, S, built, floats

from layers.bilstm import BiLSTM
from layers.recurrent import RecurrentEncoder
from models.bidaf import BiDAF, BiDAFConfig


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
        y, gradients = gradients_of(lambda x, *_: layer(x, mask, training=training), inputs, upstream)
        found.append([y, *gradients])
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape and np.abs(other).max() > 0.02
        np.testing.assert_allclose(one, other, atol=1e-5)


@on_tensorflow
@pytest.mark.parametrize("training", [False, True])
def test_bilstm_by_kernels_rounds_in_bfloat16_and_nothing_more(training):
    """Weights and inputs that bfloat16 holds exactly, so that only what is computed from them is rounded."""
    x, upstream = (to_numpy(ops.cast(floats(B, S, size, seed=size), "bfloat16")) for size in (D, 2 * J))
    found = []
    for dtype in ("float32", "mixed_bfloat16"):
        layer, (_, mask) = built("BiLSTM", dtype=dtype)
        layer.set_weights([to_numpy(ops.cast(w, "bfloat16")) for w in layer.weights])
        assert layer.fast and layer(x, mask).dtype == layer.compute_dtype

        def compute(x, *_, layer=layer, mask=mask):
            return layer(x, mask, training=training)

        found.append(gradients_of(compute, [x, *layer.trainable_variables], upstream))
    for exact, rounded in zip(*([y, *gradients] for y, gradients in found), strict=True):
        assert np.abs(rounded.astype("float32") - exact).max() < 0.02 * np.abs(exact).max()


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
    """Keras's `load_model` took a new layer for a collected one with the same `id`, now and then."""
    made = []
    with ObjectSharingScope():
        for _ in range(100):
            made.append(layer(units=4))
            gc.collect(0)
    both = [one.both if layer is BiLSTM else one.stack[0] for one in made]
    assert len({id(one) for b in both for one in (b.forward_layer, b.backward_layer)}) == 200
