"""Slow loops over the equations of recurrent layers and their attention, one example at a time."""

import numpy as np

from colloquy.layers.recurrent_decoder import AFTER, BEFORE
from colloquy.layers.recurrent_encoder import STATES


def float64(*weights):
    return [np.asarray(weight, "float64") for weight in weights]


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, "float64")))


def softmax(x):
    x = np.asarray(x, "float64")
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=-1, keepdims=True)


def log_softmax(x):
    return x - np.max(x) - np.log(np.exp(x - np.max(x)).sum())


def nll_in_loops(target, logits):
    """Of one word."""
    return -log_softmax(logits.astype("float64"))[target]


def gru_in_loops(x, weights, states):
    """As Keras has it: the reset gate acts after the product, and both products have a bias."""
    kernel, recurrent, (input_bias, recurrent_bias) = weights
    h, outputs = states[0], []
    for x_t in x:
        x_z, x_r, x_h = np.split(x_t @ kernel + input_bias, 3)
        h_z, h_r, h_h = np.split(h @ recurrent + recurrent_bias, 3)
        z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
        h = z * h + (1 - z) * np.tanh(x_h + r * h_h)
        outputs.append(h)
    return np.array(outputs), [h]


def gru_step_in_loops(x, weights, s):
    """As Cho et al. 2014 have it: the reset gate acts before the product."""
    (W_z, W_r, W_s), (U_z, U_r, U_s), (b_z, b_r, b_s) = (
        np.split(weight, 3, axis=-1) for weight in weights
    )
    z, r = sigmoid(x @ W_z + s @ U_z + b_z), sigmoid(x @ W_r + s @ U_r + b_r)
    return [z * s + (1 - z) * np.tanh(x @ W_s + (r * s) @ U_s + b_s)]


def lstm_step_in_loops(x, weights, h, c):
    kernel, recurrent, bias = weights
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


def lstm_in_loops(x, weights, states):
    outputs = []
    for x_t in x:
        states = lstm_step_in_loops(x_t, weights, *states)
        outputs.append(states[0])
    return np.array(outputs), states


RECURRENT = {"gru": gru_in_loops, "lstm": lstm_in_loops}
STEPS = {"gru": gru_step_in_loops, "lstm": lstm_step_in_loops}
"""A step of `AttentionCell`, from its word and context, one behind the other, its weights and its
states.
"""


def bilstm_in_loops(x, layer):
    """A `BiLSTM` over one sequence without padding."""
    weights, zeros = float64(*layer.get_weights()), [np.zeros(layer.units)] * 2
    forward, _ = lstm_in_loops(x, weights[:3], zeros)
    backward, _ = lstm_in_loops(x[::-1], weights[3:], zeros)
    return np.concatenate([forward, backward[::-1]], axis=1)


def dynamic_in_loops(h, u, layer):
    """A `DynamicBiLSTM` over one context and query without padding."""
    forward, backward = (rnn.cell for rnn in layer.directions)
    return np.concatenate(
        [_ask_in_loops(h, u, forward), _ask_in_loops(h[::-1], u, backward)[::-1]], axis=1
    )


def _ask_in_loops(h, u, cell):
    """One direction."""
    W_s, W_h, v = float64(cell.attention.W_s, cell.attention.W_h, cell.attention.v)
    s = c = np.zeros(cell.cell.units)
    states = []
    for h_t in h:
        u_t = softmax([v @ np.tanh(np.concatenate([h_t, s]) @ W_s + u_j @ W_h) for u_j in u]) @ u
        x = np.concatenate([h_t, u_t, h_t * u_t])
        s, c = lstm_step_in_loops(x, float64(*cell.cell.weights), s, c)
        states.append(s)
    return np.array(states)


def sentence_in_loops(ids, layer):
    """The state of a `SentenceGRU` after the last word of one sentence."""
    [table], weights = float64(layer.embedding.embeddings), float64(*layer.gru.weights)
    return gru_in_loops([table[id] for id in ids if id], weights, [np.zeros(table.shape[1])])[1][0]


ATTENTION_WEIGHTS = {
    "additive": ("W_s", "W_h", "v"),
    "general": ("W",),
    "dot": (),
    "scaled_dot": (),
}


def attention_in_loops(query, memory, layer):
    """The contexts and the weights of one example without padding, query by query."""
    w = float64(*(getattr(layer, name) for name in ATTENTION_WEIGHTS[layer.score]))
    score = {
        "additive": lambda s, h: w[2] @ np.tanh(s @ w[0] + h @ w[1]),
        "dot": lambda s, h: s @ h,
        "general": lambda s, h: s @ (h @ w[0]),
        "scaled_dot": lambda s, h: s @ h / np.sqrt(len(h)),
    }[layer.score]
    weights = np.array([softmax([score(s, h) for h in memory]) for s in query])
    return weights @ memory, weights


def encode_in_loops(x, encoder):
    """The memory and the last states of one sequence without padding."""
    last, read = [], RECURRENT[encoder.cell]
    for layer in encoder.stack:
        weights = float64(*layer.get_weights())
        zeros = [np.zeros(len(weights[1]))] * STATES[encoder.cell]
        x_forward, states = read(x, weights[:3], zeros)
        if encoder.bidirectional:
            x_backward, backward = read(x[::-1], weights[3:], zeros)
            if encoder.merge == "sum":
                x, states = (
                    x_forward + x_backward[::-1],
                    [f + b for f, b in zip(states, backward, strict=True)],
                )
            else:
                x = np.concatenate([x_forward, x_backward[::-1]], axis=1)
                states = [np.concatenate(both) for both in zip(states, backward, strict=True)]
        else:
            x = x_forward
        last += states
    return [x, *last]


def decode_in_loops(y, memory, states, decoder):
    """Outputs, last states and attention weights of one target, word by word."""
    size, states = STATES[decoder.cell], float64(*states)
    summary, outputs, looks = states[-size], [], []
    for word in y:
        x = word
        if decoder.attention == "none":
            c = summary
            x = np.concatenate([x, summary])
        for i, layer in enumerate(decoder.stack):
            own = states[i * size : (i + 1) * size]
            if i == 0 and decoder.attention in BEFORE:  # asked for by the state before the step
                [c], [a] = attention_in_loops(own[0][None], memory, decoder.look)
                new = STEPS[decoder.cell](
                    np.concatenate([x, c]), float64(*layer.cell.cell.weights), *own
                )
            else:
                _, new = RECURRENT[decoder.cell]([x], float64(*layer.get_weights()), own)
            states[i * size : (i + 1) * size] = new
            x = new[0]
        if decoder.attention in AFTER:
            [c], [a] = attention_in_loops(x[None], memory, decoder.look)
            [W_c] = float64(*decoder.readout.get_weights())
            x = np.tanh(np.concatenate([c, x]) @ W_c)  # Luong et al. 2015, eq. 5
        if decoder.attention != "none":
            looks.append(a)
        outputs.append(np.concatenate([x, word, c]) if decoder.output_kind == "all" else x)
    return np.array(outputs), states, np.array(looks)
