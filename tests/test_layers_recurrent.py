"""`layers.recurrent` against loops: gates, directions, attention, word by word."""

import itertools

import keras
import numpy as np
import pytest
from gradients import gradients_of
from helpers import randomised, to_numpy
from reference_recurrent import STATES, decode_in_loops, encode_in_loops, sigmoid

from layers.recurrent import AFTER, BEFORE, RecurrentDecoder, RecurrentEncoder

ATTENTIONS = ("none", *BEFORE, *AFTER)
B, T, S, E = 2, 3, 5, 7  # batch, target words, source words, features of a word
UNITS = 22  # of the encoder: halved, a prime
H, D = 11, 13  # of the decoder and its memory
LENGTHS = (5, 3)


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 0.7, shape).astype("float32")


def mask():
    return np.arange(S) < np.array(LENGTHS)[:, None]


# === Encoder ===


DIRECTIONS = ({"merge": "concat"}, {"merge": "sum"}, {"bidirectional": False})
ENCODERS = [
    {"cell": cell, "layers": layers, **directions}
    for cell, layers, directions in itertools.product(("gru", "lstm"), (1, 2), DIRECTIONS)
]


def encoder(**settings):
    layer = RecurrentEncoder(units=UNITS, **settings)
    layer.build((B, S, E))
    return randomised(layer, 1, 0.4)


@pytest.mark.parametrize("settings", ENCODERS, ids=str)
def test_encoder_matches_loops_without_padding(settings):
    x, layer = array(B, S, E), encoder(**settings)
    found = [to_numpy(part) for part in layer(x, mask())]
    assert [part.shape for part in found] == [(B, S, UNITS)] + [(B, UNITS)] * (len(found) - 1)
    assert len(found) == 1 + settings["layers"] * STATES[settings["cell"]]
    for b, n in enumerate(LENGTHS):
        memory, *last = encode_in_loops(x[b, :n].astype("float64"), layer)
        np.testing.assert_allclose(found[0][b, :n], memory, atol=1e-5)
        np.testing.assert_array_equal(found[0][b, n:], 0.0)
        for state, expected in zip(found[1:], last, strict=True):
            np.testing.assert_allclose(state[b], expected, atol=1e-5)


@pytest.mark.parametrize("settings", ENCODERS[1::4], ids=str)
def test_encoder_reads_a_sequence_alone_as_in_a_padded_batch(settings):
    x, layer = array(B, S, E), encoder(**settings)
    found = [to_numpy(part) for part in layer(x, mask())]
    n = LENGTHS[1]
    alone = [to_numpy(part) for part in layer(x[1:, :n], np.ones((1, n), bool))]
    np.testing.assert_allclose(found[0][1, :n], alone[0][0], atol=1e-6)
    for state, expected in zip(found[1:], alone[1:], strict=True):
        np.testing.assert_allclose(state[1:], expected, atol=1e-6)
    x[1, n:] = 1e3
    for part, expected in zip(layer(x, mask()), found, strict=True):
        np.testing.assert_allclose(to_numpy(part), expected, atol=1e-6)


@pytest.mark.parametrize("settings", ENCODERS, ids=str)
def test_encoder_counts_parameters(settings):
    gates, biases = {"gru": (3, 2), "lstm": (4, 1)}[settings["cell"]]
    units = UNITS // 2 if settings.get("merge") == "concat" else UNITS
    directions = 1 if "bidirectional" in settings else 2
    of_layers = [gates * units * (size + units + biases) for size in (E, UNITS)[: settings["layers"]]]
    assert sum(w.numpy().size for w in encoder(**settings).trainable_weights) == directions * sum(of_layers)


# === Decoder ===


DECODERS = [
    {"attention": attention, "cell": cell, "layers": layers}
    for attention, cell, layers in itertools.product(ATTENTIONS, ("gru", "lstm"), (1, 2))
]
WHOLE = [{"attention": attention, "cell": "gru", "layers": 2, "output": "all"} for attention in ATTENTIONS]


def memory_size(attention):
    return H if "dot" in attention else D


def decoder(**settings):
    layer = RecurrentDecoder(units=H, **settings)
    states = [(B, H)] * settings.get("layers", 1) * STATES[settings.get("cell", "gru")]
    layer.build((B, T, E), (B, S, memory_size(settings["attention"])), (B, S), states)
    return randomised(layer, 1, 0.4)


def decoder_inputs(attention, cell="gru", layers=1, output="state"):
    """Words, memory, mask, first states: all different, the second memory with padding."""
    states = [array(B, H, seed=seed) for seed in range(3, 3 + layers * STATES[cell])]
    return array(B, T, E, seed=1), array(B, S, memory_size(attention), seed=2), mask(), states


@pytest.mark.parametrize("settings", [*DECODERS, *WHOLE], ids=str)
def test_decoder_and_its_steps_match_loops(settings):
    y, memory, mask, states = decoder_inputs(**settings)
    layer = decoder(**settings)
    found = to_numpy(layer(y, memory, mask, states))
    context = H if settings["attention"] == "none" else memory_size(settings["attention"])
    assert found.shape == (B, T, H + (E + context) * ("output" in settings))
    cache, after, stepped, looks = layer.encoder_cache(memory, mask, states), states, [], []
    for t in range(T):
        output, after, weights = layer.step(y[:, t], after, cache)
        stepped.append(to_numpy(output))
        looks.append(weights)
    for b, n in enumerate(LENGTHS):
        outputs, last, weights = decode_in_loops(y[b], memory[b, :n], [state[b] for state in states], layer)
        np.testing.assert_allclose(found[b], outputs, atol=1e-5)
        np.testing.assert_allclose(np.array(stepped)[:, b], outputs, atol=1e-5)
        for state, expected in zip(after, last, strict=True):
            np.testing.assert_allclose(to_numpy(state)[b], expected, atol=1e-5)
        if settings["attention"] == "none":
            assert looks == [None] * T
        else:
            assert np.ptp(weights, axis=1).min() > 0.01
            padded = np.pad(weights, ((0, 0), (0, S - n)))
            np.testing.assert_allclose(np.array([to_numpy(look)[b] for look in looks]), padded, atol=1e-5)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_decoder_ignores_padding(attention):
    y, memory, mask, states = decoder_inputs(attention)
    layer = decoder(attention=attention)
    found = to_numpy(layer(y, memory, mask, states))
    memory[1, LENGTHS[1] :] = 40.0
    np.testing.assert_allclose(to_numpy(layer(y, memory, mask, states)), found, atol=1e-6)
    memory[1, 0] *= -1
    changed = np.abs(to_numpy(layer(y, memory, mask, states)) - found).max(axis=(1, 2))
    assert changed[0] < 1e-6 and (changed[1] > 1e-3) == (attention != "none")


@pytest.mark.parametrize("settings", DECODERS, ids=str)
def test_decoder_counts_parameters(settings):
    """Also those of the first layer's cell, which stands in another layer."""
    attention, M = settings["attention"], memory_size(settings["attention"])
    gates, biases = {"gru": (3, 2), "lstm": (4, 1)}[settings["cell"]]
    first = {"none": E + H, "additive": E + M, "dot": E + M}.get(attention, E)
    expected = gates * H * (first + H + (1 if attention in BEFORE else biases))
    expected += (settings["layers"] - 1) * gates * H * (H + H + biases)
    own = {"none": 0, "additive": (H + M + 1) * H, "dot": 0, "general": H * M + (H + M) * H}
    expected += own.get(attention, (H + M) * H)
    layer = decoder(**settings)
    assert sum(w.numpy().size for w in layer.trainable_weights) == expected
    inputs = decoder_inputs(**settings)
    _, gradients = gradients_of(lambda *_: keras.ops.sum(layer(*inputs) ** 2), layer.trainable_weights)
    for weight, gradient in zip(layer.trainable_weights, gradients, strict=True):
        assert np.abs(gradient).max() > 1e-4, weight.path


def test_dot_attention_is_that_of_the_article():
    """Sections 2.2 to 2.4 of the article, one step: score with `s_{t-1}`, context in the gates, reset gate first."""
    layer = decoder(attention="dot")
    y, memory, real, [s] = decoder_inputs("dot")
    found, _, _ = layer.step(y[:, 0], [s], layer.encoder_cache(memory, real, [s]))
    W, U, b = (w.astype("float64") for w in layer.get_weights())
    assert W.shape == (E + H, 3 * H)  # Keras has the gates in the order z, r, candidate
    (W_yz, W_yr, W_ys), (W_cz, W_cr, W_cs) = np.split(W[:E], 3, axis=1), np.split(W[E:], 3, axis=1)
    (W_sz, W_sr, W_ss), (b_z, b_r, b_s) = np.split(U, 3, axis=1), np.split(b.reshape(-1), 3)
    for i, n in enumerate(LENGTHS):
        e = np.array([s[i] @ h for h in memory[i, :n]])
        alpha = np.exp(e) / np.exp(e).sum()
        c = sum(weight * h for weight, h in zip(alpha, memory[i, :n], strict=True))
        r = sigmoid(y[i, 0] @ W_yr + s[i] @ W_sr + c @ W_cr + b_r)
        z = sigmoid(y[i, 0] @ W_yz + s[i] @ W_sz + c @ W_cz + b_z)
        candidate = np.tanh(y[i, 0] @ W_ys + (s[i] * r) @ W_ss + c @ W_cs + b_s)
        np.testing.assert_allclose(to_numpy(found)[i], z * s[i] + (1 - z) * candidate, atol=1e-5)


# === Both ===


def test_dropout_is_between_layers_and_in_training_only():
    """Dropout of almost all leaves the first layer's states as they are, and of the second its input."""
    for layers in (1, 2):
        x = array(B, S, E)
        read = encoder(layers=layers, dropout=0.9)
        found, trained = (to_numpy(read(x, mask(), training=training)[0]) for training in (False, True))
        assert (np.abs(found - trained).max() > 0.01) == (layers == 2)
        write = decoder(attention="luong_dot", layers=layers, dropout=0.9)
        given = decoder_inputs("luong_dot", layers=layers)
        found, trained = (to_numpy(write(*given, training=training)) for training in (False, True))
        assert (np.abs(found - trained).max() > 0.01) == (layers == 2)


def test_encoder_and_decoder_know_their_shapes():
    x, real = keras.Input((None, E)), keras.Input((None,), dtype="bool")
    for cell in ("gru", "lstm"):
        memory, *states = RecurrentEncoder(cell, UNITS, 2)(x, real)
        assert memory.shape == (None, None, UNITS)
        assert [state.shape for state in states] == [(None, UNITS)] * 2 * STATES[cell]
        for attention in ATTENTIONS:
            written = RecurrentDecoder(cell, UNITS, 2, attention)(x, memory, real, states)
            assert written.shape == (None, None, UNITS)
            written = RecurrentDecoder(cell, UNITS, 2, attention, output="all")(x, memory, real, states)
            assert written.shape == (None, None, UNITS + E + UNITS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RecurrentEncoder("rnn"), r"cell must be one of \('gru', 'lstm'\)\. Received: cell='rnn'$"),
        (lambda: RecurrentEncoder(merge="mul"), r"merge must be one of \('concat', 'sum'\)\. Received: merge='mul'$"),
        (lambda: RecurrentEncoder(units=7), r"units must be even where two .* concatenated\. Received: units=7$"),
        (lambda: RecurrentDecoder("rnn"), r"cell must be one of \('gru', 'lstm'\)\. Received: cell='rnn'$"),
        (lambda: RecurrentDecoder(attention="no"), r"attention must be one of \('none', .*Received: attention='no'$"),
        (lambda: RecurrentDecoder(output="no"), r"output must be one of \('state', 'all'\)\. Received: output='no'$"),
    ],
)
def test_encoder_and_decoder_reject(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_encoder_takes_odd_units_that_are_not_halved():
    assert RecurrentEncoder(units=7, merge="sum").units == RecurrentEncoder(units=7, bidirectional=False).units == 7


@pytest.mark.parametrize("settings", [DECODERS[0], DECODERS[7], DECODERS[16], *WHOLE[1:4]], ids=str)
def test_decoder_is_made_again_from_its_config(settings):
    layer, given = decoder(**settings, dropout=0.3), decoder_inputs(**settings)
    config = layer.get_config()
    expected = {**settings, "units": H, "dropout": 0.3}
    assert {name: config[name] for name in expected} == expected
    again = RecurrentDecoder.from_config(config)
    assert np.abs(to_numpy(again(*given)) - to_numpy(layer(*given))).max() > 0.01
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(to_numpy(again(*given)), to_numpy(layer(*given)))


def test_encoder_is_made_again_from_its_config():
    settings = {"cell": "lstm", "layers": 2, "bidirectional": True, "merge": "sum", "dropout": 0.3}
    layer, x = encoder(**settings), array(B, S, E)
    config = layer.get_config()
    assert {name: config[name] for name in settings} == settings and config["units"] == UNITS
    again = RecurrentEncoder.from_config(config)
    again(x, mask())
    again.set_weights(layer.get_weights())
    for found, expected in zip(again(x, mask()), layer(x, mask()), strict=True):
        np.testing.assert_array_equal(to_numpy(found), to_numpy(expected))
