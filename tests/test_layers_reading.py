"""The layers of BiDAF against slow loops over the paper's equations."""

import keras
import numpy as np
import pytest
from gradients import gradients_of
from helpers import on_tensorflow
from keras import ops
from reference_recurrent import lstm_in_loops, sigmoid

from layers.attention_flow import AttentionFlow
from layers.bilstm import BiLSTM
from layers.char_cnn import CharacterCNN, Highway
from models.bidaf import BiDAF, BiDAFConfig

B, T, J, D = 2, 5, 3, 7
LENGTHS_T, LENGTHS_J = (5, 3), (2, 3)


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def mask(lengths, width):
    return np.arange(width) < np.array(lengths)[:, None]


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def randomise(layer, seed=1):
    """Every weight random, biases too, so that none can be left out unseen."""
    layer.set_weights([array(*w.shape, seed=seed + i) * 0.5 for i, w in enumerate(layer.get_weights())])


# === Attention flow ===


def flow_in_loops(H, U, w, c2q, q2c):
    """Equations 1 and 2 of one example without padding; `w` may be a function of `[h; u; h * u]`."""
    alpha = w if callable(w) else lambda x: w.reshape(-1) @ x
    S = np.array([[alpha(np.concatenate([h, u, h * u])) for u in U] for h in H])
    b = softmax(S.max(axis=1))
    h_tilde = sum(b[t] * H[t] for t in range(len(H)))
    rows = []
    for t, h in enumerate(H):
        a = softmax(S[t]) if c2q else np.full(len(U), 1 / len(U))
        u_tilde = sum(a[j] * U[j] for j in range(len(U)))
        rows.append(np.concatenate([h, u_tilde, h * u_tilde] + [h * h_tilde] * q2c))
    return np.array(rows)


@pytest.mark.parametrize(("c2q", "q2c"), [(True, True), (False, True), (True, False), (False, False)])
def test_attention_flow_matches_equations_1_and_2(c2q, q2c):
    H, U = array(B, T, D), array(B, J, D, seed=1)
    layer = AttentionFlow(c2q, q2c)
    G = ops.convert_to_numpy(layer(H, U, mask(LENGTHS_T, T), mask(LENGTHS_J, J)))
    assert G.shape == (B, T, (4 if q2c else 3) * D)
    w = layer.get_weights()[0] if c2q or q2c else np.zeros((3, D))
    for b, (t, j) in enumerate(zip(LENGTHS_T, LENGTHS_J, strict=True)):
        np.testing.assert_allclose(G[b, :t], flow_in_loops(H[b, :t], U[b, :j], w, c2q, q2c), atol=1e-5)


@pytest.mark.parametrize("q2c", [True, False])
def test_attention_flow_by_perceptrons_matches_its_equations(q2c):
    H, U = array(B, T, D), array(B, J, D, seed=1)
    layer = AttentionFlow(q2c=q2c, kind="mlp", fusion="mlp")
    masks = mask(LENGTHS_T, T), mask(LENGTHS_J, J)
    layer(H, U, *masks)
    randomise(layer)
    G = ops.convert_to_numpy(layer(H, U, *masks))
    W, c, v, W_G, b_G = layer.get_weights()
    assert W.shape == (3, D, D // 2) and W_G.shape == (G.shape[-1], G.shape[-1])
    for b, (t, j) in enumerate(zip(LENGTHS_T, LENGTHS_J, strict=True)):
        concatenated = flow_in_loops(H[b, :t], U[b, :j], lambda x: v @ np.tanh(x @ W.reshape(3 * D, -1) + c), True, q2c)
        np.testing.assert_allclose(G[b, :t], np.maximum(concatenated @ W_G + b_G, 0), atol=1e-4)


@pytest.mark.parametrize("setting", [{"kind": "no"}, {"fusion": "no"}])
def test_attention_flow_rejects_unknown_kinds(setting):
    with pytest.raises(ValueError, match="must be one of"):
        AttentionFlow(**setting)


def test_attention_flow_may_start_as_a_dot_product():
    layer = AttentionFlow(start="dot")
    layer.build((None, None, D), (None, None, D))
    w = ops.convert_to_numpy(layer.w_3D)
    np.testing.assert_array_equal(w[2], 1)
    assert len(np.unique(w[:2])) == 2 * D and abs(w[:2]).max() < 1
    with pytest.raises(ValueError, match="start must be one of"):
        AttentionFlow(start="ones")


def test_attention_flow_ignores_padding():
    H, U = array(B, T, D), array(B, J, D, seed=1)
    layer, masks = AttentionFlow(), (mask(LENGTHS_T, T), mask(LENGTHS_J, J))
    before = ops.convert_to_numpy(layer(H, U, *masks))
    H[1, 3:], U[0, 2:] = 100.0, -100.0
    after = ops.convert_to_numpy(layer(H, U, *masks))
    np.testing.assert_allclose(after[0], before[0], atol=1e-6)
    np.testing.assert_allclose(after[1, :3], before[1, :3], atol=1e-6)


def test_attention_flow_without_a_query_reads_nothing_of_it():
    G = ops.convert_to_numpy(AttentionFlow()(array(1, T, D), array(1, J, D), mask([T], T), mask([0], J)))
    assert np.isfinite(G).all()
    assert not G[..., D : 3 * D].any()


# === Highway ===


def test_highway_matches_its_equation():
    x = array(B, J, D)
    layer = Highway()
    layer.build(x.shape)
    randomise(layer)
    W, b, W_t, b_t = layer.get_weights()
    t = sigmoid(x @ W_t + b_t)
    expected = t * np.maximum(x @ W + b, 0) + (1 - t) * x
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, atol=1e-5)


# === Characters ===


def cnn_in_loops(ids, table, kernel, bias):
    """The convolution over one word without padding."""
    width = len(kernel)
    e = np.concatenate([table[ids], np.zeros((width - 1, table.shape[1]))])
    windows = [np.einsum("we,wef->f", e[l : l + width], kernel) + bias for l in range(len(ids))]
    return np.max(np.maximum(windows, 0), axis=0)


def test_character_cnn_matches_its_equation_for_words_of_any_length():
    layer = CharacterCNN(characters=11, dimension=3, filters=7, width=5)
    words = [[1, 2, 3, 4, 5, 6, 7, 8], [9], [10, 11]]
    ids = np.array([word + [0] * (8 - len(word)) for word in words])
    layer(ids)
    randomise(layer)
    table, kernel, bias = layer.get_weights()
    vectors = ops.convert_to_numpy(layer(ids))
    for word, vector in zip(words, vectors, strict=True):
        np.testing.assert_allclose(vector, cnn_in_loops(word, table, kernel, bias), atol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(ids[1:, :2])), vectors[1:], atol=1e-6)
    assert not ops.convert_to_numpy(layer(np.zeros((1, 8), int))).any()


def test_character_cnn_drops_in_training_only():
    layer = CharacterCNN(characters=11, dimension=3, filters=7, dropout=0.5)
    ids = np.array([[1, 2, 3, 4, 5]])
    plain = ops.convert_to_numpy(layer(ids))
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(ids)), plain)
    keras.utils.set_random_seed(1)
    assert any(np.abs(ops.convert_to_numpy(layer(ids, training=True)) - plain).max() > 1e-3 for _ in range(5))


# === LSTM ===


@pytest.mark.parametrize("one_operation", [pytest.param(True, marks=on_tensorflow), False])
def test_bilstm_reads_each_sequence_in_both_directions_without_its_padding(one_operation):
    x, H = array(B, T, D), 3
    layer = BiLSTM(H, one_operation)
    assert layer.one_operation is one_operation and layer.supports_jit is not one_operation
    layer(x, mask(LENGTHS_T, T))
    randomise(layer)
    weights = layer.get_weights()
    states = ops.convert_to_numpy(layer(x, mask(LENGTHS_T, T)))
    for b, t in enumerate(LENGTHS_T):
        forward, _ = lstm_in_loops(x[b, :t], weights[:3], [np.zeros(H)] * 2)
        backward = lstm_in_loops(x[b, :t][::-1], weights[3:], [np.zeros(H)] * 2)[0][::-1]
        np.testing.assert_allclose(states[b, :t], np.concatenate([forward, backward], axis=1), atol=1e-5)
        assert not states[b, t:].any()


def test_bilstm_in_one_operation_is_keras_own_also_backwards():
    layer, x, upstream = BiLSTM(3), array(B, T, D), array(B, T, 6, seed=9)
    layer(x, mask(LENGTHS_T, T))
    randomise(layer)
    found = []
    for one_operation in (True, False):
        layer.one_operation = one_operation
        y, gradients = gradients_of(
            lambda x, *_: layer(x, mask(LENGTHS_T, T)), [x, *layer.trainable_variables], upstream
        )
        found.append([y, *gradients])
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape and np.abs(other).max() > 0.1
        np.testing.assert_allclose(one, other, atol=1e-5)


@on_tensorflow
def test_bilstm_in_one_operation_rounds_in_bfloat16_and_nothing_more():
    """Weights and inputs that bfloat16 holds exactly, so that only what is computed from them is rounded."""
    x, upstream = (ops.convert_to_numpy(ops.cast(array(B, T, size, seed=size), "bfloat16")) for size in (D, 6))
    found = []
    for dtype in ("float32", "mixed_bfloat16"):
        layer = BiLSTM(3, dtype=dtype)
        layer(x, mask(LENGTHS_T, T))
        randomise(layer)
        layer.set_weights([ops.convert_to_numpy(ops.cast(ops.cast(w, "bfloat16"), "float32")) for w in layer.weights])
        assert layer.one_operation and layer(x, mask(LENGTHS_T, T)).dtype == layer.compute_dtype

        def compute(x, *_, layer=layer):
            return layer(x, mask(LENGTHS_T, T))

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


@pytest.mark.parametrize(
    "layer",
    [
        AttentionFlow(c2q=False, q2c=True),
        AttentionFlow(kind="mlp", fusion="mlp"),
        Highway(),
        CharacterCNN(11, 3, 7, 2, 0.1),
        BiLSTM(3),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_are_made_again_from_their_config(layer):
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config
