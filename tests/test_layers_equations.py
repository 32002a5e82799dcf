"""Every layer computes its equations: its cases against loops over them, one example at a time,
without padding.
"""

import itertools

import keras
import layer_cases
import numpy as np
import pytest
import reference as ref
import reference_recurrent as recurrent
from helpers import to_numpy
from layer_cases import (
    CASES,
    MATCH_TABLES,
    B,
    D,
    E,
    J,
    S,
    T,
    V,
    built,
    case,
    floats,
    numbers,
    outputs_of,
    real,
)

from colloquy.layers.attention_flow import AttentionFlow
from colloquy.layers.bag_of_words import BagOfWords
from colloquy.layers.lexical_match import ECHO_POWER
from colloquy.layers.positions import PositionalEncoding
from colloquy.layers.recurrent_decoder import AFTER, BEFORE
from colloquy.layers.recurrent_encoder import RecurrentEncoder
from colloquy.layers.self_attention import SelfAttention
from colloquy.layers.shortcut import Shortcut

# === The loops of each layer: from the layer, the number of an example and all inputs to that
# example's outputs ===


def rows(loops):
    """For a layer of single vectors or texts, whose loops leave out padding, id 0."""
    return lambda layer, b, x: [np.apply_along_axis(loops, -1, x[b], layer)]


def one_text(loops):
    return lambda layer, b, x, mask: [loops(x[b][mask[b]], layer)]


def two_texts(loops):
    return lambda layer, b, x, y, x_mask, y_mask: [loops(x[b][x_mask[b]], y[b][y_mask[b]], layer)]


def attentive_in_loops(layer, b, query, key, value, query_mask, key_mask):
    found = np.zeros((T, S, D))
    for t in range(T):
        pairs, Q, K = np.outer(query_mask[b, 0], key_mask[0, t]), query_mask[b, 0], key_mask[0, t]
        if layer.masking == "release":
            Q, K = np.ones_like(Q), np.ones_like(K)
        else:
            pairs = None
        parts = query[b, 0][Q], key[0, t][K], value[0, t][K]
        found[t, Q] = ref.block_in_loops(*parts, ref.block_weights(layer), layer.epsilon, pairs)
    return [found]


def cross_in_loops(layer, b, utterance, response, scores, u_mask, r_mask):
    found, release = np.zeros((T, S, J)), layer.utterance_attends.masking == "release"
    for t in range(T):
        pairs = np.outer(u_mask[0, t], r_mask[b, 0])
        cells = np.ones_like(pairs) if release else pairs
        u, r = utterance[0, t][cells.any(axis=1)], response[b, 0][cells.any(axis=0)]
        found[t][cells] = ref.cross_match_in_loops(u, r, layer, pairs if release else None).ravel()
    return [found]


def images_in_loops(layer, b, matches, mask):
    images = np.stack(matches, axis=-1)[b]
    release = layer.masking == "release"
    return [
        [
            ref.aggregate_in_loops(image, m, layer, 1.5, release)
            for image, m in zip(images, mask[b], strict=True)
        ]
    ]


def hops_in_loops(layer, b, query, sentences, mask, *times):
    """A turn's memory is each sentence with the vector of its time."""
    memories = np.repeat(sentences[b][None], T, axis=0)
    if times:
        memories = memories + times[0][times[1][b].argmax(axis=-1)]
    return ref.hop_in_loops(query[b], memories, mask[b], layer)


def pointers_in_loops(layer, b, state, sentences, seen, mentions, vectors, distances, conditions):
    timed = sentences[b].astype("float64") + vectors[distances[b].argmax(axis=-1)]
    met = conditions[b, :, :, 1:].swapaxes(1, 2)
    scores = [
        ref.point_in_loops(state[b, t], timed[t], seen[b, t], mentions[b], layer, met[t])
        for t in range(T)
    ]
    return [
        [sum(each[e - 1] for e in row if e) for row in layer.entity_CK.numpy()] for each in scores
    ], scores


def match_types_in_loops(layer, b, state, mentions, seen):
    """The vector of a group's type counts for a candidate if one of the group was mentioned,
    however often.
    """
    members, types, groups = MATCH_TABLES.values()
    gain = np.zeros((T, len(groups)))
    for t, (c, row) in itertools.product(range(T), enumerate(groups)):
        said = {0} | {
            e + 1 for m in range(S) for e in range(E) if seen[b, t, m] and mentions[b, m, e]
        }
        for group in row[row > 0] - 1:
            if set(members[group]) & said - {0}:
                gain[t, c] += state[b, t] @ to_numpy(layer.type_YD)[types[group]]
    return [gain]


def cosines_in_loops(layer, b, context, responses):
    texts = [context[b][context[b] > 0], *(response[response > 0] for response in responses[b])]
    logits = [ref.cosine_of_words(texts[0], response, layer) for response in texts[1:]]
    if layer.echo_gain:
        turns = [turn[turn > 0] for turn in context[b]]
        for n, response in enumerate(texts[1:]):
            cosines = [ref.cosine_of_words(turn, response, layer) / layer.gain for turn in turns]
            logits[n] -= layer.echo_gain * max(cosines) ** ECHO_POWER
    return [logits]


def template_candidates_in_loops(layer, b, template_logits, gain, template_of_candidate):
    found = np.zeros((T, J))
    for t, c in itertools.product(range(T), range(J)):
        template = template_of_candidate[c]
        of_template = gain[b, t][template_of_candidate == template].astype("float64")
        p_template = np.exp(recurrent.log_softmax(template_logits[b, t]))[template]
        found[t, c] = np.log(p_template * np.exp(gain[b, t, c]) / np.exp(of_template).sum())
    return [found]


LOOPS = {
    "Attention": lambda layer, b, x, memory, mask: recurrent.attention_in_loops(
        x[b], memory[b][mask[b]], layer
    ),
    "AttentionFlow": two_texts(ref.flow_in_loops),
    "AttentiveModule": attentive_in_loops,
    "BagOfWords": rows(ref.sum_in_loops),
    "BiLSTM": one_text(recurrent.bilstm_in_loops),
    "CharacterCNN": rows(lambda ids, layer: ref.cnn_in_loops(ids[ids > 0], layer)),
    "CrossMatch": cross_in_loops,
    "Dense": rows(
        lambda x, layer: np.tanh(
            x @ ref.float64(*layer.weights)[0] + ref.float64(*layer.weights)[1]
        )
    ),
    "DynamicBiLSTM": two_texts(recurrent.dynamic_in_loops),
    "EntityPointer": pointers_in_loops,
    "Highway": rows(ref.highway_in_loops),
    "LayerNorm": rows(lambda x, layer: ref.norm_in_loops(x, layer.get_weights(), 0.1)),
    "LexicalMatch": cosines_in_loops,
    "MatchAggregation": images_in_loops,
    "MatchTypes": match_types_in_loops,
    "MemoryAttention": hops_in_loops,
    "OrderedWords": rows(ref.ordered_in_loops),
    "PositionalEncoding": lambda layer, b, x: [
        x[b] + layer.weight_K.numpy()[:S, None] * ref.signal_in_loops(S, D, 10.0)
    ],
    "RecurrentEncoder": lambda layer, b, x, mask: recurrent.encode_in_loops(
        x[b][mask[b]].astype("float64"), layer
    ),
    "ReversibleWordEmbedding": lambda layer, b, x, _: [
        [layer.embeddings.numpy() @ row for row in x[b]]
    ],
    "SelfAttention": one_text(ref.self_attention_in_loops),
    "SentenceGRU": rows(recurrent.sentence_in_loops),
    "Shortcut": lambda layer, b, output, state: [ref.join_in_loops(output[b], state[b], layer)],
    "SpeakerFeature": lambda layer, b, x, speakers: [x[b] + layer.table.numpy()[speakers[b]]],
    "StateVector": lambda layer, b, known: [
        [ref.state_vector_in_loops(row, layer) for row in known[b]]
    ],
    "TemplateCandidates": template_candidates_in_loops,
    "WordEmbedding": lambda layer, b, ids: [layer.embeddings.numpy()[ids[b]]],
}
TEXT = {"x": floats(B, S, E), "mask": real(B, S)}
MORE = {
    "AttentionFlow, one way": layer_cases.flow(c2q=False),
    "CrossMatch, release": layer_cases.cross(masking="release"),
    **{  # all remainders after division by 3
        f"MatchAggregation, release, {turns} turns": layer_cases.aggregation(
            turns, words, words, masking="release"
        )
        for turns, words in ((5, 13), (2, 9), (7, 10))
    },
    "MemoryAttention, 11, untimed": layer_cases.memory(False, heads=11),
    "MemoryAttention, plain, timed": layer_cases.memory(True, projected=False),
    **{
        f"RecurrentEncoder {cell} {layers} {merge}": case(
            RecurrentEncoder, cell, 2 * D, layers, bool(merge), merge or "sum", inputs=TEXT
        )
        for cell, layers, merge in (
            ("gru", 2, "sum"),
            ("gru", 1, ""),
            ("lstm", 1, "concat"),
            ("lstm", 2, ""),
        )
    },
    "Shortcut gated tanh": case(Shortcut, "gated", "tanh", inputs=CASES["Shortcut gated"].inputs),
}
"""Settings whose equations alone are compared."""
EVERY = CASES | MORE
NOT_HERE = ("DialogState", "IdTable", "TimeFeature", "RecurrentDecoder")
"""The first: tests/test_tasks_dialog_action_mask.py, the last:
`test_decoder_and_its_steps_match_loops`.
"""


def check(layer, inputs):
    outputs = outputs_of(layer, inputs)
    for b in range(len(outputs[0])):
        expected = LOOPS[type(layer).__name__](layer, b, *inputs.values())
        for y, wanted in zip(outputs, expected, strict=False):
            found, real = y[b].copy(), tuple(map(slice, np.shape(wanted)))
            np.testing.assert_allclose(
                found[real], wanted, rtol=1e-4, atol=1e-4, err_msg=f"example {b}"
            )
            assert np.ptp(wanted) > 0.01  # which says something
            if not isinstance(layer, (AttentionFlow, SelfAttention)):
                found[real] = 0.0
                assert not found.any()  # padding gives zeros
    return outputs


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith(NOT_HERE)])
def test_matches_its_equations(name):
    check(EVERY[name].build(), EVERY[name].inputs)


NOTHING = dict.fromkeys([name for name in CASES if name.startswith("Attention ")], "memory_mask")
NOTHING |= dict.fromkeys(["AttentiveModule", "AttentiveModule, scalar bias"], "query_mask")
NOTHING |= dict.fromkeys(["BiLSTM", "RecurrentEncoder gru concat"], "mask")
NOTHING |= dict.fromkeys(["BagOfWords, none", "BagOfWords, interleaved", "CharacterCNN"], "ids")
NOTHING |= dict.fromkeys(["OrderedWords, attention", "OrderedWords, position"], "ids")
NOTHING |= dict.fromkeys(["EntityPointer, no condition met", "MatchTypes"], "seen")
NOTHING |= dict.fromkeys(["MemoryAttention", "MemoryAttention, plain"], "memory_mask")
NOTHING |= {"CrossMatch": "response_mask", "SentenceGRU": "ids"}
NOTHING |= {"LexicalMatch": "responses", "LexicalMatch, stems": "context"}
"""Cases that give zeros where an argument, ids or a mask, has nothing."""


@pytest.mark.parametrize(("name", "empty"), NOTHING.items())
def test_nothing_gives_zeros(name, empty):
    """And the other example what it gives anyway."""
    layer, inputs = CASES[name].build(), CASES[name].inputs
    nothing = np.concatenate([np.zeros_like(inputs[empty][:1]), inputs[empty][1:]])
    for found, expected in zip(
        outputs_of(layer, inputs | {empty: nothing}), outputs_of(layer, inputs), strict=True
    ):
        assert not found[0].any() and expected[0].any()
        np.testing.assert_allclose(found[1], expected[1], atol=1e-5)


def test_self_attention_of_one_word_takes_nothing():
    layer, (x, _) = built("SelfAttention")
    check(layer, {"x": x, "mask": np.arange(S) < [[3], [1]]})


def test_character_cnn_takes_words_of_one_letter():
    words = [[1, 2, 3, 4, 5, 6, 7, 8], [9, 10] + [0] * 6, [9] + [0] * 7]
    for each in itertools.pairwise(words):
        check(CASES["CharacterCNN"].build(), {"ids": np.array(each)})


def test_order_and_places_of_words():
    """Padding has no place; more words than places are taken; another order is another sentence."""
    for name in (
        "OrderedWords, position",
        "OrderedWords, attention",
        "OrderedWords, interleaved",
        "SentenceGRU",
        "BagOfWords, interleaved",
    ):
        layer, [ids] = built(name)
        first = ids[0].reshape(-1, S)[0]
        texts = [first, first[::-1], first * (np.arange(S) == 0), first * (np.arange(S) != 2)]
        found, *_ = check(layer, {"ids": np.array(texts)})
        change = np.abs(found[0] - found[1]).max()
        assert change < 1e-5 if name.startswith("Bag") else change > 0.01
        assert np.isfinite(to_numpy(layer(np.tile(first, (1, 3))))).all()


def test_a_longer_sentence_than_any_counts_as_the_longest():
    layer, plain, ids = BagOfWords(V, D, 2, "halves"), BagOfWords(V, D), numbers(V, 1, 5) + 1
    for each in (layer, plain):
        each.build(ids.shape)
        each.set_weights([np.ones((V + 1, D))])
    signals = [to_numpy(layer(ids[:, :n])) - to_numpy(plain(ids[:, :n])) for n in (2, 3, 5)]
    np.testing.assert_allclose(signals[1:], [signals[0]] * 2, atol=1e-6)
    assert np.abs(signals[0]).max() > 0.01


def test_how_layers_start():
    """As the identity, and the flow as a dot product."""
    for layer in (SelfAttention(), PositionalEncoding(J)):
        inputs = CASES[type(layer).__name__].inputs
        np.testing.assert_array_equal(outputs_of(layer, inputs)[0], inputs["x"])
    flow = AttentionFlow(start="dot")
    flow.build((None, None, D), (None, None, D))
    np.testing.assert_array_equal(to_numpy(flow.w_3D)[2], 1)
    assert abs(to_numpy(flow.w_3D)[:2]).max() < 1


DROPPING = {"CharacterCNN": CASES["CharacterCNN"]}
DROPPING |= {
    f"decoder of {n}": layer_cases.decoder("luong_dot", layers=n, dropout=0.9) for n in (1, 2)
}
DROPPING |= {
    f"encoder of {n}": case(RecurrentEncoder, "gru", D, n, False, dropout=0.9, inputs=TEXT)
    for n in (1, 2)
}


@pytest.mark.parametrize(
    "name",
    [
        "CharacterCNN",
        "decoder of 1",
        "encoder of 1",
        pytest.param("decoder of 2", marks=pytest.mark.slow),
        pytest.param("encoder of 2", marks=pytest.mark.slow),
    ],
)
def test_drops_in_training_only(name):
    """And recurrent layers only between two of them."""
    keras.utils.set_random_seed(1)
    layer, inputs = DROPPING[name].build(), list(DROPPING[name].inputs.values())
    plain, again, *trained = (
        to_numpy(keras.tree.flatten(layer(*inputs, training=i > 1))[0]) for i in range(5)
    )
    np.testing.assert_array_equal(again, plain)
    assert (max(np.abs(each - plain).max() for each in trained) > 0.01) == ("1" not in name)


# === Decoder ===

ATTENTIONS = ("none", *BEFORE, *AFTER)
DECODERS = [{"attention": attention, "cell": "gru", "layers": 1} for attention in ATTENTIONS]
DECODERS += [
    {"attention": attention, "cell": "lstm", "layers": 2, "output": "all"}
    for attention in ("none", "additive", "luong_dot")
]


@pytest.mark.parametrize("settings", DECODERS, ids=str)
def test_decoder_and_its_steps_match_loops(settings):
    case = layer_cases.decoder(**settings)
    layer, (y, memory, mask, states) = case.build(), case.inputs.values()
    found = to_numpy(layer(y, memory, mask, states))
    cache, after, stepped, looks = layer.encoder_cache(memory, mask, states), states, [], []
    for t in range(T):
        output, after, weights = layer.step(y[:, t], after, cache)
        stepped.append(to_numpy(output))
        looks.append(weights)
    for b, n in enumerate(mask.sum(axis=1)):
        outputs, last, weights = recurrent.decode_in_loops(
            y[b], memory[b, :n], [state[b] for state in states], layer
        )
        np.testing.assert_allclose(found[b], outputs, atol=1e-5)
        np.testing.assert_allclose(np.array(stepped)[:, b], outputs, atol=1e-5)
        for state, expected in zip(after, last, strict=True):
            np.testing.assert_allclose(to_numpy(state)[b], expected, atol=1e-5)
        if settings["attention"] == "none":
            assert looks == [None] * T
        else:
            assert np.ptp(weights, axis=1).min() > 0.005
            padded = np.pad(weights, ((0, 0), (0, S - n)))
            np.testing.assert_allclose(
                np.array([to_numpy(look)[b] for look in looks]), padded, atol=1e-5
            )


# === Lexical match and aggregation ===


@pytest.mark.parametrize("name", ["LexicalMatch", "LexicalMatch, stems"])
def test_lexical_match_is_zero_in_training_and_where_texts_share_nothing(name):
    layer, _ = built(name)
    assert not to_numpy(layer(*CASES[name].inputs.values(), training=True)).any()
    layer.idf.assign(np.ones(V + 1))
    if layer.stems:
        layer.stem.assign(np.arange(V + 1))
    for response in ([5, 6], [0, 0], [layer.unknown_id, 0]):
        assert not to_numpy(
            layer(np.array([[[3, layer.unknown_id]]]), np.array([[response]]))
        ).any()
