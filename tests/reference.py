"""Slow loops over the papers' equations, one example at a time, which layers and models are
compared with.
"""

import itertools
import math

import keras
import numpy as np
from reference_recurrent import float64, sigmoid, softmax

from colloquy.layers.match_aggregation import pooled_size

# === DAM (Zhou et al. 2018) ===


def signal_in_loops(length, dimension, max_timescale):
    half = dimension // 2
    scales, signal = (
        [max_timescale ** (i / max(half - 1, 1)) for i in range(half)],
        np.zeros((length, dimension)),
    )
    for p in range(length):
        signal[p, : 2 * half] = [math.sin(p / s) for s in scales] + [
            math.cos(p / s) for s in scales
        ]
    return signal


def positions_in_loops(length, d):
    """MEMMA's equations 6 and 7, Vaswani et al. 2017, section 3.5: `pos` is the word's place, `d`
    is `d_model`.
    """
    PE = np.zeros((length, d))
    for pos, k in np.ndindex(length, d):
        angle = pos / 10000 ** (k // 2 * 2 / d)
        PE[pos, k] = math.cos(angle) if k % 2 else math.sin(angle)
    return PE


def norm_in_loops(x, norm, epsilon):
    """One vector to mean 0 and variance 1, then scaled and shifted."""
    gamma, beta = norm
    return (x - x.mean()) / np.sqrt(np.mean((x - x.mean()) ** 2) + epsilon) * gamma + beta


def block_weights(layer):
    """An `AttentiveModule`'s weights by the paper's letters, float64."""
    weights = {"W1": layer.W1_DD, "b1": layer.b1, "W2": layer.W2_DD, "b2": layer.b2}
    norms = {name: getattr(layer, name) for name in ("attention_norm", "ffn_norm")}
    weights |= {name: (norm.gamma, norm.beta) for name, norm in norms.items()}
    return keras.tree.map_structure(lambda w: w.numpy().astype("float64"), weights)


def block_in_loops(Q, K, V, w, epsilon=1e-6, pairs=None):
    """`AttentiveModule(Q, K, V)` of one sentence pair, word by word.

    `pairs`: bool `(Q, K)`; logits of False pairs are the release's `-2^32 + 1`. None: the paper.
    """
    output = []
    for i, q in enumerate(Q):
        logits = [q @ k / np.sqrt(len(q)) for k in K]
        if pairs is not None:
            logits = [x if pairs[i][j] else 1.0 - 2.0**32 for j, x in enumerate(logits)]
        x = norm_in_loops(softmax(logits) @ V + q, w["attention_norm"], epsilon)
        ffn = np.maximum(0, x @ w["W1"] + w["b1"]) @ w["W2"] + w["b2"]
        output.append(norm_in_loops(ffn + x, w["ffn_norm"], epsilon))
    return np.reshape(output, np.shape(Q))


def cross_match_in_loops(U, R, layer, pairs=None):
    """`M_cross` of one utterance and one response, cell by cell."""
    U_attends, R_attends = (
        block_weights(layer.utterance_attends),
        block_weights(layer.response_attends),
    )
    U_attended = block_in_loops(U, R, R, U_attends, pairs=pairs)
    R_attended = block_in_loops(R, U, U, R_attends, pairs=None if pairs is None else pairs.T)
    return np.array([[u @ r for r in R_attended] for u in U_attended]).reshape(len(U), len(R))


def conv3d_in_loops(x, kernel, bias):
    """ELU of a 3 x 3 x 3 convolution; cells beyond the volume are 0."""
    output = np.zeros((*x.shape[:3], kernel.shape[-1]))
    for cell in np.ndindex(*x.shape[:3]):
        y = bias.astype("float64")
        for step in itertools.product(range(3), repeat=3):
            at = tuple(c + s - 1 for c, s in zip(cell, step, strict=True))
            if all(0 <= i < n for i, n in zip(at, x.shape, strict=False)):
                y = y + x[at] @ kernel[step]
        output[cell] = np.where(y > 0, y, np.expm1(np.minimum(y, 0)))
    return output


def max_pool_in_loops(x, mask, size):
    """The maximum of the real cells of each window; `(t, k, j, C)` and its mask `(t, k, j)`."""
    shape = [math.ceil(n / size) for n in x.shape[:3]]
    pooled, pooled_mask = np.zeros((*shape, x.shape[3])), np.zeros(shape, bool)
    for window in itertools.product(*map(range, shape)):
        axes = (
            range(w * size, min((w + 1) * size, n)) for w, n in zip(window, x.shape, strict=False)
        )
        real = [x[cell] for cell in itertools.product(*axes) if mask[cell]]
        if real:
            pooled[window], pooled_mask[window] = np.max(real, axis=0), True
    return pooled, pooled_mask


def same_max_pool_in_loops(x):
    """TensorFlow's `SAME` max-pool 3/3: of 2 missing cells, 1 is put in front of an axis."""
    front = [((3 * math.ceil(n / 3) - n) // 2, 0) for n in x.shape[:3]]
    return max_pool_in_loops(
        np.pad(x, [*front, (0, 0)]), np.pad(np.ones(x.shape[:3], bool), front), 3
    )[0]


def aggregate_in_loops(image, mask, layer, scale, release=False):
    """The logit of one image `(T, K, J, C)` with mask `(T, K, J)`."""
    x = image * scale
    for convolution in layer.convolutions:
        kernel, bias = (w.numpy() for w in (convolution.kernel, convolution.bias))
        if release:
            x = same_max_pool_in_loops(conv3d_in_loops(x, kernel, bias))
        else:
            x = conv3d_in_loops(np.where(mask[..., None], x, 0), kernel, bias)
            x, mask = max_pool_in_loops(x, mask, 3)
    # The cells of the largest image in reading order; those that this image lacks are 0.
    cells = [pooled_size(n) for n in (layer.max_turns, layer.max_words, layer.max_words)]
    flat = np.zeros((*cells, layer.filters[-1]))
    flat[tuple(slice(n) for n in x.shape[:3])] = x
    return flat.ravel() @ layer.W3.numpy()[:, 0] + layer.b3.numpy()[0]


def cosine_of_words(context, response, layer):
    """The logit of a context and a response, lists of ids without padding."""
    if layer.stems:
        stem = layer.stem.numpy()
        context, response = set(stem[context]), set(stem[response])
    value = layer.idf.numpy().astype("float64") ** layer.power
    known = [[id for id in ids if id != layer.unknown_id] for ids in (context, response)]
    shared = sum(value[c] ** 2 for c in known[0] for r in known[1] if c == r)
    squares = [sum(value[id] ** 2 for id in ids) for ids in known]
    return layer.gain * shared / np.sqrt(max(squares[0] * squares[1], 1e-6))


# === BiDAF (Seo et al. 2017) ===


def cnn_in_loops(ids, layer):
    """The vector of one word without padding."""
    table, kernel, bias = float64(*layer.get_weights())
    width = len(kernel)
    e = np.concatenate([table[ids], np.zeros((width - 1, table.shape[1]))])
    windows = [np.einsum("we,wef->f", e[l : l + width], kernel) + bias for l in range(len(ids))]
    return np.max(np.maximum(windows, 0), axis=0)


def highway_in_loops(x, layer):
    """One vector."""
    W, b, W_t, b_t = float64(*layer.get_weights())
    t = sigmoid(x @ W_t + b_t)
    return t * np.maximum(x @ W + b, 0) + (1 - t) * x


def flow_in_loops(H, U, layer):
    """Equations 1 and 2 of one example without padding."""
    weights = float64(*layer.get_weights())
    if layer.fusion == "mlp":
        *weights, W_G, b_G = weights

    def alpha(x):
        if layer.kind == "mlp":
            W, c, v = weights
            return v @ np.tanh(x @ W.reshape(len(x), -1) + c)
        return weights[0].ravel() @ x if weights else 0.0

    S = np.array([[alpha(np.concatenate([h, u, h * u])) for u in U] for h in H])
    h_tilde = softmax(S.max(axis=1)) @ H
    rows = []
    for t, h in enumerate(H):
        u_tilde = softmax(S[t]) @ U if layer.c2q else U.mean(axis=0)
        rows.append(np.concatenate([h, u_tilde, h * u_tilde] + [h * h_tilde] * layer.q2c))
    return np.maximum(rows @ W_G + b_G, 0) if layer.fusion == "mlp" else np.array(rows)


def self_attention_in_loops(m, layer):
    """One text without padding."""
    w, W, b = float64(*layer.get_weights())
    rows = []
    for t, m_t in enumerate(m):
        others = np.delete(m, t, axis=0)
        scores = [w.ravel() @ np.concatenate([m_t, m_k, m_t * m_k]) for m_k in others]
        taken = softmax(scores) @ others
        rows.append(m_t + np.concatenate([m_t, taken, m_t * taken]) @ W + b)
    return np.array(rows)


# === Memory networks ===


def sum_in_loops(ids, layer):
    """One sentence, word by word; the first real word has position 0, the next 1, and so on."""
    [table] = float64(layer.embeddings)
    signal = _signal_of(layer)
    x, position = np.zeros(layer.dimension), 0
    for id in ids:
        if id == 0:
            continue
        x = x + layer.scale * table[id] + signal[position]
        position += 1
    return x


def _signal_of(layer):
    if layer.positions == "none":
        return np.zeros((100, layer.dimension))
    if layer.positions == "interleaved":
        return positions_in_loops(layer.max_words, layer.dimension)
    return 0.1 * signal_in_loops(layer.max_words, layer.dimension, 1e4)


def ordered_in_loops(ids, layer):
    """`layers.ordered_words` of one sentence, word by word."""
    [table], d = float64(layer.embeddings), layer.dimension
    words = [layer.scale * table[id] for id in ids if id]
    J, x = len(words), np.zeros(d)
    if layer.encoding == "position":
        for j, word in enumerate(words, 1):
            for k in range(1, d + 1):
                x[k - 1] += ((1 - j / J) - k / d * (1 - 2 * j / J)) * word[k - 1]
        return x
    signal = _signal_of(layer)
    y = [word + signal[j] for j, word in enumerate(words)]
    W = {weight.name: np.asarray(weight, "float64") for weight in layer.attend.weights}
    heads = layer.attend.heads
    for query in y:
        x += query
        for h in range(heads):
            q = query @ W["query"][:, h]
            weights = softmax([q @ (key @ W["key"][:, h]) / np.sqrt(d / heads) for key in y])
            x += weights @ y @ W["value"][:, h] @ W["output"][h]
    return x


def seen_in_loops(speakers, turns, including_turn=False):
    """Whether each turn of one dialog remembers each sentence."""
    last = [place if including_turn else place - 1 for place in turns]
    return np.array(
        [[speaker != 0 and m <= each for m, speaker in enumerate(speakers)] for each in last]
    )


def hop_in_loops(query, memories, mask, layer):
    """What the turns of one dialog read, and their weights, head by head and turn by turn.

    `memories` is `(T, M, D)`: each turn has its own, with the vectors of time added to them.
    """
    H = layer.heads
    read, weights = [], np.zeros((H, len(query), memories.shape[1]))
    if layer.projected:
        *kernels, W_O = float64(layer.query_DHE, layer.key_DHE, layer.value_DHE, layer.output_HED)
    for t, (q, memory) in enumerate(zip(query, memories, strict=True)):
        heads = []
        for h in range(H):
            W_Q, W_K, W_V = (
                [kernel[:, h] for kernel in kernels] if layer.projected else [np.eye(len(q))] * 3
            )
            real = np.flatnonzero(mask[t])
            weights[h, t, real] = softmax(
                [(q @ W_Q) @ (memory[m] @ W_K) / layer.divisor for m in real]
            )
            heads.append(weights[h, t] @ memory @ W_V)
        o = np.concatenate(heads)
        read.append(o @ W_O.reshape(len(o), -1) if layer.projected else o)
    return np.array(read), weights


def join_in_loops(o, x, layer):
    """What one vector passes on."""
    if layer.kind == "none":
        return o
    if layer.kind == "identity":
        return o + x
    W, b = float64(*layer.gate.weights)
    gate = {"tanh": np.tanh, "sigmoid": sigmoid}[layer.activation](x @ W + b)
    return o * gate + x * (1 - gate)


def point_in_loops(h, sentences, seen, mentions, layer, conditions):
    """The entities' scores at one turn; `sentences` `(M, D)` have the vectors of their times added
    to them.
    """
    W, of_conditions = float64(layer.kernel_DAD, layer.kernel_DN)
    a = [
        [(h @ W[:, n]) @ x if real else 0.0 for x, real in zip(sentences, seen, strict=True)]
        for n in range(3)
    ]
    M, E = mentions.shape
    first = [sum(a[0][m] for m in range(M) if mentions[m, e]) for e in range(E)]
    passed = [sum(first[e] for e in range(E) if mentions[m, e]) for m in range(M)]
    scores = np.array(
        [sum(a[1][m] + a[2][m] * passed[m] for m in range(M) if mentions[m, e]) for e in range(E)]
    )
    return scores + conditions @ (h @ of_conditions)


def state_vector_in_loops(known, layer):
    number = sum(3**place % 8191 for place, value in enumerate(known) if value)
    [vectors] = float64(layer.vectors)
    return vectors[number % 4096]
