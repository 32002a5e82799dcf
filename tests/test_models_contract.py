"""Every model computes its article's equations and loss, ignores padding, learns, and keeps Keras's
contract.
"""

import functools
import json
import types

import bidaf_models
import dam_models
import dialog_models
import keras
import numpy as np
import pytest
import seq2seq_models
import tensorflow as tf
from helpers import to_numpy

from colloquy.models import MODELS
from colloquy.models.configured import ConfiguredModel
from colloquy.tasks import TASKS


def dialog(name):
    """The cases of one model of dialog."""
    own = {
        part: functools.partial(getattr(dialog_models, part), name)
        for part in ("fresh", "made", "config")
    }
    rest = {
        part: getattr(dialog_models, part)
        for part in ("batch", "real", "loss_in_loops", "DROPPING")
    }
    rest |= {
        "in_loops": lambda model, row: dialog_models.in_loops(model, name, row),
        "EXAMPLES": dialog_models.ANSWERS,
    }
    return types.SimpleNamespace(**own, **rest)


HELPERS = {name: dialog(name) for name in dialog_models.NAMES}
HELPERS |= {"bidaf": bidaf_models, "dam": dam_models, "seq2seq": seq2seq_models}
EQUATIONS = {
    "bidaf": bidaf_models.VARIANTS,
    "dam": dam_models.VARIANTS,
    "seq2seq": seq2seq_models.VARIANTS,
    "memma": [
        {},
        {
            **{"match_types": True, "encoding": "position", "heads": 1},
            **{"divisor": "root", "scale_words": True},
        },
        {"encoding": "attention", "shortcut": "identity"},
        {"speaker": False, "shortcut": "none", "gate": "sigmoid", "positions": "none"},
        {"memory": "latest"},
        {"memory": "latest", "time": False, "shortcut": "identity", "hops": 3},
        {"speaker": False, "time": False, "gate": "sigmoid", "positions": "halves"},
        {"hops": 0},
        {"scale_words": True},
    ],
    "entity-memma": [
        {},
        {"encoding": "position"},
        {"encoding": "attention", "scale_words": True},
        # Only sums of words have positions.
        {"positions": "interleaved", "shortcut": "identity", "divisor": "root"},
    ],
    "memn2n": [
        {},
        {"gated": True, "match_types": True},
        {"encoding": "position", "speaker": False},
        {"encoding": "attention", "speaker": False, "time": False},
        {"hops": 1},
    ],
    "memr": [{}, {"match_types": True}],
    "supervised-embeddings": [{}, {"match_types": True}],
}
"""Settings of each model that its equations are compared under: each switch occurs once."""


def each(settings_by_model):
    """Returns a decorator with a case for each setting of each model; the first two are fast."""
    cells = []
    for name, all_settings in settings_by_model.items():
        for place, settings in enumerate(all_settings):
            marks = [pytest.mark.slow] if place >= 2 else []
            cells.append(pytest.param(name, settings, id=f"{name} {settings}", marks=marks))
    return pytest.mark.parametrize(("name", "settings"), cells)


every_model = pytest.mark.parametrize("name", EQUATIONS)
two_fast_models = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("memma", "seq2seq") else pytest.mark.slow)
        for name in EQUATIONS
    ],
)


def rows_of(helpers):
    return range(len(getattr(helpers, "EXAMPLES", dam_models.TURNS)))


def loss_of(name):
    task = TASKS[MODELS[name].task]
    return task.loss(task.Training())


def values_and_gradients(model, name, inputs, targets):
    """Logits, their loss, and its gradient for each trainable weight."""
    with tf.GradientTape() as tape:
        logits = model(inputs)
        if name == "dam":  # whose labels are not padded
            logits = logits[:, : dam_models.N]
        loss = tf.reduce_mean(loss_of(name)(targets, logits))
    weights = [weight.value for weight in model.trainable_weights]
    return logits, loss, tape.gradient(loss, weights)


# === Equations and gradients ===


@each(EQUATIONS)
def test_matches_its_article_however_padded_and_trains_every_weight(name, settings):
    """The network of each example alone, in loops over the equations, the loss of all, and a
    gradient for each weight.
    """
    helpers = HELPERS[name]
    model = helpers.made(**settings)
    if name == "memma" and model.config.encoding == "sum":
        # The loops take the positions and the scale from the layer.
        words = model.get_layer("bag_of_words")
        scale = model.config.embedding_dim**0.5 if model.config.scale_words else 1.0
        assert words.positions == model.config.positions
        assert words.scale == scale
    inputs, targets = helpers.batch(model, more=3)
    logits, loss, gradients = values_and_gradients(model, name, inputs, targets)
    all_expected = [helpers.in_loops(model, row) for row in rows_of(helpers)]
    for row, expected in enumerate(all_expected):
        computed = helpers.real(to_numpy(logits)[row], row)
        assert computed.shape == expected.shape
        assert expected.size < 3 or np.ptp(expected, axis=-1).min() > 1e-3
        np.testing.assert_allclose(computed, expected, rtol=1e-4, atol=1e-4)
    assert float(loss) == pytest.approx(helpers.loss_in_loops(all_expected), rel=1e-4)
    counts_padding = settings.get("tied_output") or settings.get("masking") == "release"
    check_gradients(model, name, gradients, counts_padding)


def check_gradients(model, name, gradients, counts_padding):
    """They are dense (see `layers.word_embedding`) and not zero; padding gets none."""
    kept = {weight.path for weight in model.non_trainable_weights if weight.dtype == "float32"}
    assert kept <= ({"word_embedding/embeddings"} if name == "bidaf" else {"lexical_match/idf"})
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        assert isinstance(gradient, tf.Tensor), weight.path
        values = gradient.numpy()
        assert np.isfinite(values).all(), weight.path
        if weight.name == "b2" and weight.shape == (1,):
            continue  # the layer norm after it takes a scalar bias away
        assert np.abs(values).max() > 1e-8, weight.path
        if weight.name == "embeddings" and not counts_padding:
            np.testing.assert_array_equal(values[0], 0.0)
        if weight.name == "speakers":  # padding; the user, the bot, the knowledge
            assert (np.abs(values).max(axis=1) > 1e-6).tolist() == [False, True, True, True]
        if weight.name == "times":  # facts before the first turn are of that turn
            assert (np.abs(values).max(axis=1) > 1e-6).all()


@two_fast_models
def test_drops_in_training_alone(name):
    helpers = HELPERS[name]
    whole = helpers.made()
    frozen = {"train_embedding": False} if name in dialog_models.NAMES else {}
    model = helpers.fresh(**helpers.DROPPING, **frozen)
    if frozen:  # word vectors
        trained = {weight.path for weight in model.trainable_weights}
        vectors = {weight.path for weight in model.weights if weight.name == "embeddings"}
        assert vectors and trained == {weight.path for weight in whole.trainable_weights} - vectors
    for layer in whole.layers:
        model.get_layer(layer.name).set_weights(layer.get_weights())
    inputs, targets = helpers.batch(model)

    def losses(model, training):
        return to_numpy(loss_of(name)(targets, model(inputs, training=training)))

    expected = losses(whole, False)
    np.testing.assert_allclose(losses(model, False), expected, atol=1e-5)
    keras.utils.set_random_seed(1)
    first = losses(model, True)
    second = losses(model, True)
    assert np.abs(first - expected).max() > 0.01
    assert np.abs(first - second).max() > 0.01


@pytest.mark.slow
@every_model
def test_learns_one_batch(name):
    helpers = HELPERS[name]
    keras.utils.set_random_seed(2)
    smaller = {}
    if name == "dam":
        smaller["levels"] = 1
    if "hops" in MODELS[name].config.model_fields:
        smaller["hops"] = 1
    if name == "memma":  # the article's positions are ten times as large as fresh word vectors
        smaller["positions"] = "halves"
    model = helpers.fresh(**smaller)
    optimizer = keras.optimizers.Adam(0.02)
    optimizer.build(model.trainable_variables)
    inputs, targets = helpers.batch(model)

    @functools.partial(tf.function, autograph=False)
    def step():
        _, loss, gradients = values_and_gradients(model, name, inputs, targets)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    losses = [float(step())]
    while losses[-1] > 0.05 and len(losses) < 300:
        losses.append(float(step()))
    undecided = []
    for row in rows_of(helpers):
        undecided.append(np.zeros_like(helpers.in_loops(model, row)))
    assert losses[0] == pytest.approx(helpers.loss_in_loops(undecided), abs=1.0)  # small weights
    assert losses[-1] <= 0.05


# === Saving and precision ===


def policies_of(model):
    return [
        layer.dtype_policy.name
        for layer in model.layers
        if not isinstance(layer, keras.layers.InputLayer)
    ]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras 3.15
@two_fast_models
def test_saves_and_loads_in_half_precision(name, tmp_path):
    """Class, config, name, dtype policy and outputs, whatever policy is the global one by then;
    the outputs are near those of float32.
    """
    helpers = HELPERS[name]
    exact = helpers.made()
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = helpers.fresh()
    keras.config.set_dtype_policy("float32")
    model.set_weights(exact.get_weights())
    inputs, _ = helpers.batch(model)
    logits = model(inputs)
    check_half_precision(model, name, logits, exact(inputs))

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert type(loaded) is type(model) is MODELS[name].build
    assert isinstance(loaded, ConfiguredModel)
    assert loaded.config == model.config and loaded.name == model.name
    assert loaded.get_config() == json.loads(json.dumps(model.get_config()))
    assert policies_of(loaded) == policies_of(model)
    assert model.get_config()["dtype"] == "mixed_bfloat16"
    np.testing.assert_array_equal(to_numpy(loaded(inputs)), to_numpy(logits))
    assert keras.config.dtype_policy().name == "float32"


def check_half_precision(model, name, logits, expected_logits):
    helpers = HELPERS[name]
    assert {str(weight.dtype) for weight in model.weights} <= {"float32", "int32", "uint32"}
    is_half = name == "seq2seq"
    dtype = model.dtype_policy.compute_dtype if is_half else "float32"
    assert keras.backend.standardize_dtype(logits.dtype) == dtype
    for row in rows_of(helpers):
        computed = helpers.real(to_numpy(logits)[row], row)
        expected = helpers.real(to_numpy(expected_logits)[row], row)
        assert 0 < np.abs(computed - expected).max() < max(np.ptp(expected), 1.0) / 10


# === Configs ===

SIZES = (
    "vocabulary_size",
    "embedding_dim",
    "hidden",
    "heads",
    "layers",
    "max_words",
    "max_turns",
    "characters",
)


def valid(name):
    if name in dialog_models.NAMES:
        return dialog_models.config(name)
    return MODELS[name].config(**HELPERS[name].SIZES)


RULES = [
    ("bidaf", {"use_characters": False, "use_words": False}, "must not both be False"),
    ("bidaf", {"train_unknown": True, "use_words": False}, "needs use_words=True"),
    ("dam", {"hashed_words": 3, "unknown_id": 0}, "expect an unknown_id.*unknown_id=0"),
    ("dam", {"hashed_words": 3, "unknown_id": 38}, "unknown_id=38"),
    ("seq2seq", {"hidden": 7}, "even to be halved.*hidden=7"),
    ("memma", {"heads": 3}, "must divide embedding_dim.*heads=3, embedding_dim=14"),
    ("entity-memma", {"match_types": True}, "match_types"),
    ("supervised-embeddings", {"time": True}, "time"),
]


def test_config_rejects_what_does_not_go_together():
    for name, changes, message in RULES:
        with pytest.raises(ValueError, match=message):
            valid(name).replace(**changes)


@every_model
def test_config_rejects_wrong_values(name):
    """Each field a text that is no choice and a negative number, sizes 0, dropouts 1; the message
    names the field.
    """
    config = valid(name)
    for field in type(config).model_fields:
        for value in ["no", -1, *[0] * (field in SIZES), *[1.0] * field.endswith("dropout")]:
            with pytest.raises(ValueError, match=rf"(?s)\n{field}(\.\w+)?\n"):
                config.replace(**{field: value})
