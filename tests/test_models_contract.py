"""Every model computes its article's equations and loss, ignores padding, learns, and keeps Keras's
contract.
"""

import functools
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
ENCODINGS = [{"encoding": "position"}, {"encoding": "attention"}]
HOPS = [{"heads": 1, "divisor": "root", "shortcut": "identity"}, {"heads": 2, "shortcut": "none"}]
PLAIN = [{"speaker": False}, {"speaker": False, "time": False}]
CASES = {
    "bidaf": bidaf_models.VARIANTS,
    "dam": dam_models.VARIANTS,
    "seq2seq": seq2seq_models.VARIANTS,
    "memma": [{}, {"match_types": True}, *ENCODINGS, {"memory": "latest"}],
    "entity-memma": [{}, *ENCODINGS, {"dialog_state": True}],
    "memn2n": [{}, {"gated": True}, {"match_types": True}, *ENCODINGS],
    "memr": [{}, {"match_types": True}],
    "supervised-embeddings": [{}, {"match_types": True}],
}
"""The settings of each model that all of the contract is kept with."""
EQUATIONS = {
    **CASES,
    "dam": CASES["dam"] + dam_models.RELEASE,
    "memma": [
        *(CASES["memma"] + HOPS + PLAIN),
        *({"positions": "none"}, {"positions": "halves"}, {"hops": 0}, {"gate": "sigmoid"}),
        {"memory": "latest", "time": False, "shortcut": "identity", "hops": 3},
    ],
    "entity-memma": [
        *CASES["entity-memma"],
        {"positions": "interleaved", "shortcut": "identity", "divisor": "root"},
    ],
    "memn2n": [*CASES["memn2n"], *PLAIN, {"hops": 1}],
}
"""Those that the equations are compared under."""
FIRST = {name: settings[:1] for name, settings in CASES.items()}


def each(cases):
    """A decorator: all settings of each model."""
    cells = []
    for name, settings_of_model in cases.items():
        for settings in settings_of_model:
            cells.append(pytest.param(name, settings, id=f"{name} {settings}"))
    return pytest.mark.parametrize(("name", "settings"), cells)


MODELS_MADE = {}


def shared_model(name, settings):
    """A model with random weights, shared by the tests: do not change it."""
    key = name, repr(settings)
    if key not in MODELS_MADE:
        MODELS_MADE[key] = HELPERS[name].made(**settings)
    return MODELS_MADE[key]


def rows_of(helpers):
    return range(len(getattr(helpers, "EXAMPLES", dam_models.TURNS)))


def loss_of(name):
    task = TASKS[MODELS[name].task]
    return task.loss(task.Training())


def gradients_of(model, name, inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(loss_of(name)(targets, model(inputs)))
    return loss, tape.gradient(loss, [weight.value for weight in model.trainable_weights])


# === Equations ===


@each(EQUATIONS)
def test_matches_its_article(name, settings):
    """The network of each example alone, in loops over the equations, and the loss of all, however
    they are padded.
    """
    helpers = HELPERS[name]
    model = shared_model(name, settings)
    expected = [helpers.in_loops(model, row) for row in rows_of(helpers)]
    for more in (0, 3):
        inputs, targets = helpers.batch(model, more=more)
        logits = model(inputs)
        for row, by_hand in enumerate(expected):
            found = helpers.real(to_numpy(logits)[row], row)
            assert found.shape == by_hand.shape and (
                by_hand.size < 3 or np.ptp(by_hand, axis=-1).min() > 1e-3
            )
            np.testing.assert_allclose(found, by_hand, rtol=1e-4, atol=1e-4)
        if not more or name != "dam":  # whose labels are not padded
            loss = keras.ops.mean(loss_of(name)(targets, logits))
            assert float(loss) == pytest.approx(helpers.loss_in_loops(expected), rel=1e-4)


@each(FIRST)
def test_drops_in_training_alone(name, settings):
    helpers = HELPERS[name]
    whole = shared_model(name, {})
    model = helpers.fresh(**helpers.DROPPING)
    model.set_weights(whole.get_weights())
    inputs, targets = helpers.batch(model)
    np.testing.assert_allclose(to_numpy(model(inputs)), to_numpy(whole(inputs)), atol=1e-5)

    def losses(model, training):
        return to_numpy(loss_of(name)(targets, model(inputs, training=training)))

    expected = losses(whole, False)
    keras.utils.set_random_seed(1)
    first, second = (losses(model, True) for _ in range(2))
    assert np.abs(first - expected).max() > 0.01 and np.abs(first - second).max() > 0.01
    np.testing.assert_allclose(losses(whole, True), expected, atol=1e-6)


# === Training ===


@each(CASES)
def test_trains_every_weight(name, settings):
    """Gradients are dense (see `layers.word_embedding`) and not zero; padding gets none."""
    helpers = HELPERS[name]
    model = shared_model(name, settings)
    inputs, targets = helpers.batch(model)
    _, gradients = gradients_of(model, name, inputs, targets)
    kept = {weight.path for weight in model.non_trainable_weights if weight.dtype == "float32"}
    assert kept <= ({"word_embedding/embeddings"} if name == "bidaf" else {"lexical_match/idf"})
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        assert isinstance(gradient, tf.Tensor), weight.path
        values = gradient.numpy()
        assert np.isfinite(values).all(), weight.path
        if weight.name == "b2" and weight.shape == (1,):
            continue  # the layer norm after it takes a scalar bias away
        assert np.abs(values).max() > 1e-8, weight.path
        if weight.name == "embeddings" and not settings.get("tied_output"):
            np.testing.assert_array_equal(values[0], 0.0)
        if weight.name == "speakers":  # padding; the user, the bot, the knowledge
            assert (np.abs(values).max(axis=1) > 1e-6).tolist() == [False, True, True, True]
        if weight.name == "times":  # facts before the first turn are of that turn
            assert (np.abs(values).max(axis=1) > 1e-6).all()


@pytest.mark.slow
@each(FIRST)
def test_learns_one_batch(name, settings):
    helpers = HELPERS[name]
    keras.utils.set_random_seed(2)
    smaller = (
        {"levels": 1}
        if name == "dam"
        else {"hops": 1}
        if "hops" in MODELS[name].config.model_fields
        else {}
    )
    if name == "memma":  # the article's positions are ten times as large as fresh word vectors
        smaller["positions"] = "halves"
    model, optimizer = helpers.fresh(**smaller, **settings), keras.optimizers.Adam(0.02)
    optimizer.build(model.trainable_variables)
    inputs, targets = helpers.batch(model)

    @functools.partial(tf.function, autograph=False)
    def step():
        loss, gradients = gradients_of(model, name, inputs, targets)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    losses = []
    while not losses or (losses[-1] > 0.05 and len(losses) < 300):
        losses.append(float(step()))
    undecided = helpers.loss_in_loops(
        [0 * helpers.in_loops(model, row) for row in rows_of(helpers)]
    )
    assert losses[0] == pytest.approx(undecided, abs=1.0)  # small weights
    assert losses[-1] <= 0.05


@pytest.mark.parametrize("name", [name for name in CASES if name != "bidaf"])
def test_frozen_word_vectors_stay(name):
    helpers = HELPERS[name]
    model, whole = helpers.fresh(train_embedding=False), helpers.fresh()
    trained, all_of_them = (
        {weight.path for weight in each.trainable_weights} for each in (model, whole)
    )
    frozen = {weight.path for weight in model.weights if weight.name == "embeddings"}
    assert frozen and trained == all_of_them - frozen


# === Saving and precision ===


def policies_of(model):
    return [
        layer.dtype_policy.name
        for layer in model.layers
        if not isinstance(layer, keras.layers.InputLayer)
    ]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras 3.15
@each(FIRST)
def test_saves_and_loads(name, settings, tmp_path):
    """Class, config, name, dtype policy and outputs, whatever policy is the global one by then."""
    helpers = HELPERS[name]
    policy = "mixed_bfloat16"
    keras.config.set_dtype_policy(policy)
    model = helpers.fresh(**settings)
    keras.config.set_dtype_policy("float32")
    model.set_weights(shared_model(name, settings).get_weights())
    inputs, _ = helpers.batch(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert type(loaded) is type(model) is MODELS[name].build
    assert isinstance(loaded, ConfiguredModel)
    assert loaded.config == model.config
    assert loaded.get_config() == model.get_config()
    assert loaded.name == model.name
    assert policies_of(loaded) == policies_of(model)
    assert model.get_config()["dtype"] == policy
    np.testing.assert_array_equal(to_numpy(loaded(inputs)), to_numpy(model(inputs)))
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@each(FIRST)
def test_half_precision_is_near_float32(name, settings, policy):
    helpers = HELPERS[name]
    exact = shared_model(name, settings)
    model = MODELS[name].build(exact.config, dtype=policy)
    model.set_weights(exact.get_weights())
    assert {str(weight.dtype) for weight in model.weights} <= {"float32", "int32", "uint32"}
    inputs, _ = helpers.batch(model)
    logits, expected = model(inputs), to_numpy(exact(inputs))
    dtype = policy.removeprefix("mixed_") if name == "seq2seq" else "float32"
    assert keras.backend.standardize_dtype(logits.dtype) == dtype
    for row in rows_of(helpers):
        one, other = (helpers.real(x[row], row) for x in (to_numpy(logits), expected))
        assert 0 < np.abs(one - other).max() < max(np.ptp(other), 1.0) / 10


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
RULES = [
    ("bidaf", {"use_characters": False, "use_words": False}, "must not both be False"),
    ("bidaf", {"train_unknown": True, "use_words": False}, "needs use_words=True"),
    ("bidaf", {"tuned_words": 3, "use_words": False}, "needs use_words=True"),
    ("bidaf", {"tuned_words": 12}, "at most vocabulary_size=11.*tuned_words=12"),
    ("dam", {"hashed_words": 3, "unknown_id": 0}, "expect an unknown_id.*unknown_id=0"),
    ("dam", {"hashed_words": 3, "unknown_id": 38}, "unknown_id=38"),
    ("seq2seq", {"hidden": 7}, "even to be halved.*hidden=7"),
    ("memma", {"heads": 3}, "must divide embedding_dim.*heads=3, embedding_dim=14"),
    ("entity-memma", {"match_types": True}, "match_types"),
    ("supervised-embeddings", {"time": True}, "time"),
]


def valid(name):
    if name in dialog_models.NAMES:
        return dialog_models.config(name)
    return MODELS[name].config(**HELPERS[name].SIZES)


@pytest.mark.parametrize("name", CASES)
def test_config_rejects_wrong_values(name):
    """Each field a text that is no choice and a negative number, sizes 0, dropouts 1; the message
    names the field.
    """
    config = valid(name)
    for field in type(config).model_fields:
        for value in ["no", -1, *[0] * (field in SIZES), *[1.0] * field.endswith("dropout")]:
            with pytest.raises(ValueError, match=rf"(?s)\n{field}(\.\w+)?\n"):
                config.replace(**{field: value})


@pytest.mark.parametrize(("name", "changes", "message"), RULES, ids=str)
def test_config_rejects_what_does_not_go_together(name, changes, message):
    with pytest.raises(ValueError, match=message):
        valid(name).replace(**changes)
