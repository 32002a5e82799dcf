"""The memory networks for dialog, `models.memma` and those it is compared with, against loops from their equations."""

import functools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from dialog_models import (
    MATCHING,
    MAX_WORDS,
    NAMES,
    ORDERED,
    SPEAKERS,
    VARIANTS,
    C,
    D,
    E,
    R,
    V,
    Y,
    batch,
    candidates,
    check_equations,
    config,
    fresh,
    loss_and_gradients,
    made,
    split,
    split_of,
    texts,
)
from helpers import to_numpy

from models import MODELS

# === Equations ===


@pytest.mark.parametrize(
    ("heads", "divisor", "shortcut"),
    [
        (1, "dimension", "gated"),
        (2, "root", "gated"),
        (1, "root", "identity"),
        (2, "dimension", "identity"),
        (1, "root", "none"),
        (2, "root", "none"),
    ],
)
def test_memma_matches_equations_5_to_15(heads, divisor, shortcut):
    check_equations("memma", heads=heads, divisor=divisor, shortcut=shortcut)


@pytest.mark.parametrize(
    "settings",
    [
        {"positions": False},
        {"speaker": False},
        {"time": False},
        {"speaker": False, "time": False},
        {"hops": 0},
        {"gate": "sigmoid"},
        {"memory": "latest"},
        {"memory": "latest", "time": False, "shortcut": "identity", "hops": 3},
    ],
)
def test_memma_matches_equations_without(settings):
    check_equations("memma", **settings)


@pytest.mark.parametrize(
    "settings", [{}, {"gated": True}, {"hops": 1}, {"speaker": False}, {"speaker": False, "time": False}]
)
def test_memn2n_matches_equations(settings):
    check_equations("memn2n", **settings)


@pytest.mark.parametrize("name", ["memr", "supervised-embeddings"])
def test_baselines_match_equations(name):
    check_equations(name)


@pytest.mark.parametrize("settings", [{}, {"positions": True, "shortcut": "identity", "divisor": "root"}])
def test_entity_memma_matches_equations(settings):
    check_equations("entity-memma", **settings)


@pytest.mark.parametrize(("name", "settings"), ORDERED)
def test_encodings_match_equations(name, settings):
    check_equations(name, **settings)


@pytest.mark.parametrize(("name", "settings"), [("memma", {}), ("memn2n", {}), *ORDERED])
def test_the_order_of_words_counts_with_an_encoding(name, settings):
    """By the sums that MEMMA's equations 5 to 8 amount to, words in another order are the same sentence."""
    model = made(name, **settings)
    other = split_of([[words[::-1] for words in dialog] for dialog in texts()])
    before = to_numpy(model(batch(model, rows=[0])[0]))
    change = np.abs(to_numpy(model(other.collate([0], model.config.reads, E, 1)[0])) - before).max()
    assert change > 0.01 if settings else change < 1e-4


def test_encodings_are_named():
    for name in ("memma", "memn2n", "entity-memma"):
        with pytest.raises(ValueError, match=r"\nencoding\n.*input_value='gru'"):
            config(name, encoding="gru")
    assert not hasattr(config("memr"), "encoding")


@pytest.mark.parametrize(("name", "settings"), MATCHING)
def test_match_types_match_definition(name, settings):
    check_equations(name, **settings)
    inputs, _ = batch(made(name))
    differences = to_numpy(made(name, **settings)(batch(made(name, **settings))[0])) - to_numpy(made(name)(inputs))
    assert np.abs(differences[0]).max() > 0.01


@pytest.mark.parametrize(("name", "heads"), [("memma", 2), ("entity-memma", 2), ("memn2n", 1), ("memr", 1)])
def test_attention_weights_are_those_of_the_history(name, heads):
    model = made(name)
    inputs, _ = batch(model)
    found = [to_numpy(x) for x in keras.Model(model.input, model.attention_weights)(inputs)]
    assert [x.shape for x in found] == [(3, heads, 5, 12)] * 2
    for row, dialog in enumerate(split().dialogs):
        for t, place in enumerate(dialog["turns"]):
            for weights in found:
                np.testing.assert_allclose(weights[row, :, t].sum(axis=1), float(place > 0), atol=1e-5)
                np.testing.assert_array_equal(weights[row, :, t, place:], 0.0)
    assert not MODELS["supervised-embeddings"].build(config("supervised-embeddings")).attention_weights


# === Dropout ===


@pytest.mark.parametrize("name", NAMES)
def test_dropout_is_of_training_alone(name):
    whole, model = made(name), fresh(name, dropout=0.5)
    model.set_weights(whole.get_weights())
    inputs, _ = batch(model)
    expected = to_numpy(whole(inputs))
    np.testing.assert_allclose(to_numpy(model(inputs)), expected, atol=1e-6)
    keras.utils.set_random_seed(1)
    first, second = (to_numpy(model(inputs, training=True)) for _ in range(2))
    assert np.abs(first - expected).max() > 0.01 and np.abs(first - second).max() > 0.01
    np.testing.assert_array_equal(to_numpy(whole(inputs, training=True)), expected)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_dropout_is_a_share(rate):
    with pytest.raises(ValueError, match=rf"\ndropout\n.*input_value={rate}"):
        config("memma", dropout=rate)


# === Padding and time ===


@pytest.mark.parametrize(("name", "settings"), VARIANTS + MATCHING[:1])
def test_memory_networks_ignore_padding(name, settings):
    model = made(name, **settings)
    for multiple in (1, 17):  # beside longer dialogs; and all padded further
        found = to_numpy(model(batch(model, multiple=multiple)[0]))
        for row, dialog in enumerate(split().dialogs):
            inputs, _ = batch(model, rows=[row])
            alone = to_numpy(model(inputs))[0]
            assert len(alone) == len(dialog["turns"]) and inputs["speakers"].shape[1] == len(SPEAKERS[row])
            np.testing.assert_allclose(found[row, : len(alone)], alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "settings"), VARIANTS + MATCHING[:1])
def test_memory_networks_do_not_look_ahead(name, settings):
    """Whatever is said after a turn, its logits stay; those of the next one do not."""
    model = made(name, **settings)
    before = to_numpy(model(batch(model, rows=[0])[0]))[0]
    turns, rng = split().dialogs[0]["turns"], np.random.default_rng(5)
    for t, place in enumerate(turns[:-1]):
        said = [words if m <= place else rng.integers(1, V + 1, 7).tolist() for m, words in enumerate(texts()[0])]
        speakers = [speaker if m <= place else 3 for m, speaker in enumerate(SPEAKERS[0])]
        changed = split_of([said], [speakers], [turns])
        after = to_numpy(model(changed.collate([0], model.config.reads, E, 1)[0]))[0]
        np.testing.assert_allclose(after[: t + 1], before[: t + 1], rtol=1e-5, atol=1e-5)
        assert np.abs(after - before)[t + 1 :].max(axis=1).min() > 0.01


@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_memory_networks_remember_what_came_before(name, settings):
    """The counterpart: every sentence before a turn counts for it, and so does its own."""
    model = made(name, **settings)
    before = to_numpy(model(batch(model, rows=[0])[0]))[0, -1]
    for m in range(len(SPEAKERS[0])):
        said = [list(words) for words in texts()[0]]
        said[m][0] = said[m][0] % 19 + 1  # another word, no entity
        changed = split_of([said], SPEAKERS[:1])
        after = to_numpy(model(changed.collate([0], model.config.reads, E, 1)[0]))[0, -1]
        assert np.abs(after - before).max() > 1e-5, m


# === Training ===


@pytest.mark.parametrize(("name", "settings"), VARIANTS + MATCHING)
def test_memory_networks_train_every_weight(name, settings):
    model = made(name, **settings)
    inputs, answers = batch(model)
    _, gradients = loss_and_gradients(model, inputs, answers)
    assert len(gradients) == len([w for w in model.weights if w.dtype == "float32"])
    for weight, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert isinstance(gradient, tf.Tensor), weight.path  # no IndexedSlices, see `layers.word_embedding`
        values = gradient.numpy()
        assert np.isfinite(values).all() and np.abs(values).max() > 1e-5, weight.path
        if weight.name == "embeddings":
            np.testing.assert_array_equal(values[0], 0.0)  # padding
        if weight.name == "speakers":  # padding; the user, the bot, the knowledge
            assert (np.abs(values).max(axis=1) > 1e-6).tolist() == [False, True, True, True]
        if weight.name == "times":
            # No memory is of the turn itself: only the pointer sees its own sentence. But the facts in front of the
            # first turn are, at that turn.
            assert (np.abs(values).max(axis=1) > 1e-6).all()


@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_memory_networks_learn_one_batch(name, settings):
    keras.utils.set_random_seed(0)
    hops = {} if name == "supervised-embeddings" else {"hops": 1}
    model, optimizer = fresh(name, **hops, **settings), keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    inputs, answers = batch(model)

    @functools.partial(tf.function, autograph=False)
    def step():
        loss, gradients = loss_and_gradients(model, inputs, answers)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    losses = []
    while not losses or (losses[-1] > 0.05 and len(losses) < 300):
        losses.append(float(step()))
    assert losses[0] == pytest.approx(np.log(C), abs=1.0)  # small weights: it starts undecided
    assert losses[-1] <= 0.05
    predicted = to_numpy(model(inputs)).argmax(axis=2)
    np.testing.assert_array_equal(predicted[answers >= 0], answers[answers >= 0])


@pytest.mark.parametrize("name", NAMES)
def test_frozen_word_vectors_stay(name):
    settings = {} if name == "entity-memma" else {"match_types": True}
    model, optimizer = fresh(name, train_embedding=False, **settings), keras.optimizers.SGD(1.0)
    frozen = [w for w in model.weights if w.name == "embeddings"]
    assert len(frozen) == (1 if name.endswith("memma") else 2)
    before = {w.path: w.numpy() for w in model.weights}
    inputs, answers = batch(model)
    _, gradients = loss_and_gradients(model, inputs, answers)
    optimizer.apply(gradients, model.trainable_variables)
    for weight in model.weights:
        stays = weight.name == "embeddings" or weight.dtype == "int32"
        assert np.array_equal(weight.numpy(), before[weight.path]) == stays, weight.path


# === Saving and precision ===


@pytest.mark.parametrize(("name", "settings"), VARIANTS + MATCHING[:1])
def test_memory_networks_save_and_load(name, settings, tmp_path):
    model = made(name, **settings)
    inputs, _ = batch(model)
    stored = json.loads(json.dumps(model.get_config()))
    again = type(model).from_config(stored)
    assert again.config == model.config and again.name == model.name
    assert again.config.candidates == (C, sum(map(len, candidates())))  # tuples, not JSON's lists
    assert np.abs(to_numpy(again(inputs)) - to_numpy(model(inputs))).max() > 0.01
    model.save_weights(tmp_path / "model.weights.h5")
    again.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(to_numpy(again(inputs)), to_numpy(model(inputs)))


@pytest.mark.parametrize("name", NAMES)
def test_memory_networks_are_saved_in_one_file(name, tmp_path):
    model = made(name)
    inputs, _ = batch(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert type(loaded) is type(model) and loaded.config == model.config
    np.testing.assert_array_equal(to_numpy(loaded(inputs)), to_numpy(model(inputs)))


@pytest.mark.parametrize("name", NAMES)
def test_memory_networks_in_half_precision_are_near_float32(name):
    settings = {} if name == "entity-memma" else {"match_types": True}
    exact = made(name, **settings)
    keras.config.set_dtype_policy("mixed_bfloat16")  # tests/conftest.py sets it back
    model = MODELS[name].build(exact.config)
    model.set_weights(exact.get_weights())
    inputs, _ = batch(model)
    found, expected = model(inputs), to_numpy(exact(inputs))
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    assert {str(w.dtype) for w in model.weights} == {"float32", "int32"}
    assert 0 < np.abs(to_numpy(found) - expected).max() < np.ptp(expected) / 20


# === Sizes ===


def test_memma_counts_parameters():
    """The word vectors once, for user, history and candidates alike (eq. 5)."""
    hop = 4 * D * D + D * D + D  # attention, gate
    trained = (V + 1) * D + (4 + R) * D + 2 * hop
    assert sum(w.numpy().size for w in made("memma").trainable_weights) == trained
    assert sum(w.numpy().size for w in made("memma", hops=0).trainable_weights) == (V + 1) * D
    types = (V + Y + 1) * D + (4 + R) * D + 2 * hop + 3 * D * D
    assert sum(w.numpy().size for w in made("entity-memma").trainable_weights) == types


def test_memory_networks_read_what_their_features_need():
    assert config("memma").reads == ["words", "sentences", "speakers", "turns", "times"]
    matching = ["words", "sentences", "speakers", "turns", "mentions"]
    assert config("memma", time=False, match_types=True).reads == matching
    assert config("supervised-embeddings").reads == matching[:-1]
    pointer = ["mentions", "sentences", "speakers", "times", "turns", "typed_words"]
    assert sorted(config("entity-memma").reads) == pointer
    for name in NAMES:
        assert sorted(made(name).input) == sorted(config(name).reads)


def test_memma_defaults_are_the_papers():
    found = MODELS["memma"].config(vocabulary_size=V, max_words=MAX_WORDS, candidates=(C, 1)).to_json()
    expected = {"embedding_dim": 128, "divisor": "dimension", "shortcut": "gated", "positions": True, "speaker": True}
    assert {field: found[field] for field in expected} == expected
