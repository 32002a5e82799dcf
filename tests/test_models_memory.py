"""The memory networks for dialog, `models.memma` and those it is compared with, against loops from their equations."""

import dataclasses
import functools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import randomised, to_numpy
from reference import (
    distances_in_loops,
    hop_in_loops,
    join_in_loops,
    point_in_loops,
    seen_in_loops,
    sentence_in_loops,
    sum_in_loops,
)

from data.vocabulary import Vocabulary
from models import MODELS
from tasks.dialog.batches import DialogSplit, Sentences, stack
from tasks.dialog.dataset import World
from tasks.dialog.losses import softmax_loss
from tasks.dialog.tables import set_world
from tasks.dialog.task import DialogTask

NAMES = ("memma", "entity-memma", "memn2n", "memr", "supervised-embeddings")
VARIANTS = [*((name, {}) for name in NAMES), ("memn2n", {"gated": True})]
MATCHING = [*((name, {"match_types": True}) for name in NAMES if name != "entity-memma")]

V, D, R, E, Y, C = 31, 14, 3, 11, 2, 13  # words, features, turn distances, entities, types, candidates
MAX_WORDS = 7
SMALL = {"embedding_dim": D, "time_limit": R}


def loss_and_gradients(model, inputs, answers):
    with tf.GradientTape() as tape:
        loss = softmax_loss(answers, model(inputs))
    return loss, tape.gradient(loss, model.trainable_variables)


# === A small world ===
# The last E words are the entities: the first 7 of type 0, the others of type 1. Those of type 0 are read as one.


def type_of(entity):
    return 0 if entity < 7 else 1


def entities_in(words):
    return [word - (V - E + 1) for word in words if word > V - E]


def typed(words):
    return [V + 1 if word in range(V - E + 1, V - E + 8) else word for word in words]


def sentences_of(lists):
    """`Sentences` of lists of ids."""
    return Sentences(
        stack(lists), stack([typed(words) for words in lists]), stack([[e + 1 for e in entities_in(x)] for x in lists])
    )


@functools.cache
def candidates():
    """Lists of ids: the first has one word, the next two entities of one type, the third no entity."""
    rng = np.random.default_rng(11)
    some = [rng.integers(1, V + 1, rng.integers(2, 6)).tolist() for _ in range(C - 3)]
    return [[4], [V - 10, 3, V - 9], [5, 6, 7], *some]


# Speakers of each dialog: 1 user, 2 bot, 3 knowledge. The first turn of two of them has no history.
SPEAKERS = ([3, 3, 1, 2, 1, 2, 3, 1, 2, 1, 2, 1], [1, 2, 1, 2, 3, 2], [1])
ANSWERS = ([3, 7, 12, 0, 5], [3, 9], [1])


@functools.cache
def texts():
    """Three dialogs of 5, 2 and 1 turns, of sentences of 1 to 7 words: lists of lists of ids."""
    rng = np.random.default_rng(0)
    found = [
        [rng.integers(1, V + 1, rng.integers(1, n)).tolist() for _ in s]
        for n, s in zip((8, 5, 3), SPEAKERS, strict=True)
    ]
    found[1][1] = found[1][3] = found[0][5]  # a sentence that is said again
    return found


def split_of(texts, speakers=SPEAKERS, turns=None, encode=None):
    """Dialogs of some texts; turns are where the user speaks, unless they are given."""
    distinct = sorted({tuple(words) for dialog in texts for words in dialog})
    dialogs = []
    for b, (dialog, says) in enumerate(zip(texts, speakers, strict=True)):
        places = [m for m, speaker in enumerate(says) if speaker == 1] if turns is None else turns[b]
        dialogs.append(
            {
                "sentences": [distinct.index(tuple(words)) for words in dialog],
                "speakers": says,
                "times": [max(sum(place <= m for place in places) - 1, 0) for m in range(len(says))],
                "turns": places,
                "answers": ANSWERS[b][: len(places)],
            }
        )
    return DialogSplit((encode or sentences_of)([list(words) for words in distinct]), dialogs)


@functools.cache
def split():
    return split_of(texts())


def batch(model, rows=(0, 1, 2), multiple=1):
    return split().collate(rows, model.config.reads, E, multiple)


def match_groups():
    members, types, of_candidates = [], [], []
    for words in candidates():
        of_candidates.append([])
        for y in range(Y):
            group = [e + 1 for e in sorted(set(entities_in(words))) if type_of(e) == y]
            if group:
                members.append(group)
                types.append(y)
                of_candidates[-1].append(len(members))
    return stack(members), np.array(types), stack(of_candidates)


def config(name, **settings):
    encoded, (members, _, of_candidates) = sentences_of(candidates()), match_groups()
    sizes = {
        "vocabulary_size": V,
        "max_words": MAX_WORDS,
        "candidates": (C, sum(map(len, candidates()))),
        "entities": E,
        "types": Y,
        "candidate_entities": encoded.entities.shape,
        "match_groups": members.shape,
        "match_candidates": of_candidates.shape,
    }
    hops = {} if name == "supervised-embeddings" else {"hops": 2}
    heads = {"heads": 2} if name.endswith("memma") else {}
    return MODELS[name].config(**{**sizes, **SMALL, **hops, **heads, **settings})


def fresh(name, **settings):
    """A model as it starts, with the candidates."""
    model = MODELS[name].build(config(name, **settings))
    words = [typed(x) if name == "entity-memma" else x for x in candidates()]
    model.get_layer("candidate_words").set_weights([np.concatenate(words)])
    model.get_layer("candidate_rows").set_weights([np.repeat(np.arange(C), [len(x) for x in words])])
    layers = {layer.name: layer for layer in model.layers}
    if "match_types" in layers:
        layers["match_types"].set_weights([layers["match_types"].type_YD.numpy(), *match_groups()])
    if "entity_pointer" in layers:
        kernel = layers["entity_pointer"].kernel_DND.numpy()
        layers["entity_pointer"].set_weights([kernel, sentences_of(candidates()).entities])
    return model


@functools.cache
def made(name, **settings):
    """A model with random weights, shared by the tests: do not change it."""
    return randomised(fresh(name, **settings), 1, 0.3)


# === Equations ===


def dialog_in_loops(model, name, row):
    """The logits of one dialog, `(T, C)`, turn by turn."""
    c, layer, dialog = model.config, model.get_layer, split().dialogs[row]
    speakers, turns = dialog["speakers"].tolist(), dialog["turns"].tolist()
    said, offered = texts()[row], candidates()
    mentions = np.array([[e in entities_in(words) for e in range(E)] for words in said])
    if name == "entity-memma":
        said, offered = [typed(words) for words in said], [typed(words) for words in offered]
    if name == "memr":
        x = [sentence_in_loops(words, layer("sentence_gru")) for words in said]
    else:
        encode = {"memn2n": "memory_embedding", "supervised-embeddings": "conversation_embedding"}
        x = [sum_in_loops(words, layer(encode.get(name, "bag_of_words"))) for words in said]
    both = layer("bag_of_words" if name.endswith("memma") else "candidate_embedding")
    candidate_vectors = [sum_in_loops(words, both) for words in offered]
    before, seen = seen_in_loops(speakers, turns), seen_in_loops(speakers, turns, including_turn=True)
    distances = distances_in_loops(dialog["times"], turns, R)

    logits = np.zeros((len(turns), C))
    for t, place in enumerate(turns):
        u = start = x[place]
        memory = np.array(x)
        if c.speaker and c.hops:
            memory = memory + layer("speaker").table.numpy()[speakers]
        if c.time and c.hops:
            memory = memory + layer("time").table.numpy()[distances[t]]
        for hop in range(getattr(c, "hops", 0)):
            attend = layer(f"attention_{hop}" if name.endswith("memma") else "attention")
            assert attend.divisor == (1 if not name.endswith("memma") else D if c.divisor == "dimension" else D**0.5)
            o = hop_in_loops(u[None], memory[None], before[None, t], attend)[0][0]
            if not name.endswith("memma"):
                o = o @ layer("output_projection").kernel.numpy()
            join = layer(f"shortcut_{hop}")
            gate = "tanh" if name.endswith("memma") else "sigmoid"
            kind = "gated" if getattr(c, "gated", False) else getattr(c, "shortcut", "identity")
            assert join.kind == kind and (kind != "gated" or join.activation == gate)
            u = join_in_loops(o, u, join)
        if name.endswith("memma") and c.hops:
            u = start + u  # eq. 15
        if name == "supervised-embeddings":
            u = sum(x[m] for m in range(place + 1))
        mentioned = {e for m in range(place + 1) for e in range(E) if mentions[m, e]}
        for i, vector in enumerate(candidate_vectors):
            logits[t, i] = u @ vector
            if c.match_types:
                bits = {type_of(e) for e in entities_in(candidates()[i]) if e in mentioned}
                logits[t, i] += sum(u @ layer("match_types").type_YD.numpy()[y] for y in bits)
        if name == "entity-memma":
            scores = point_in_loops(u, memory, seen[t], mentions, layer("entity_pointer"))
            logits[t] += [sum(scores[e] for e in entities_in(words)) for words in candidates()]
    return logits


def check_equations(name, **settings):
    model = made(name, **settings)
    inputs, answers = batch(model)
    found = to_numpy(model(inputs))
    assert found.shape == (3, 5, C) and found.dtype == np.float32
    for row in range(3):
        expected = dialog_in_loops(model, name, row)
        assert expected.shape == ((answers[row] >= 0).sum(), C)
        assert np.ptp(expected, axis=1).min() > 0.1
        np.testing.assert_allclose(found[row, : len(expected)], expected, rtol=1e-4, atol=1e-4)


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
    [{"positions": False}, {"speaker": False}, {"time": False}, {"speaker": False, "time": False}, {"hops": 0}],
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
    turns, rng = split().dialogs[0]["turns"].tolist(), np.random.default_rng(5)
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


# === Entities ===


@functools.cache
def world():
    """Restaurants with phones, types of more than 8 values, and three prices: a closed type."""
    facts = [(f"place_{i}", "R_phone", f"phone_{i}") for i in range(11)]
    facts += [(f"place_{i}", "R_price", ("cheap", "moderate", "expensive")[i % 3]) for i in range(11)]
    entities = [(fact[0], "R_name", "knowledge") for fact in facts[:11]]
    entities += [(fact[2], "R_phone", "knowledge") for fact in facts[:11]]
    entities += [(price, "R_price", "knowledge") for price in ("cheap", "moderate", "expensive")]
    texts = [f"here is {place}" for place, *_ in facts[:11]] + [f"call {phone}" for *_, phone in facts[:11]]
    texts += ["api_call cheap", "api_call expensive", "you are welcome"]
    words = sorted({word for text in texts for word in text.split()})
    # The corpus knows neither the last place nor its phone: both are unknown words.
    known = [word for word in words if not word.endswith("_10")] + ["R_phone", "R_price", "hello", "no", "moderate"]
    return World(Vocabulary(("_EOS_", "_UNK_", *known)), texts, facts, entities)


def logits_of(model, texts):
    speakers = [{"U": 1, "B": 2, "K": 3}[text[0]] for text in texts]
    some = split_of([[text[2:].split() for text in texts]], [speakers], encode=world().encode)
    return to_numpy(model(some.collate([0], model.config.reads, len(world().entities), 1)[0]))[0]


CONVERSATION = [
    *("U hello", "B api_call cheap", "K place_3 R_phone phone_3", "K place_3 R_price cheap"),
    *("K place_6 R_phone phone_6", "K place_6 R_price cheap", "U hello", "B here is place_3", "U no"),
    *("B here is place_6", "U hello"),
]


def swapped(text, pairs):
    return " ".join(pairs.get(word, word) for word in text.split())


def both_ways(*pairs):
    return dict(pairs) | {b: a for a, b in pairs}


@pytest.fixture(scope="module")
def entity_model():
    sizes = {"splits": {"train": DialogSplit(world().encode(["K"]), [])}, "world": world(), "path": "small"}
    settings = DialogTask().model_settings(type("Dataset", (), sizes), {**SMALL, "heads": 2, "hops": 2})
    model = randomised(MODELS["entity-memma"].build(MODELS["entity-memma"].config(**settings)), 4, 0.3)
    set_world(model, world())
    return model


@pytest.mark.parametrize("other", [6, 8, 10], ids=["mentioned", "not mentioned", "unknown word"])
def test_entity_memma_knows_no_entity_by_its_name(entity_model, other):
    """Where two restaurants change their names and phones, the logits of all candidates follow: also where one of
    them is of no word that training knew."""
    pairs = both_ways(("place_3", f"place_{other}"), ("phone_3", f"phone_{other}"))
    texts = world().candidates
    order = [texts.index(swapped(text, pairs)) for text in texts]
    assert sum(i != n for n, i in enumerate(order)) == 4
    found = logits_of(entity_model, CONVERSATION)
    changed = logits_of(entity_model, [swapped(text, pairs) for text in CONVERSATION])
    np.testing.assert_allclose(changed[:, order], found, rtol=1e-4, atol=1e-4)
    # It matters once one of them has been offered: the two have other scores, as other things were said of them.
    places = [texts.index(f"here is place_{i}") for i in (3, other)]
    assert np.abs(found[2:, places[0]] - found[2:, places[1]]).min() > 1e-3


def test_entity_memma_reads_values_of_closed_types_as_they_are(entity_model):
    pairs = both_ways(("cheap", "expensive"))
    texts = world().candidates
    order = [texts.index(swapped(text, pairs)) for text in texts]
    assert world().open_types == ["R_name", "R_phone"]
    found, changed = (logits_of(entity_model, [swapped(text, p) for text in CONVERSATION]) for p in ({}, pairs))
    assert np.abs(changed[:, order] - found)[1:].max() > 0.01


def test_memma_knows_entities_by_their_names():
    """The counterpart: two words that change places in the whole conversation do not in the logits."""
    sizes = {"splits": {"train": DialogSplit(world().encode(["K"]), [])}, "world": world(), "path": "small"}
    settings = DialogTask().model_settings(type("Dataset", (), sizes), {**SMALL, "heads": 2, "hops": 2})
    model = randomised(MODELS["memma"].build(MODELS["memma"].config(**settings)), 4, 0.3)
    set_world(model, world())
    pairs = both_ways(("place_3", "place_6"), ("phone_3", "phone_6"))
    order = [world().candidates.index(swapped(text, pairs)) for text in world().candidates]
    found, changed = (logits_of(model, [swapped(text, p) for text in CONVERSATION]) for p in ({}, pairs))
    assert np.abs(changed[:, order] - found).max() > 0.01


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
    assert config("memma", time=False, match_types=True).reads == [
        "words",
        "sentences",
        "speakers",
        "turns",
        "mentions",
    ]
    assert config("supervised-embeddings").reads == ["words", "sentences", "speakers", "turns"]
    assert sorted(config("entity-memma").reads) == [
        "mentions",
        "sentences",
        "speakers",
        "times",
        "turns",
        "typed_words",
    ]
    for name in NAMES:
        assert sorted(made(name).input) == sorted(config(name).reads)


def test_memma_defaults_are_the_papers():
    found = dataclasses.asdict(MODELS["memma"].config(V, MAX_WORDS, (C, 1)))
    expected = {"embedding_dim": 128, "divisor": "dimension", "shortcut": "gated", "positions": True, "speaker": True}
    assert {field: found[field] for field in expected} == expected


# === Errors ===


@pytest.mark.parametrize("value", (0, -1))
@pytest.mark.parametrize("field", ("vocabulary_size", "max_words", "embedding_dim", "time_limit"))
@pytest.mark.parametrize("name", NAMES)
def test_config_rejects_sizes(name, field, value):
    with pytest.raises(ValueError, match=f"^{field} must be at least 1. Received: {field}={value}$"):
        config(name, **{field: value})


@pytest.mark.parametrize("name", ("memma", "entity-memma"))
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"divisor": "none"}, r"divisor must be one of \('dimension', 'root'\)\. Received: divisor='none'$"),
        ({"shortcut": "highway"}, r"shortcut must be one of \(.*\)\. Received: shortcut='highway'$"),
        ({"hops": -1}, r"hops must be at least 0\. Received: hops=-1$"),
        ({"heads": 3}, rf"heads must divide embedding_dim\. Received: heads=3, embedding_dim={D}$"),
        ({"heads": 0}, rf"heads must divide embedding_dim\. Received: heads=0, embedding_dim={D}$"),
        ({"heads": -2}, rf"heads must divide embedding_dim\. Received: heads=-2, embedding_dim={D}$"),
    ],
)
def test_memma_config_rejects(name, settings, message):
    with pytest.raises(ValueError, match=message):
        config(name, **settings)


@pytest.mark.parametrize("settings", [{"speaker": False}, {"time": False}, {"match_types": True}])
def test_entity_memma_config_rejects(settings):
    found = {"speaker": True, "time": True, "match_types": False, **settings}
    received = ", ".join(f"{field}={value}" for field, value in found.items())
    with pytest.raises(ValueError, match=rf"has speaker and time and no match_types\. Received: {received}$"):
        config("entity-memma", **settings)


@pytest.mark.parametrize("settings", [{"speaker": True}, {"time": True}])
def test_supervised_embeddings_config_rejects(settings):
    found = {"speaker": False, "time": False, **settings}
    received = ", ".join(f"{field}={value}" for field, value in found.items())
    with pytest.raises(ValueError, match=rf"A bag of words has no features\. Received: {received}$"):
        config("supervised-embeddings", **settings)
