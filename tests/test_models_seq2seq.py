"""`models.seq2seq`: what each word is scored by, against its layers and loops; training, saving, sizes."""

import functools
import json
import typing

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import randomised, to_numpy

from models.seq2seq import Seq2Seq, Seq2SeqConfig
from tasks.generation.scoring import word_loss

V, E, H = 13, 7, 22  # words, features of a word, units: halved, a prime
BEGIN = V + 1
SMALL = {"vocabulary_size": V, "embedding_dim": E, "hidden": H, "dropout": 0.0}
ATTENTIONS = typing.get_args(Seq2SeqConfig.model_fields["attention"].annotation)
VARIANTS = [
    *({"attention": attention} for attention in ATTENTIONS),
    {"cell": "lstm", "layers": 2, "merge": "sum"},
    {"shared_embedding": False, "bidirectional": False},
    {"tied_output": True},
    {"attention": "dot", "output": "all", "tied_output": True},
    {"attention": "none", "output": "all"},
]
# Sources of 2 to 5 words and targets of 1 to 4, `_EOS_` (1) included.
PAIRS = [([3, 4, 1], [7, 8, 1]), ([5, 1], [9, 1]), ([6, 3, 10, 5, 1], [8, 7, 9, 1]), ([4, 4, 6, 1], [1])]


def padded(lists):
    width = max(map(len, lists))
    return np.array([ids + [0] * (width - len(ids)) for ids in lists], "int32")


def batch(pairs):
    """The model's inputs, and the targets."""
    sources, targets = zip(*pairs, strict=True)
    before = [[BEGIN, *target[:-1]] for target in targets]
    return {"source": padded(sources), "target_in": padded(before)}, padded(targets)


def fresh(**settings):
    return Seq2Seq(Seq2SeqConfig(**{**SMALL, **settings}))


def made(**settings):
    return randomised(fresh(**settings), 1, 0.4)


def tables(model):
    return [layer for layer in model.layers if layer.name.endswith("_embedding")]


# === What is computed ===


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_seq2seq_ignores_padding(settings):
    model = made(**settings)
    logits = to_numpy(model(batch(PAIRS)[0]))
    assert logits.shape == (4, 4, V + 1)
    for row in (0, 1):
        pair, found = PAIRS[row], logits[row]
        alone = to_numpy(model(batch([pair])[0]))[0]
        assert len(alone) == len(pair[1]) and np.ptp(alone, axis=1).min() > 0.5
        np.testing.assert_allclose(found[: len(alone)], alone, atol=1e-5)


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_seq2seq_scores_a_word_by_the_source_and_the_words_before(settings):
    """One word of the source or of the target is another one in each row but the first."""
    inputs = {name: np.repeat(ids, 10, axis=0) for name, ids in batch(PAIRS[2:3])[0].items()}
    for row in range(1, 10):
        name, place = ("target_in", row - 1) if row < 5 else ("source", row - 5)
        inputs[name][row, place] = 11
    before, *after = to_numpy(made(**settings)(inputs))
    for row, changed in enumerate(after, 1):
        moved = np.abs(changed - before).max(axis=1)
        first = row - 1 if row < 5 else 0
        assert (moved[first:] > 1e-4).all() and (moved[:first] < 1e-6).all()


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_seq2seq_steps_are_the_call(settings):
    model = made(**settings)
    assert model.begin_id == BEGIN
    inputs, _ = batch(PAIRS)
    logits = to_numpy(model(inputs))
    states, cache = model.encode(inputs["source"])
    for t in range(4):
        found, states, weights = model.step(inputs["target_in"][:, t], states, cache)
        for b, (source, target) in enumerate(PAIRS):
            if t < len(target):
                np.testing.assert_allclose(to_numpy(found)[b], logits[b, t], atol=1e-5)
                if weights is not None:
                    np.testing.assert_allclose(to_numpy(weights)[b, : len(source)].sum(), 1.0, rtol=1e-5)
        assert (weights is None) == (settings.get("attention") == "none")


def test_seq2seq_shares_word_vectors():
    """One table for source and target, or two, each moving what it stands for."""
    inputs, _ = batch(PAIRS[:1])
    for shared, names in ((True, ["word_embedding"]), (False, ["source_embedding", "word_embedding"])):
        model = made(shared_embedding=shared)
        assert sorted(layer.name for layer in tables(model)) == names
        assert all(tuple(layer.embeddings.shape) == (V + 2, E) for layer in tables(model))
        states, before = to_numpy(model.encode(inputs["source"])[0][0]), to_numpy(model(inputs))
        table = model.get_layer("word_embedding")
        table.set_weights([-table.get_weights()[0]])
        assert (np.abs(to_numpy(model.encode(inputs["source"])[0][0]) - states).max() > 0.01) == shared
        assert np.abs(to_numpy(model(inputs)) - before).max() > 0.01


def test_word_vectors_begin_small_or_normal():
    """Source and target words of a model with two tables begin with different numbers."""
    for start, deviation in (("uniform", 0.1 / 3**0.5), ("normal", 1.0)):
        model = Seq2Seq(
            Seq2SeqConfig(
                vocabulary_size=500, embedding_dim=20, hidden=4, shared_embedding=False, embedding_start=start
            )
        )
        source, target = (layer.get_weights()[0] for layer in tables(model))
        np.testing.assert_allclose([source.std(), target.std()], deviation, rtol=0.05)
        assert np.abs(source - target).max() > 0.1
        assert (np.abs(source).max() <= 0.1) == (start == "uniform")


def test_seq2seq_ties_the_logits_to_the_word_vectors():
    model = made(tied_output=True)
    seen = keras.Model(model.inputs, model.get_layer("projection").output)
    inputs, _ = batch(PAIRS)
    table = model.get_layer("word_embedding").get_weights()[0]
    expected = np.einsum("bte,ve->btv", to_numpy(seen(inputs)), table[: V + 1])
    np.testing.assert_allclose(to_numpy(model(inputs)), expected, atol=1e-4)


def test_seq2seq_drops_in_training_only():
    inputs, _ = batch(PAIRS)
    model = made(dropout=0.5)
    found = to_numpy(model(inputs))
    np.testing.assert_array_equal(to_numpy(model(inputs, training=False)), found)
    np.testing.assert_allclose(found, to_numpy(made()(inputs)), atol=1e-6)
    assert np.abs(to_numpy(model(inputs, training=True)) - found).max() > 0.01


# === Training ===


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_seq2seq_trains_every_weight(settings):
    model = made(**settings)
    inputs, targets = batch(PAIRS)
    with tf.GradientTape() as tape:
        value = tf.reduce_mean(word_loss()(targets, model(inputs)))
    variables = model.trainable_variables
    of_decoder = {weight.path for layer in model.get_layer("decoder").stack for weight in layer.trainable_weights}
    assert of_decoder and of_decoder <= {variable.path for variable in variables}
    for weight, gradient in zip(variables, tape.gradient(value, [v.value for v in variables]), strict=True):
        assert isinstance(gradient, tf.Tensor), weight.path  # no IndexedSlices, see `layers.word_embedding`
        assert np.isfinite(gradient.numpy()).all() and np.abs(gradient.numpy()).max() > 1e-5, weight.path
        if weight.name == "embeddings" and not settings.get("tied_output"):
            np.testing.assert_array_equal(gradient.numpy()[0], 0.0)  # padding


@pytest.mark.parametrize("attention", ("additive", "general"))
def test_seq2seq_learns_one_batch(attention):
    keras.utils.set_random_seed(0)
    model, optimizer = fresh(attention=attention), keras.optimizers.Adam(0.03)
    optimizer.build(model.trainable_variables)
    inputs, targets = batch(PAIRS)

    @functools.partial(tf.function, autograph=False)
    def step():
        with tf.GradientTape() as tape:
            value = tf.reduce_mean(word_loss()(targets, model(inputs)))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(value, [v.value for v in variables]), variables)
        return value

    losses = [float(step()) for _ in range(50)]
    assert losses[0] == pytest.approx(np.log(V + 1), abs=0.2)  # small weights: it starts undecided
    assert losses[-1] < 0.02
    predicted = to_numpy(model(inputs)).argmax(axis=2)
    np.testing.assert_array_equal(predicted[targets > 0], targets[targets > 0])


@pytest.mark.parametrize("shared", (True, False))
def test_seq2seq_leaves_frozen_word_vectors_as_they_are(shared):
    model = made(train_embedding=False, shared_embedding=shared)
    trained = {weight.path for weight in model.trainable_variables}
    frozen = {layer.embeddings.path for layer in tables(model)}
    assert len(frozen) == 2 - shared and not frozen & trained
    assert len(trained | frozen) == len(made(shared_embedding=shared).trainable_variables)


# === Saving and precision ===


@pytest.mark.parametrize("settings", VARIANTS[:2] + VARIANTS[4:], ids=str)
def test_seq2seq_saves_and_loads(settings, tmp_path):
    model = made(**settings)
    inputs, _ = batch(PAIRS)
    again = Seq2Seq.from_config(json.loads(json.dumps(model.get_config())))
    assert again.config == model.config == Seq2SeqConfig(**{**SMALL, **settings}) and again.name == model.name
    assert np.abs(to_numpy(again(inputs)) - to_numpy(model(inputs))).max() > 0.1
    model.save_weights(tmp_path / "model.weights.h5")
    again.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(to_numpy(again(inputs)), to_numpy(model(inputs)))


def test_seq2seq_is_saved_in_one_file(tmp_path):
    model = made()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert type(loaded) is Seq2Seq and loaded.config == model.config
    inputs, _ = batch(PAIRS)
    np.testing.assert_array_equal(to_numpy(loaded(inputs)), to_numpy(model(inputs)))


@pytest.mark.parametrize("settings", [{}, {"attention": "scaled_dot", "tied_output": True}], ids=str)
@pytest.mark.parametrize("policy", ("mixed_float16", "mixed_bfloat16"))
def test_seq2seq_in_half_precision_is_near_float32(settings, policy):
    exact = made(**settings)
    keras.config.set_dtype_policy(policy)  # tests/conftest.py sets it back
    model = fresh(**settings)
    model.set_weights(exact.get_weights())
    inputs, _ = batch(PAIRS)
    logits, expected = model(inputs), to_numpy(exact(inputs))
    assert keras.backend.standardize_dtype(logits.dtype) == policy.removeprefix("mixed_")
    found = to_numpy(keras.ops.cast(logits, "float32"))
    assert 0 < np.abs(found - expected).max() < np.ptp(expected) / 20
    states, cache = model.encode(inputs["source"])
    stepped, _, _ = model.step(inputs["target_in"][:, 0], states, cache)
    np.testing.assert_allclose(to_numpy(keras.ops.cast(stepped, "float32")), found[:, 0], atol=np.ptp(expected) / 50)


# === Sizes ===


def test_seq2seq_counts_parameters():
    """Bahdanau's model of one layer, then what each setting changes."""
    table, half = (V + 2) * E, H // 2
    reader = 2 * 3 * half * (E + half + 2)
    writer = 3 * H * (E + H + H + 1) + (H + H + 1) * H  # the cell, its attention
    out = (H + 1) * (V + 1)
    sizes = {
        (): table + reader + writer + out,
        ("shared_embedding", False): 2 * table + reader + writer + out,
        ("tied_output", True): table + reader + writer + (H + 1) * E,
        ("merge", "sum"): table + 2 * 3 * H * (E + H + 2) + writer + out,
        ("bidirectional", False): table + 3 * H * (E + H + 2) + writer + out,
        ("attention", "general"): table + reader + 3 * H * (E + H + 2) + H * H + 2 * H * H + out,
        ("attention", "none"): table + reader + 3 * H * (E + H + H + 2) + out,
    }
    for setting, expected in sizes.items():
        model = fresh(**dict([setting] if setting else []))
        assert sum(w.numpy().size for w in model.trainable_variables) == expected, setting


# === Errors ===


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(
            ({field: value}, rf"\n{field}\n.*input_value={value!r}")
            for field, value in (
                ("cell", "rnn"),
                ("merge", "mul"),
                ("attention", "no"),
                *((field, 0) for field in ("vocabulary_size", "embedding_dim", "hidden", "layers")),
                ("dropout", 1.0),
                ("dropout", -0.1),
            )
        ),
        ({"hidden": 7}, r"hidden must be even to be halved by merge=concat\. Received: hidden=7"),
    ],
)
def test_seq2seq_config_rejects(settings, message):
    with pytest.raises(ValueError, match=message):
        Seq2SeqConfig(**{**SMALL, **settings})


def test_seq2seq_config_takes_odd_sizes_that_are_not_halved():
    for settings in ({"merge": "sum"}, {"bidirectional": False}):
        assert fresh(hidden=7, **settings).get_layer("decoder").units == 7
