"""The memory networks of dialog beside what test_models_contract.py asserts: attention weights, inputs, entities."""

import functools

import keras
import numpy as np
import pytest
from dialog_models import SMALL, batch, config, made, split, split_of
from helpers import randomised, to_numpy

from data.vocabulary import Vocabulary
from models import MODELS
from tasks.dialog.data import DialogSplit, World
from tasks.dialog.task import DialogTask


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


def answers_to(model, texts):
    """The logits of a conversation."""
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


@functools.cache
def knowing(name):
    """A model with random weights that knows the world."""
    sizes = {"splits": {"train": DialogSplit(world().encode([["K"]]), [])}, "world": world(), "path": "small"}
    spec, settings = MODELS[name], {**SMALL, "heads": 2, "hops": 2}
    task = DialogTask()
    config, _ = task.configure(spec, type("Dataset", (), sizes), task.divide(spec, settings))
    model = randomised(spec.build(config), 4, 0.3)
    world().put_into(model)
    return model


def changes_with(model, pairs):
    """The logits of the conversation, and those where words have changed places, in the order of the first."""
    texts = world().candidates
    order = [texts.index(swapped(text, pairs)) for text in texts]
    found, changed = (answers_to(model, [swapped(text, p) for text in CONVERSATION]) for p in ({}, pairs))
    return found, changed[:, order]


@pytest.mark.parametrize("other", [6, 8, 10], ids=["mentioned", "not mentioned", "unknown word"])
def test_entity_memma_knows_no_entity_by_its_name(other):
    """Where two restaurants change their names and phones, the logits of all candidates follow: also where one of
    them is of no word that training knew."""
    pairs, texts = both_ways(("place_3", f"place_{other}"), ("phone_3", f"phone_{other}")), world().candidates
    assert sum(swapped(text, pairs) != text for text in texts) == 4
    found, changed = changes_with(knowing("entity-memma"), pairs)
    np.testing.assert_allclose(changed, found, rtol=1e-4, atol=1e-4)
    # It matters once one of them has been offered: the two have other scores, as other things were said of them.
    places = [texts.index(f"here is place_{i}") for i in (3, other)]
    assert np.abs(found[2:, places[0]] - found[2:, places[1]]).min() > 1e-3


def test_values_of_closed_types_and_without_pointers_all_entities_are_words_like_others():
    assert list(world().open_types) == ["R_name", "R_phone"]
    found, changed = changes_with(knowing("entity-memma"), both_ways(("cheap", "expensive")))
    assert np.abs(changed - found)[1:].max() > 0.01
    found, changed = changes_with(knowing("memma"), both_ways(("place_3", "place_6"), ("phone_3", "phone_6")))
    assert np.abs(changed - found).max() > 0.01
