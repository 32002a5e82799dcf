"""Small DAMs, ragged examples for them, and their equations in loops (Zhou et al. 2018)."""

import functools

import numpy as np
import reference as ref
from helpers import randomised
from reference_recurrent import sigmoid

from colloquy.models.dam import DAM, DAMConfig
from colloquy.models.dam_config import LexicalMatchConfig

B, N, T, K, J, D = 2, 3, 5, 7, 11, 13  # batch, candidates, turns, words, words, features
L, V, FILTERS = 2, 37, (17, 19)
SIZES = {
    "vocabulary_size": V,
    "embedding_dim": D,
    "max_turns": T,
    "max_words": J,
    "levels": L,
    "conv_filters": FILTERS,
}
LEXICAL = {
    "variant": "self",
    "lexical": LexicalMatchConfig(gain=1.5),
    "hashed_words": 41,
    "unknown_id": 2,
}
VARIANTS = [
    {},
    LEXICAL,
    {"variant": "cross", "positional": True},
    {"variant": "first"},
    {"variant": "last", "scalar_bias": True, "response_rows": True},
    DAMConfig.release_settings("full"),
    {"variant": "last", **DAMConfig.release_settings("last")},
]
DROPPING = {"embedding_dropout": 0.5}

# Words of each turn and candidate: a turn of one word, empty turns, a candidate without a word.
TURNS = ((7, 0, 3, 1), (2, 7, 0, 4, 6), (1,))
CANDIDATES = ((11, 1, 4), (5, 9, 0), (2, 8, 3))


def words(rng, counts, ids):
    return [rng.integers(1, ids + 1, count).tolist() for count in counts]


@functools.cache
def examples(ids=V):
    """Ragged `(context, candidates)`: lists of turns and of responses, lists of ids from 1 to
    `ids`.
    """
    rng = np.random.default_rng(0)
    return [
        (words(rng, t, ids), words(rng, c, ids)) for t, c in zip(TURNS, CANDIDATES, strict=True)
    ]


def examples_of(model):
    return examples(V + model.config.hashed_words)


def batch_of(some, turns=1, k=1, candidates=1, j=1):
    """The model's inputs, of the smallest size that holds `some` and the sizes asked for."""
    T = max([turns, *(len(context) for context, _ in some)])
    N = max([candidates, *(len(responses) for _, responses in some)])
    K = max([k, *(len(ids) for context, _ in some for ids in context)])
    J = max([j, *(len(ids) for _, responses in some for ids in responses)])
    batch = {
        "turns": np.zeros((len(some), T, K), "int32"),
        "responses": np.zeros((len(some), N, J), "int32"),
    }
    for b, example in enumerate(some):
        for ids, lists in zip(batch.values(), example, strict=True):
            for i, one in enumerate(lists):
                ids[b, i, : len(one)] = one
    return batch


def batch(model, rows=(0, 1, 2), more=0, **sizes):
    """Inputs of some examples, and labels; `more` padding than they need, up to the model's
    sizes.
    """
    some = [examples_of(model)[row] for row in rows]
    if model.config.masking == "release":
        sizes = {"turns": T, "k": J, "j": J}
    elif more:
        sizes = {"turns": T, "k": min(K + more, J), "j": J, "candidates": N + more}
    inputs = batch_of(some, **sizes)
    if model.config.lexical:
        inputs |= {"context": inputs["turns"], "candidates": inputs["responses"]}
    return inputs, np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], "float32")[list(rows)]


def config(**settings):
    return DAMConfig(**{**SIZES, **settings})


def fresh(**settings):
    return DAM(config(**settings))


@functools.cache
def made(**settings):
    """A model with random weights, shared by the tests: do not change it."""
    return randomised(fresh(**settings), 1)


def real(logits, row):
    """The logits of an example's candidates."""
    return logits[:N]


def in_loops(model, row):
    """The logits of one example, `(N,)`. The release's masks have everything padded to the largest
    size.
    """
    context, responses = examples_of(model)[row]
    if model.config.masking == "release":
        inputs, _ = batch(model, [row])
        context, responses = inputs["turns"][0], inputs["responses"][0]
    return np.array([_logit_in_loops(context, response, model) for response in responses])


def _logit_in_loops(turns, response, model):
    """The logit of one context and one response: lists of ids, under the release's masks padded
    with 0.
    """
    c, layer = model.config, model.get_layer
    release = c.masking == "release"
    levels = {"first": [0], "last": [c.levels]}.get(c.variant, range(c.levels + 1))

    def represent(ids):
        ids = [id if id <= V else c.unknown_id for id in ids]
        x = layer("word_embedding").embeddings.numpy().astype("float64")[np.array(ids, int)]
        if c.positional:
            signal = ref.signal_in_loops(len(ids), c.embedding_dim, 10.0)
            x = x + layer("positional").weight_K.numpy()[: len(ids), None] * signal
        pairs = np.outer(ids, ids) > 0 if release else None
        found = [x]
        for l in range(max(levels)):
            w = ref.block_weights(layer(f"self_attention_{l}"))
            found.append(ref.block_in_loops(*[found[-1]] * 3, w, pairs=pairs))
        return found

    K, J = max(len(ids) for ids in turns), len(response)
    kinds = {"self": ["self"], "cross": ["cross"]}.get(c.variant, ["cross", "self"])
    image = np.zeros((len(turns), K, J, len(kinds) * len(levels)))
    mask = np.zeros(image.shape[:3], bool)
    R = represent(response)
    for t, ids in enumerate(turns):
        U, pairs = represent(ids), np.outer(ids, response) > 0 if release else None
        channels = []
        for kind in kinds:
            for l in levels:
                if kind == "self":
                    channels.append(np.array([[u @ r for r in R[l]] for u in U[l]]))
                else:
                    match = layer(f"cross_match_{l}")
                    channels.append(ref.cross_match_in_loops(U[l], R[l], match, pairs))
        for channel, M in enumerate(channels):
            image[t, : len(ids), :, channel] = M.reshape(len(ids), J)
        mask[t, : len(ids)] = True
    if c.response_rows:
        image, mask = np.swapaxes(image, 1, 2), np.swapaxes(mask, 1, 2)
    divisor = c.match_divisor or np.sqrt(c.embedding_dim)
    logit = ref.aggregate_in_loops(image, mask, layer("aggregation"), 1 / divisor, release)
    if not c.lexical:
        return logit
    return logit + ref.cosine_of_words(
        [id for ids in turns for id in ids], response, layer("lexical_match")
    )


def loss_in_loops(logits):
    """The mean over all pairs of `-log p(y | c, r)`."""
    labels = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    signs = 2 * np.array(labels) - 1
    return np.mean(-np.log(sigmoid(signs * np.array(logits))))
