"""Small BiDAFs, ragged examples for them, and their equations in loops (Seo et al. 2017)."""

import functools

import keras
import numpy as np
from helpers import randomised, to_numpy
from reference import cnn_in_loops, flow_in_loops, highway_in_loops, self_attention_in_loops
from reference_recurrent import bilstm_in_loops, dynamic_in_loops, log_softmax, softmax

from colloquy.models.bidaf import BiDAF, BiDAFConfig

V, C, UNKNOWN = 11, 13, 2  # words and characters with an id, the unknown word's id
SIZES = {
    "vocabulary_size": V,
    "characters": C,
    "embedding_dim": 3,
    "hidden": 5,
    "character_filters": 7,
}
SIZES |= {"character_dim": 2, "dropout": 0.0}
# Tokens by number, (word, characters); 3 and 4 are one word in two spellings, 5 and 6 two unknown
# words.
TOKENS = [
    (0, []),
    (7, [1, 2, 3]),
    (8, [4]),
    (9, [5, 6]),
    (9, [7, 8, 9, 10, 11, 12, 13, 1, 2]),
    (UNKNOWN, [3, 3]),
]
TOKENS += [(UNKNOWN, [13, 4]), *((word, [word, 14 - word]) for word in (1, 3, 4, 5, 6, 10, 11))]
# Contexts, queries and answers: first and last words.
EXAMPLES = [
    ([1, 3, 5, 6, 8, 9, 13], [4, 6, 2], (1, 2)),
    ([2, 4, 10], [11, 2, 7, 12, 5], (0, 0)),
    ([12], [12], (0, 0)),
]
VARIANTS = [
    {},
    {"end_pointer": "official", "use_characters": False},
    {"use_words": False, "c2q": False},
    {"q2c": False, "exact_match": True},
    {"attention": "dynamic"},
    {"similarity": "mlp", "fusion": "mlp"},
    {"train_unknown": True, "trained_words": 4},
    {"self_attention": True, "similarity_start": "dot"},
    {"modelling_layers": 1},
]
DROPPING = {"dropout": 0.5}


def fresh(**settings):
    keras.utils.set_random_seed(1)
    return BiDAF(BiDAFConfig(**{**SIZES, **settings}))


@functools.cache
def made(**settings):
    """A model with random weights, shared by the tests: do not change it."""
    return randomised(fresh(**settings), 1, 0.4)


def padded(lists, more):
    width = max(map(len, lists)) + more
    return np.array([ids + [0] * (width - len(ids)) for ids in lists], "int32")


def batch(model, rows=(0, 1, 2), more=0):
    """Inputs and targets of some examples, with `more` padding than they need."""
    words, characters = zip(*TOKENS, strict=True)
    contexts, queries, spans = zip(*(EXAMPLES[row] for row in rows), strict=True)
    inputs = {"words": np.array(words, "int32"), "characters": padded(characters, more)}
    inputs |= {"context": padded(contexts, more), "query": padded(queries, more)}
    return inputs, np.array(spans, "int32")[:, None]


def real(logits, row):
    """The logits of an example without its padding."""
    context, _, _ = EXAMPLES[row]
    assert (logits[:, len(context) :] < -1e29).all()
    return logits[:, : len(context)]


def in_loops(model, row):
    """Logits of start and end, `(2, T)`, of one example."""
    c, layer = model.config, model.get_layer
    context, query, _ = EXAMPLES[row]

    def vector(token):
        word, characters = TOKENS[token]
        parts = []
        if c.use_characters:
            parts.append(cnn_in_loops(characters, layer("character_cnn")))
        if c.use_words:
            x = to_numpy(layer("word_embedding").embeddings)[word].astype("float64")
            after = word - (V - c.trained_words)
            if c.train_unknown and (word == UNKNOWN or after > 0):
                x = (
                    x
                    + to_numpy(layer("unknown_words").embeddings)[
                        1 if word == UNKNOWN else after + 1
                    ]
                )
            parts.append(x)
        x = np.concatenate(parts)
        for i in range(2):
            x = highway_in_loops(x, layer(f"highway_{i}"))
        return x

    def flagged(token, others):
        word = TOKENS[token][0]
        same = any(token == other or (word == TOKENS[other][0] != UNKNOWN) for other in others)
        return np.append(vector(token), float(same)) if c.exact_match else vector(token)

    X, Q = (
        [flagged(token, others) for token in text]
        for text, others in ((context, query), (query, context))
    )
    H, U = (bilstm_in_loops(np.array(x), layer("contextual")) for x in (X, Q))
    if c.attention == "dynamic":
        G, M = H, dynamic_in_loops(H, U, layer("modelling_0"))
    else:
        G = flow_in_loops(H, U, layer("attention_flow"))
        M = bilstm_in_loops(G, layer("modelling_0"))
    if c.self_attention:
        M = self_attention_in_loops(M, layer("self_attention"))
    if c.modelling_layers == 2:
        M = bilstm_in_loops(M, layer("modelling_1"))
    w1, w2 = (
        to_numpy(layer(f"{name}_logit").kernel)[:, 0].astype("float64") for name in ("start", "end")
    )
    start = np.array([w1 @ np.concatenate([g, m]) for g, m in zip(G, M, strict=True)])
    to_end = M
    if c.end_pointer == "official":
        a = sum(p * m for p, m in zip(softmax(start), M, strict=True))
        to_end = np.array([np.concatenate([g, m, a, m * a]) for g, m in zip(G, M, strict=True)])
    M2 = bilstm_in_loops(to_end, layer("end"))
    end = np.array([w2 @ np.concatenate([g, m]) for g, m in zip(G, M2, strict=True)])
    logits = np.array([start, end])
    if c.no_answer:
        logits += _answer_logit_in_loops(model, G, M, M2, logits) / 2
    return logits


def _answer_logit_in_loops(model, G, M, M2, logits):
    """Clark and Gardner 2018, section 3.2: `z`."""
    p1, p2 = softmax(logits[0]), softmax(logits[1])
    v1 = sum(p1[t] * np.concatenate([G[t], M[t]]) for t in range(len(G)))
    v2 = sum(p2[t] * np.concatenate([G[t], M2[t]]) for t in range(len(G)))
    hidden, output = (model.get_layer(f"answer_{name}") for name in ("hidden", "logit"))
    W, b = (to_numpy(weight).astype("float64") for weight in (hidden.kernel, hidden.bias))
    w, c = (to_numpy(weight).astype("float64") for weight in (output.kernel, output.bias))
    return np.maximum(np.concatenate([v1, v2]) @ W + b, 0) @ w[:, 0] + c[0]


def loss_in_loops(logits):
    """The mean over the examples of `-log p1[y1] - log p2[y2]`."""
    losses = []
    for (start, end), (_, _, (first, last)) in zip(logits, EXAMPLES, strict=True):
        losses.append(-log_softmax(start)[first] - log_softmax(end)[last])
    return np.mean(losses)
