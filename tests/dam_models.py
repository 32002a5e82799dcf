"""Small DAMs, ragged examples for them, and their equations in loops (Zhou et al. 2018)."""

import functools
import typing

import numpy as np
from helpers import set_random_weights
from reference import aggregate_in_loops, block_in_loops, block_weights, cross_match_in_loops, signal_in_loops
from test_layers_lexical_match import cosine_of_words

from models.dam import DAM, DAMConfig, LexicalMatchConfig

B, N, T, K, J, D = 2, 3, 5, 7, 11, 13  # batch, candidates, turns, words, words, features
L, V, FILTERS = 2, 37, (17, 19)
VARIANTS = typing.get_args(DAMConfig.model_fields["variant"].annotation)

# Words of each turn and candidate: a turn of one word, empty turns, a candidate without a word.
TURNS = ((7, 0, 3, 1), (2, 7, 0, 4, 6), (1,))
CANDIDATES = ((11, 1, 4), (5, 9, 0), (2, 8, 3))


LEXICAL = {"lexical": LexicalMatchConfig(gain=1.5), "hashed_words": 41, "unknown_id": 2}


def words(rng, counts, ids):
    return [rng.integers(1, ids + 1, count).tolist() for count in counts]


def examples(ids=V):
    """Ragged `(context, candidates)`: lists of turns and of responses, lists of ids from 1 to `ids`."""
    rng = np.random.default_rng(0)
    return [(words(rng, t, ids), words(rng, c, ids)) for t, c in zip(TURNS, CANDIDATES, strict=True)]


def ids_of(settings):
    return V + settings.get("hashed_words", 0)


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


def inputs_of(model, some, **sizes):
    """As `batch_of`, with what a model with `lexical` match takes beside."""
    batch = batch_of(some, **sizes)
    whole = {"context": batch["turns"], "candidates": batch["responses"]} if model.config.lexical else {}
    return batch | whole


def config(variant="full", **settings):
    sizes = {"embedding_dim": D, "max_turns": T, "max_words": J, "levels": L}
    return DAMConfig(vocabulary_size=V, **{**sizes, "conv_filters": FILTERS, "variant": variant, **settings})


@functools.cache
def dam(variant="full", **settings):
    """A model with random weights, shared by the tests: do not change it."""
    return set_random_weights(DAM(config(variant, **settings)), 1)


def dam_in_loops(turns, response, model, divisor):
    """The logit of one context and one response.

    Exact masking: lists of real ids. The release's: padded to the largest size, 0 = padding.
    """
    c, layer = model.config, model.get_layer
    release = c.masking == "release"
    levels = {"first": [0], "last": [c.levels]}.get(c.variant, range(c.levels + 1))

    def represent(ids):
        ids = [id if id <= V else c.unknown_id for id in ids]
        x = layer("word_embedding").embeddings.numpy().astype("float64")[np.array(ids, int)]
        if c.positional:
            signal = signal_in_loops(len(ids), c.embedding_dim, 10.0)
            x = x + layer("positional").weight_K.numpy()[: len(ids), None] * signal
        pairs = np.outer(ids, ids) > 0 if release else None
        found = [x]
        for l in range(max(levels)):
            w = block_weights(layer(f"self_attention_{l}"))
            found.append(block_in_loops(*[found[-1]] * 3, w, pairs=pairs))
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
                    channels.append(cross_match_in_loops(U[l], R[l], match, pairs))
        for channel, M in enumerate(channels):
            image[t, : len(ids), :, channel] = M.reshape(len(ids), J)
        mask[t, : len(ids)] = True
    if c.response_rows:
        image, mask = np.swapaxes(image, 1, 2), np.swapaxes(mask, 1, 2)
    logit = aggregate_in_loops(image, mask, layer("aggregation"), 1 / divisor, release)
    if not c.lexical:
        return logit
    return logit + cosine_of_words([id for ids in turns for id in ids], response, layer("lexical_match"))
