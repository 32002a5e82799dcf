"""Details of single models, beside what test_models_contract.py asserts of all: sizes, limits,
padding, entities.
"""

import functools

import bidaf_models
import dam_models as dam
import dialog_models
import keras
import numpy as np
import pytest
import seq2seq_models as seq2seq
from dam_models import J, T
from gradients import gradients_of
from helpers import randomised, to_numpy
from seq2seq_models import V

from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.optimizers import averaged_weights
from colloquy.engine.settings import build_config
from colloquy.layers.attentive_module import AttentiveModule
from colloquy.models import MODELS
from colloquy.models.bidaf import BiDAF, BiDAFConfig
from colloquy.models.dam import DAM, DAMConfig
from colloquy.models.seq2seq import Seq2Seq, Seq2SeqConfig
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.domain import Domain, Entity
from colloquy.tasks.generation.loss import word_loss
from colloquy.tasks.reading_comprehension import prepare as prepare_reading
from colloquy.tasks.reading_comprehension.data import load_dataset
from colloquy.tasks.reading_comprehension.losses import span_loss
from colloquy.tasks.reading_comprehension.prepare import Settings

# === BiDAF ===

reading = TASKS["reading_comprehension"]


def test_bidaf_has_as_many_weights_as_the_official_code():
    for end_pointer, published in (("paper", 1_610_703), ("official", 2_570_703)):
        model = BiDAF(BiDAFConfig(vocabulary_size=5, characters=7, end_pointer=end_pointer))
        count = sum(int(np.prod(weight.shape)) for weight in model.trainable_variables)
        # The published count leaves out the characters' table and has three biases that a softmax
        # takes away again.
        assert count - 8 * (7 + 1) + 3 == published


def test_words_without_a_vector_get_one_by_how_often_they_occur(prepared_reading, tmp_path):
    raw = prepared_reading.parent / "raw"
    prepare_reading.prepare("squad", raw, tmp_path / "out", Settings(trained_words=7))
    dataset, plain = load_dataset(tmp_path / "out"), load_dataset(prepared_reading)
    new = dataset.vocabulary.words[len(plain.vocabulary) :]
    assert (dataset.trained_words, plain.trained_words) == (len(new), 0)
    assert set(new) == {"ann", "bob", "cyd", "dee", "eve"}
    assert dataset.vocabulary.words[: len(plain.vocabulary)] == plain.vocabulary.words
    prepare_reading.prepare("squad", raw, tmp_path / "most", Settings(trained_words=10**6))
    assert load_dataset(tmp_path / "most").trained_words == 0
    config = build_config(reading, MODELS["bidaf"], dataset, {"train_unknown": True})
    assert config.trained_words == 5


@pytest.mark.slow
def test_averages_are_swapped_in_and_out_exactly():
    model = bidaf_models.fresh()
    inputs, spans = bidaf_models.batch(model)
    optimizer = reading.optimizer(reading.Training(ema=0.5, learning_rate=0.1), 100)
    model.compile(optimizer=optimizer, loss=span_loss, run_eagerly=True)
    fresh = [np.array(v) for v in model.trainable_variables]
    optimizer.build(model.trainable_variables)
    with averaged_weights(model):  # no step has made averages
        for variable, value in zip(model.trainable_variables, fresh, strict=True):
            np.testing.assert_array_equal(np.array(variable), value)
    model.train_on_batch(inputs, spans)
    first = [np.array(v) for v in model.trainable_variables]
    model.train_on_batch(inputs, spans)
    second = [np.array(v) for v in model.trainable_variables]
    with averaged_weights(model):
        for variable, a, b in zip(model.trainable_variables, first, second, strict=True):
            np.testing.assert_allclose(np.array(variable), 0.5 * a + 0.5 * b, atol=1e-6)
    for variable, b in zip(model.trainable_variables, second, strict=True):
        np.testing.assert_array_equal(np.array(variable), b)


# === DAM ===


def test_dam_counts_as_many_parameters_as_the_release():
    """17 blocks of 80,802: 1,398,451 in all; of vectors for biases, 2 x 199 more a block."""
    configs = (
        DAMConfig(vocabulary_size=1, **DAMConfig.release_settings()),
        DAMConfig(vocabulary_size=1),
    )
    found = [DAM(each).count_params() - 2 * 200 for each in configs]
    assert found == [1_398_451, 1_398_451 + 17 * 2 * 199]


@pytest.mark.parametrize("sizes", [{"turns": T + 1}, {"k": J + 1}, {"j": J + 1}])
def test_dam_rejects_long_inputs(sizes):
    with pytest.raises(ValueError, match=r"at most 5 turns of 11 words.*is too long"):
        dam.made()(dam.batch_of(dam.examples(), **sizes))


def test_padding_is_computed_where_xla_compiles_and_where_the_release_counts_it():
    def fast(model):
        parts = model._flatten_layers()
        return [
            (part.fast, part.supports_jit) for part in parts if isinstance(part, AttentiveModule)
        ]

    model, release = dam.fresh(levels=1), dam.fresh(levels=1, masking="release")
    model.jit_compile = False
    assert fast(model) == [(True, False)] * 5
    model.compile(jit_compile=True)
    assert model.jit_compile and fast(model) == fast(release) == [(False, True)] * 5


# === Seq2seq ===


@pytest.mark.parametrize(
    "settings", [{}, pytest.param({"tied_output": True}, marks=pytest.mark.slow)], ids=str
)
def test_seq2seq_leaves_padding_out_in_training(settings):
    """The loss and all gradients are those of all logits, which a model that XLA compiles gives in
    training too.
    """
    model = randomised(seq2seq.fresh(**settings), 1, 0.4)
    inputs, targets = seq2seq.batch(model, more=3)

    def found(training):
        return gradients_of(
            lambda *_: word_loss(targets, model(inputs, training=training)),
            model.trainable_variables,
        )

    (losses, *gradients), (padded_losses, *padded_gradients) = found(True), found(False)
    np.testing.assert_allclose(losses, padded_losses, rtol=1e-5)
    for gradient, padded in zip(gradients, padded_gradients, strict=True):
        np.testing.assert_allclose(gradient, padded, atol=1e-5)
    assert model(inputs, training=True).shape == (64, V + 1)
    model.jit_compile = True
    assert model(inputs, training=True).shape == model(inputs).shape == (*targets.shape, V + 1)


def test_seq2seq_steps_are_the_call_in_half_precision():
    settings = {"attention": "scaled_dot", "tied_output": True}
    model = Seq2Seq(seq2seq.fresh(**settings).config, dtype="mixed_float16")
    model.set_weights(seq2seq.made(**settings).get_weights())
    inputs, _ = seq2seq.batch(model)
    logits = to_numpy(model(inputs))
    states, cache = model.encode(inputs["source"])
    stepped, _, _ = model.step(inputs["target_in"][:, 0], states, cache)
    np.testing.assert_allclose(to_numpy(stepped), logits[:, 0], atol=np.ptp(logits) / 50)


def test_seq2seq_begins_with_the_word_vectors_of_its_setting():
    for start, deviation in (("uniform", 0.1 / 3**0.5), ("normal", 1.0)):
        settings = {"embedding_dim": 20, "hidden": 4, "embedding_start": start}
        vectors = Seq2Seq(Seq2SeqConfig(vocabulary_size=500, **settings)).word_vectors()
        np.testing.assert_allclose(vectors.std(), deviation, rtol=0.05)
        assert (np.abs(vectors).max() <= 0.1) == (start == "uniform")


# === Memory networks ===


@pytest.mark.parametrize(
    ("name", "heads"), [("memma", 2), ("entity-memma", 2), ("memn2n", 1), ("memr", 1)]
)
def test_attention_weights_are_those_of_the_history(name, heads):
    model = dialog_models.made(name)
    inputs, _ = dialog_models.batch(model)
    found = [to_numpy(x) for x in keras.Model(model.input, model.attention_weights)(inputs)]
    assert [x.shape for x in found] == [(3, heads, 5, 12)] * 2
    for row, dialog in enumerate(dialog_models.split().dialogs):
        for t, place in enumerate(dialog["turns"]):
            for weights in found:
                np.testing.assert_allclose(
                    weights[row, :, t].sum(axis=1), float(place > 0), atol=1e-5
                )
                np.testing.assert_array_equal(weights[row, :, t, place:], 0.0)
    assert not dialog_models.made("supervised-embeddings").attention_weights


@functools.cache
def domain():
    """Restaurants with phones, types of more than 8 values, and three prices: a closed type."""
    places, phones = ([f"{name}_{i}" for i in range(11)] for name in ("place", "phone"))
    names = {"R_name": places, "R_phone": phones, "R_price": ["cheap", "moderate", "expensive"]}
    entities = [
        Entity(name, type, "knowledge") for type, of_type in names.items() for name in of_type
    ]
    texts = [*(f"here is {place}" for place in places), *(f"call {phone}" for phone in phones)]
    texts += ["api_call cheap", "api_call expensive", "you are welcome"]
    sentences = "here is call api_call you are welcome hello no"
    words = [*sentences.split(), "R_phone", "R_price", "cheap", "moderate", "expensive"]
    # The corpus knows neither the last place nor its phone: both are unknown words.
    return Domain(
        Vocabulary(("_EOS_", "_UNK_", *words, *places[:-1], *phones[:-1])), texts, [], entities
    )


def answers_to(model, texts):
    """The logits of a conversation."""
    some = dialog_models.split_of(
        domain(), [[(dialog_models.BY[text[0]], text[2:]) for text in texts]]
    )
    return to_numpy(model(some.collate([0], model.config.reads, len(domain().entities), 1)[0]))[0]


CONVERSATION = [
    *("U hello", "B api_call cheap", "K place_3 R_phone phone_3", "K place_3 R_price cheap"),
    *(
        "K place_6 R_phone phone_6",
        "K place_6 R_price cheap",
        "U hello",
        "B here is place_3",
        "U no",
    ),
    *("B here is place_6", "U hello"),
]


def swapped(text, pairs):
    return " ".join(pairs.get(word, word) for word in text.split())


def both_ways(*pairs):
    return dict(pairs) | {b: a for a, b in pairs}


@functools.cache
def knowing(name):
    """A model with random weights that knows the domain."""
    settings = {
        **domain().tables.required_fields,
        "max_words": 16,
        **dialog_models.SMALL,
        "heads": 2,
        "hops": 2,
    }
    if name == "entity-memma":
        settings["templates"] = len(domain().tables.templates)
    model = randomised(MODELS[name].build(MODELS[name].config(**settings)), 4, 0.3)
    domain().tables.put_into(model)
    return model


def changes_with(model, pairs):
    """The logits of the conversation, and those where words have changed places, in the order of
    the first.
    """
    texts = domain().candidates
    order = [texts.index(swapped(text, pairs)) for text in texts]
    found, changed = (
        answers_to(model, [swapped(text, p) for text in CONVERSATION]) for p in ({}, pairs)
    )
    return found, changed[:, order]


@pytest.mark.parametrize("other", [6, 8, 10], ids=["mentioned", "not mentioned", "unknown word"])
def test_entity_memma_knows_no_entity_by_its_name(other):
    """Where two restaurants change their names and phones, the logits of all candidates follow:
    also where one of them is of no word that training knew."""
    pairs, texts = (
        both_ways(("place_3", f"place_{other}"), ("phone_3", f"phone_{other}")),
        domain().candidates,
    )
    assert sum(swapped(text, pairs) != text for text in texts) == 4
    found, changed = changes_with(knowing("entity-memma"), pairs)
    np.testing.assert_allclose(changed, found, rtol=1e-4, atol=1e-4)
    # It matters once one of them has been offered: the two have other scores, as other things were
    # said of them.
    places = [texts.index(f"here is place_{i}") for i in (3, other)]
    assert np.abs(found[2:, places[0]] - found[2:, places[1]]).min() > 1e-3


def test_values_of_closed_types_and_without_pointers_all_entities_are_words_like_others():
    assert list(domain().open_types) == ["R_name", "R_phone"]
    found, changed = changes_with(knowing("entity-memma"), both_ways(("cheap", "expensive")))
    assert np.abs(changed - found)[1:].max() > 0.01
    found, changed = changes_with(
        knowing("memma"), both_ways(("place_3", "place_6"), ("phone_3", "phone_6"))
    )
    assert np.abs(changed - found).max() > 0.01
