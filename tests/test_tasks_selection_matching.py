"""`tasks.selection.matching` against loops from DAM's equations."""

import keras
import numpy as np
import pytest
from helpers import set_random_weights

from models.dam import DAM, DAMConfig, release_settings
from tasks.selection.matching import Matching

T, K, J, D, L = 2, 5, 3, 7, 2
TURNS, RESPONSE = [["a", "b", "c", "d", "e"], ["c", "a"]], ["e", "b", "b"]
IDS = {"turns": np.array([[[1, 2, 3, 4, 5], [3, 1, 0, 0, 0]]]), "responses": np.array([[[5, 2, 2]]])}


@pytest.fixture(scope="module")
def model():
    config = DAMConfig(vocabulary_size=5, embedding_dim=D, max_turns=T, max_words=K, levels=L, conv_filters=(2, 3))
    return set_random_weights(DAM(config), seed=1)


def norm(layer, x):
    gamma, beta = (np.asarray(weight) for weight in layer.get_weights())
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6) * gamma + beta


def attend(layer, Q, K):
    """Weights and output of an attentive module on two sentences without padding."""
    Att = np.zeros((len(Q), len(K)))
    for i, q in enumerate(Q):
        e = np.exp([q @ k / np.sqrt(D) for k in K])
        Att[i] = e / e.sum()
    W1, b1, W2, b2 = (np.asarray(weight) for weight in (layer.W1_DD, layer.b1, layer.W2_DD, layer.b2))
    x = norm(layer.attention_norm, Att @ K + Q)
    return Att, norm(layer.ffn_norm, np.maximum(x @ W1 + b1, 0) @ W2 + b2 + x)


def expected(model):
    """`{title: matrix}` of all maps, turn by turn, word by word."""
    table = np.asarray(model.get_layer("word_embedding").get_weights()[0])
    found = {}
    for t, words in enumerate(TURNS, 1):
        U, R = (table[["abcde".index(word) + 1 for word in sentence]] for sentence in (words, RESPONSE))
        for level in range(L + 1):
            match = model.get_layer(f"cross_match_{level}")
            on_response, U_ = attend(match.utterance_attends, U, R)
            on_turn, R_ = attend(match.response_attends, R, U)
            found[f"turn {t}: M_self {level}"], found[f"turn {t}: M_cross {level}"] = U @ R.T, U_ @ R_.T
            found[f"turn {t} on response {level}"], found[f"response on turn {t} {level}"] = on_response, on_turn
            if level < L:
                name, layer = f"self-attention {level + 1}", model.get_layer(f"self_attention_{level}")
                found[f"turn {t}: {name}"], U = attend(layer, U, U)
                found[f"response: {name}"], R = attend(layer, R, R)
    return found


def test_maps_match_the_equations(model):
    matching = Matching(model)
    maps = matching.matches(IDS, TURNS, RESPONSE) + matching.attention(IDS, TURNS, RESPONSE)
    wanted = expected(model)
    assert {each["title"] for each in maps} == wanted.keys() and len(maps) == len(wanted)
    for each in maps:
        np.testing.assert_allclose(each["weights"], wanted[each["title"]], atol=1e-4, err_msg=each["title"])


def test_maps_have_the_words_of_both_axes(model):
    matching = Matching(model)
    maps = {each["title"]: each for each in matching.matches(IDS, TURNS, RESPONSE)}
    maps |= {each["title"]: each for each in matching.attention(IDS, TURNS, RESPONSE)}
    assert (maps["turn 2: M_cross 1"]["rows"], maps["turn 2: M_cross 1"]["columns"]) == (TURNS[1], RESPONSE)
    assert (maps["response on turn 1 0"]["rows"], maps["response on turn 1 0"]["columns"]) == (RESPONSE, TURNS[0])
    assert (maps["turn 1: self-attention 2"]["rows"], maps["turn 1: self-attention 2"]["columns"]) == (TURNS[0],) * 2
    assert list(dict.fromkeys(each["group"] for each in maps.values())) == [
        *("turn 1: matches", "turn 2: matches", "response: attention", "turn 1: attention", "turn 2: attention")
    ]


def test_the_summary_is_the_mean_of_the_matches(model):
    matching = Matching(model)
    summary = matching.summary(IDS, TURNS, RESPONSE)
    means = [
        np.mean([value for title, value in expected(model).items() if title.startswith(f"turn {t}: M_")], axis=0)
        for t in (1, 2)
    ]
    assert min(mean.min() for mean in means) < 0  # which become 0
    for each, mean in zip(summary, means, strict=True):
        np.testing.assert_allclose(each["weights"], np.maximum(mean, 0) / max(m.max() for m in means), atol=1e-4)


def test_nothing_stands_for_sentences_without_words(model):
    ids = {"turns": np.array([[[0] * K, [3, 1, 0, 0, 0]]]), "responses": IDS["responses"]}
    matching = Matching(model)
    assert [each["title"] for each in matching.summary(ids, [[], TURNS[1]], RESPONSE)] == ["turn 2"]
    assert not any("turn 1" in each["title"] for each in matching.matches(ids, [[], TURNS[1]], RESPONSE))
    assert not any("turn 1" in each["title"] for each in matching.attention(ids, [[], TURNS[1]], RESPONSE))
    nothing = {**IDS, "responses": np.zeros((1, 1, J), "int32")}
    assert matching.matches(nothing, TURNS, []) == matching.attention(nothing, TURNS, []) == []


@pytest.mark.parametrize("variant", ["first", "last", "self", "cross"])
def test_variants_show_the_matches_that_they_have(variant):
    settings = release_settings(variant) if variant == "last" else {}  # its image has the response's words first
    config = DAMConfig(
        vocabulary_size=5,
        embedding_dim=D,
        max_turns=T,
        max_words=K,
        levels=L,
        variant=variant,
        conv_filters=(2, 3),
        **settings,
    )
    matching = Matching(set_random_weights(DAM(config), seed=2))
    J_padding = [0] * (K - J) if settings else []  # the release pads all to the largest size
    ids = {**IDS, "responses": np.array([[[5, 2, 2, *J_padding]]])}
    names = {"first": ["M_cross 0", "M_self 0"], "last": [f"M_cross {L}", f"M_self {L}"]}
    names |= {kind: [f"M_{kind} {level}" for level in range(L + 1)] for kind in ("self", "cross")}
    maps = matching.matches(ids, TURNS, RESPONSE)
    assert [each["title"] for each in maps] == [f"turn {t}: {name}" for t in (1, 2) for name in names[variant]]
    assert all(np.shape(each["weights"]) == (len(each["rows"]), J) for each in maps)
    if variant == "first":
        table = np.asarray(matching.model.get_layer("word_embedding").get_weights()[0])
        np.testing.assert_allclose(maps[3]["weights"], table[[3, 1]] @ table[[5, 2, 2]].T, atol=1e-5)
    for each in matching.attention(ids, TURNS, RESPONSE):
        if not settings:
            np.testing.assert_allclose(np.sum(each["weights"], axis=1), 1.0, atol=1e-5)


def test_names_are_those_of_the_image(model):
    channels, _ = model.get_layer("aggregation").input[:-1], model.get_layer("aggregation").input[-1]
    assert len(model.match_matrices) == len(keras.tree.flatten(channels)) == 2 * (L + 1)
    assert list(model.match_matrices) == [f"M_{kind} {level}" for kind in ("cross", "self") for level in range(L + 1)]
