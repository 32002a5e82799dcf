"""`layers.recurrent` against loops: gates, directions, attention, word by word."""

import itertools

import numpy as np
import pytest
from helpers import randomised, to_numpy
from layer_cases import B, D, E, S, T, floats, real
from reference_recurrent import decode_in_loops, encode_in_loops, sigmoid

from layers.recurrent import AFTER, BEFORE, STATES, RecurrentDecoder, RecurrentEncoder

UNITS = 2 * D  # of the encoder: halved, a prime
ATTENTIONS = ("none", *BEFORE, *AFTER)
GATES = {"gru": 3, "lstm": 4}


# === Encoder ===


DIRECTIONS = ({"merge": "concat"}, {"merge": "sum"}, {"bidirectional": False})
ENCODERS = [
    {"cell": cell, "layers": layers, **directions}
    for cell, layers, directions in itertools.product(STATES, (1, 2), DIRECTIONS)
]


def encoder(**settings):
    layer = RecurrentEncoder(units=UNITS, **settings)
    layer.build((B, S, E))
    return randomised(layer, 1, 0.4)


@pytest.mark.parametrize("settings", ENCODERS, ids=str)
def test_encoder_matches_loops_without_padding(settings):
    x, mask, layer = floats(B, S, E), real(B, S), encoder(**settings)
    found = [to_numpy(part) for part in layer(x, mask)]
    assert len(found) == 1 + settings["layers"] * STATES[settings["cell"]]
    for b, n in enumerate(mask.sum(axis=1)):
        memory, *last = encode_in_loops(x[b, :n].astype("float64"), layer)
        np.testing.assert_allclose(found[0][b, :n], memory, atol=1e-5)
        np.testing.assert_array_equal(found[0][b, n:], 0.0)
        for state, expected in zip(found[1:], last, strict=True):
            np.testing.assert_allclose(state[b], expected, atol=1e-5)


@pytest.mark.parametrize("settings", ENCODERS, ids=str)
def test_encoder_counts_parameters(settings):
    gates, biases = GATES[settings["cell"]], {"gru": 2, "lstm": 1}[settings["cell"]]
    units = D if settings.get("merge") == "concat" else UNITS
    directions = 1 if "bidirectional" in settings else 2
    of_layers = [gates * units * (size + units + biases) for size in (E, UNITS)[: settings["layers"]]]
    assert encoder(**settings).count_params() == directions * sum(of_layers)


# === Decoder ===


DECODERS = [
    {"attention": attention, "cell": cell, "layers": layers}
    for attention, cell, layers in itertools.product(ATTENTIONS, STATES, (1, 2))
]
WHOLE = [{"attention": attention, "cell": "gru", "layers": 2, "output": "all"} for attention in ATTENTIONS]


def memory_size(attention):
    return D if "dot" in attention else E


def decoder(attention, cell="gru", layers=1, **settings):
    """A decoder; words, memory, mask, first states."""
    layer, size = RecurrentDecoder(cell, D, layers, attention, **settings), memory_size(attention)
    states = [floats(B, D, seed=seed) for seed in range(3, 3 + layers * STATES[cell])]
    inputs = floats(B, T, E, seed=1), floats(B, S, size, seed=2), real(B, S), states
    layer.build((B, T, E), (B, S, size), (B, S), [state.shape for state in states])
    return randomised(layer, 1, 0.4), inputs


@pytest.mark.parametrize("settings", [*DECODERS, *WHOLE], ids=str)
def test_decoder_and_its_steps_match_loops(settings):
    layer, (y, memory, mask, states) = decoder(**settings)
    found = to_numpy(layer(y, memory, mask, states))
    cache, after, stepped, looks = layer.encoder_cache(memory, mask, states), states, [], []
    for t in range(T):
        output, after, weights = layer.step(y[:, t], after, cache)
        stepped.append(to_numpy(output))
        looks.append(weights)
    for b, n in enumerate(mask.sum(axis=1)):
        outputs, last, weights = decode_in_loops(y[b], memory[b, :n], [state[b] for state in states], layer)
        np.testing.assert_allclose(found[b], outputs, atol=1e-5)
        np.testing.assert_allclose(np.array(stepped)[:, b], outputs, atol=1e-5)
        for state, expected in zip(after, last, strict=True):
            np.testing.assert_allclose(to_numpy(state)[b], expected, atol=1e-5)
        if settings["attention"] == "none":
            assert looks == [None] * T
        else:
            assert np.ptp(weights, axis=1).min() > 0.005
            padded = np.pad(weights, ((0, 0), (0, S - n)))
            np.testing.assert_allclose(np.array([to_numpy(look)[b] for look in looks]), padded, atol=1e-5)


@pytest.mark.parametrize("settings", DECODERS, ids=str)
def test_decoder_counts_parameters(settings):
    """Also those of the first layer's cell, which is in another layer."""
    attention, M = settings["attention"], memory_size(settings["attention"])
    gates, biases = GATES[settings["cell"]], {"gru": 2, "lstm": 1}[settings["cell"]]
    first = {"none": E + D, "additive": E + M, "dot": E + M}.get(attention, E)
    expected = gates * D * (first + D + (1 if attention in BEFORE else biases))
    expected += (settings["layers"] - 1) * gates * D * (D + D + biases)
    own = {"none": 0, "additive": (D + M + 1) * D, "dot": 0, "general": D * M + (D + M) * D}
    expected += own.get(attention, (D + M) * D)
    layer, _ = decoder(**settings)
    assert sum(w.numpy().size for w in layer.trainable_weights) == expected


def test_dot_attention_is_that_of_the_article():
    """Sections 2.2 to 2.4 of the article, one step: score with `s_{t-1}`, context in the gates, reset gate first."""
    layer, (y, memory, mask, [s]) = decoder("dot")
    found, _, _ = layer.step(y[:, 0], [s], layer.encoder_cache(memory, mask, [s]))
    W, U, b = (w.astype("float64") for w in layer.get_weights())
    assert W.shape == (E + D, 3 * D)  # Keras has the gates in the order z, r, candidate
    (W_yz, W_yr, W_ys), (W_cz, W_cr, W_cs) = np.split(W[:E], 3, axis=1), np.split(W[E:], 3, axis=1)
    (W_sz, W_sr, W_ss), (b_z, b_r, b_s) = np.split(U, 3, axis=1), np.split(b.reshape(-1), 3)
    for i, n in enumerate(mask.sum(axis=1)):
        e = np.array([s[i] @ h for h in memory[i, :n]])
        alpha = np.exp(e) / np.exp(e).sum()
        c = sum(weight * h for weight, h in zip(alpha, memory[i, :n], strict=True))
        r = sigmoid(y[i, 0] @ W_yr + s[i] @ W_sr + c @ W_cr + b_r)
        z = sigmoid(y[i, 0] @ W_yz + s[i] @ W_sz + c @ W_cz + b_z)
        candidate = np.tanh(y[i, 0] @ W_ys + (s[i] * r) @ W_ss + c @ W_cs + b_s)
        np.testing.assert_allclose(to_numpy(found)[i], z * s[i] + (1 - z) * candidate, atol=1e-5)


# === Both ===


@pytest.mark.parametrize("layers", (1, 2))
def test_dropout_is_between_layers_and_in_training_only(layers):
    """Dropout of almost all leaves the first layer's states as they are, and of the second its input."""
    write, given = decoder("luong_dot", layers=layers, dropout=0.9)
    read, x = encoder(layers=layers, dropout=0.9), floats(B, S, E)
    for call in (lambda training: read(x, real(B, S), training=training)[0], lambda t: write(*given, training=t)):
        found, trained = (to_numpy(call(training)) for training in (False, True))
        assert (np.abs(found - trained).max() > 0.01) == (layers == 2)


def test_encoder_takes_odd_units_that_are_not_halved():
    assert RecurrentEncoder(units=7, merge="sum").units == RecurrentEncoder(units=7, bidirectional=False).units == 7
