"""Slow loops over the equations of recurrent layers and their attention, one example at a time."""

import numpy as np
from helpers import to_numpy

from layers.recurrent import AFTER, BEFORE


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


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


def lstm_in_loops(x, weights, states):
    kernel, recurrent, bias = weights
    (h, c), outputs = states, []
    for x_t in x:
        i, f, g, o = np.split(x_t @ kernel + h @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs), [h, c]


RECURRENT = {"gru": gru_in_loops, "lstm": lstm_in_loops}


def bilstm_in_loops(x, layer):
    """A `BiLSTM` over one sequence without padding."""
    weights = [w.astype("float64") for w in layer.get_weights()]
    zeros = [np.zeros(layer.units)] * 2
    forward, _ = lstm_in_loops(x, weights[:3], zeros)
    backward, _ = lstm_in_loops(x[::-1], weights[3:], zeros)
    return np.concatenate([forward, backward[::-1]], axis=1)


def dynamic_in_loops(h, u, layer):
    """A `DynamicBiLSTM` over one context and query without padding."""
    forward, backward = (rnn.cell for rnn in layer.directions)
    return np.concatenate([_ask_in_loops(h, u, forward), _ask_in_loops(h[::-1], u, backward)[::-1]], axis=1)


def _ask_in_loops(h, u, cell):
    """One direction."""
    W_s, W_h, v = (np.asarray(w, "float64") for w in (cell.attention.W_s, cell.attention.W_h, cell.attention.v))
    s = c = np.zeros(cell.cell.units)
    states = []
    for h_t in h:
        e = np.exp([v @ np.tanh(np.concatenate([h_t, s]) @ W_s + u_j @ W_h) for u_j in u])
        u_t = (e / e.sum()) @ u
        s, c = lstm_step_in_loops(h_t, np.concatenate([u_t, h_t * u_t]), s, c, cell.cell)
        states.append(s)
    return np.array(states)


def sentence_in_loops(ids, layer):
    """The state of a `SentenceGRU` after the last word of one sentence."""
    table = layer.embedding.embeddings.numpy().astype("float64")
    weights = [w.numpy().astype("float64") for w in layer.gru.weights]
    return gru_in_loops([table[id] for id in ids if id], weights, [np.zeros(table.shape[1])])[1][0]


ATTENTION_WEIGHTS = {"additive": ("W_s", "W_h", "v"), "general": ("W",), "dot": (), "scaled_dot": ()}


def attention_in_loops(query, memory, layer):
    """The contexts and the weights of one example without padding, query by query."""
    w = {name: to_numpy(getattr(layer, name)).astype("float64") for name in ATTENTION_WEIGHTS[layer.score]}
    score = {
        "additive": lambda s, h: w["v"] @ np.tanh(s @ w["W_s"] + h @ w["W_h"]),
        "dot": lambda s, h: s @ h,
        "general": lambda s, h: sum(s[q] * (h @ w["W"][:, q]) for q in range(len(s))),
        "scaled_dot": lambda s, h: s @ h / np.sqrt(len(h)),
    }[layer.score]
    contexts, weights = [], []
    for s in query:
        powers = [np.exp(score(s, h)) for h in memory]
        a = [power / sum(powers) for power in powers]
        weights.append(a)
        contexts.append(sum(a_h * h for a_h, h in zip(a, memory, strict=True)))
    return np.array(contexts), np.array(weights)


def nll_in_loops(target, logits):
    """Of one word."""
    logits = logits.astype("float64")
    p = np.exp(logits) / np.exp(logits).sum()
    return -np.log(p[target])


def gru_step_in_loops(y, c, s, cell):
    """The equations of `AttentionCell`, with the weights of `y` and `c` on top of each other."""
    kernel, recurrent, bias = (w.numpy().astype("float64") for w in cell.weights)
    (W_yz, W_yr, W_ys), (W_cz, W_cr, W_cs) = (
        np.split(part, 3, axis=1) for part in (kernel[: len(y)], kernel[len(y) :])
    )
    (W_sz, W_sr, W_ss), (b_z, b_r, b_s) = np.split(recurrent, 3, axis=1), np.split(bias, 3)
    r = sigmoid(y @ W_yr + s @ W_sr + c @ W_cr + b_r)
    z = sigmoid(y @ W_yz + s @ W_sz + c @ W_cz + b_z)
    candidate = np.tanh(y @ W_ys + (r * s) @ W_ss + c @ W_cs + b_s)
    return [z * s + (1 - z) * candidate]


def lstm_step_in_loops(y, c, s, memory_cell, cell):
    kernel, recurrent, bias = (w.numpy().astype("float64") for w in cell.weights)
    i, f, g, o = np.split(np.concatenate([y, c]) @ kernel + s @ recurrent + bias, 4)
    memory_cell = sigmoid(f) * memory_cell + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(memory_cell), memory_cell]


STEPS = {"gru": gru_step_in_loops, "lstm": lstm_step_in_loops}


STATES = {"gru": 1, "lstm": 2}


def float64_weights(layer):
    return [w.astype("float64") for w in layer.get_weights()]


def encode_in_loops(x, encoder):
    """The memory and the last states of one sequence without padding."""
    last, read = [], RECURRENT[encoder.cell]
    for layer in encoder.stack:
        weights = float64_weights(layer)
        zeros = [np.zeros(len(weights[1]))] * STATES[encoder.cell]
        x_forward, states = read(x, weights[:3], zeros)
        if encoder.bidirectional:
            x_backward, backward = read(x[::-1], weights[3:], zeros)
            if encoder.merge == "sum":
                x, states = x_forward + x_backward[::-1], [f + b for f, b in zip(states, backward, strict=True)]
            else:
                x = np.concatenate([x_forward, x_backward[::-1]], axis=1)
                states = [np.concatenate(both) for both in zip(states, backward, strict=True)]
        else:
            x = x_forward
        last += states
    return [x, *last]


def decode_in_loops(y, memory, states, decoder):
    """Outputs, last states and attention weights of one target, word by word."""
    size, states = STATES[decoder.cell], [state.astype("float64") for state in states]
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
                new = STEPS[decoder.cell](x, c, *own, layer.cell.cell)
            else:
                _, new = RECURRENT[decoder.cell]([x], float64_weights(layer), own)
            states[i * size : (i + 1) * size] = new
            x = new[0]
        if decoder.attention in AFTER:
            [c], [a] = attention_in_loops(x[None], memory, decoder.look)
            [W_c] = float64_weights(decoder.readout)
            x = np.tanh(np.concatenate([c, x]) @ W_c)  # Luong et al. 2015, eq. 5
        if decoder.attention != "none":
            looks.append(a)
        outputs.append(np.concatenate([x, word, c]) if decoder.output_kind == "all" else x)
    return np.array(outputs), states, np.array(looks)
