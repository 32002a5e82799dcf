"""`layers.bilstm` against loops, and its one operation against Keras's loop."""

import numpy as np
import pytest
from gradients import gradients_of
from helpers import on_tensorflow, to_numpy
from keras import ops
from layer_cases import B, D, J, S, built, floats
from reference_recurrent import bilstm_in_loops

from layers.bilstm import BiLSTM
from models.bidaf import BiDAF, BiDAFConfig


@pytest.mark.parametrize("name", [pytest.param("BiLSTM", marks=on_tensorflow), "BiLSTM, loop"])
def test_bilstm_reads_each_sequence_in_both_directions_without_its_padding(name):
    layer, (x, mask) = built(name)
    fast = name == "BiLSTM"
    assert layer.one_operation is fast and layer.supports_jit is not fast
    states = to_numpy(layer(x, mask))
    for b, n in enumerate(mask.sum(axis=1)):
        np.testing.assert_allclose(states[b, :n], bilstm_in_loops(x[b, :n], layer), atol=1e-5)
        assert not states[b, n:].any()


def test_bilstm_in_one_operation_is_keras_own_also_backwards():
    (layer, (x, mask)), found = built("BiLSTM"), []
    for one_operation in (True, False):
        layer.one_operation = one_operation
        upstream = floats(B, S, 2 * J, seed=9)
        y, gradients = gradients_of(lambda x, *_: layer(x, mask), [x, *layer.trainable_variables], upstream)
        found.append([y, *gradients])
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape and np.abs(other).max() > 0.02
        np.testing.assert_allclose(one, other, atol=1e-5)


@on_tensorflow
def test_bilstm_in_one_operation_rounds_in_bfloat16_and_nothing_more():
    """Weights and inputs that bfloat16 holds exactly, so that only what is computed from them is rounded."""
    x, upstream = (to_numpy(ops.cast(floats(B, S, size, seed=size), "bfloat16")) for size in (D, 2 * J))
    found = []
    for dtype in ("float32", "mixed_bfloat16"):
        layer, (_, mask) = built("BiLSTM", dtype=dtype)
        layer.set_weights([to_numpy(ops.cast(w, "bfloat16")) for w in layer.weights])
        assert layer.one_operation and layer(x, mask).dtype == layer.compute_dtype

        def compute(x, *_, layer=layer, mask=mask):
            return layer(x, mask)

        found.append(gradients_of(compute, [x, *layer.trainable_variables], upstream))
    for exact, rounded in zip(*([y, *gradients] for y, gradients in found), strict=True):
        assert np.abs(rounded.astype("float32") - exact).max() < 0.02 * np.abs(exact).max()


@on_tensorflow
def test_bilstm_is_keras_own_in_float16_and_where_xla_compiles():
    assert BiLSTM(3, dtype="mixed_bfloat16").one_operation
    assert not BiLSTM(3, dtype="mixed_float16").one_operation
    model = BiDAF(BiDAFConfig(vocabulary_size=7, characters=5, trained_words=3, hidden=2))
    layers = [layer for layer in model.layers if isinstance(layer, BiLSTM)]
    assert len(layers) == 4 and all(layer.one_operation for layer in layers)
    model.compile(jit_compile=True)
    assert model.jit_compile and not any(layer.one_operation for layer in layers)
