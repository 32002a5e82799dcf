"""`models.dam` against loops from the paper (Zhou et al. 2018)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from dam_models import (
    CANDIDATES,
    LEXICAL,
    TURNS,
    VARIANTS,
    B,
    D,
    J,
    N,
    T,
    V,
    batch_of,
    config,
    dam,
    dam_in_loops,
    examples,
    ids_of,
    inputs_of,
)
from helpers import set_random_weights, to_numpy

from models.dam import DAM, release_settings

# === Equations ===


@pytest.mark.parametrize(
    "variant, settings",
    [
        *((variant, {}) for variant in VARIANTS),
        ("full", {"positional": True}),
        ("last", {"scalar_bias": True, "response_rows": True}),
        ("self", LEXICAL),
    ],
)
def test_dam_matches_equations(variant, settings):
    model, some = dam(variant, **settings), examples(ids_of(settings))[:B]
    logits = to_numpy(model(inputs_of(model, some)))
    assert logits.shape == (B, N) and logits.dtype == np.float32
    for b, (turns, responses) in enumerate(some):
        for n, response in enumerate(responses):
            expected = dam_in_loops(turns, response, model, np.sqrt(D))
            assert logits[b, n] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_dam_matches_release(variant):
    """Every axis has the largest size, and padded words count."""
    model = dam(variant, **release_settings(variant))
    batch = batch_of(examples()[1:2], turns=T, k=J, j=J)
    logits = to_numpy(model(batch))
    for n in range(N):
        expected = dam_in_loops(batch["turns"][0], batch["responses"][0, n], model, np.sqrt(200))
        assert logits[0, n] == pytest.approx(expected, abs=1e-5)


def test_dam_release_is_exact_without_padding():
    sizes = {
        "max_turns": 5,
        "max_words": 5,
        "levels": 1,
    }  # 5, 2, 1 cells: never 1 left over in front of a pooling
    rng = np.random.default_rng(3)
    batch = {"turns": rng.integers(1, V + 1, (B, 5, 5)), "responses": rng.integers(1, V, (B, N, 5))}
    exact, release = (dam(**sizes, masking=masking) for masking in ("exact", "release"))
    np.testing.assert_allclose(to_numpy(release(batch)), to_numpy(exact(batch)), atol=1e-5)


# === Padding ===


@pytest.mark.parametrize(
    "variant, settings", [*((v, {}) for v in VARIANTS), ("full", {"positional": True}), ("self", LEXICAL)]
)
def test_dam_ignores_padding(variant, settings):
    model, some = dam(variant, **settings), examples(ids_of(settings))
    alone = np.array(
        [
            [to_numpy(model(inputs_of(model, [(turns, [response])]))).item() for response in responses]
            for turns, responses in some
        ]
    )
    differences = np.abs(np.subtract.outer(alone.ravel(), alone.ravel()))
    assert differences[~np.eye(differences.shape[0], dtype=bool)].min() > 1e-3
    for sizes in [
        {},  # a padded batch, other candidates beside it
        {"turns": T},
        {"k": 9},
        {"k": J},
        {"j": J},
        {"candidates": 5},
        {"turns": T, "k": J, "candidates": 5, "j": J},
    ]:
        found = to_numpy(model(inputs_of(model, some, **sizes)))
        np.testing.assert_allclose(found[:, :N], alone, atol=1e-5)
        nothing = model.get_layer("aggregation").b3.numpy()[0]  # a response without a word
        np.testing.assert_allclose(found[:, N:], nothing, atol=1e-5)
    for (turns, responses), row in zip(some, alone, strict=True):
        backwards = to_numpy(model(inputs_of(model, [(turns, responses[::-1])])))[0, ::-1]
        np.testing.assert_allclose(backwards, row, atol=1e-5)


@pytest.mark.parametrize("T, K, J", [(3, 6, 9), (5, 7, 11), (4, 8, 10)])
def test_dam_predicts_batches_of_one_shape_as_it_computes_them(T, K, J):
    """A graph for known shapes: TensorFlow joins operations in it that it leaves alone elsewhere."""
    rng, model = np.random.default_rng(0), set_random_weights(DAM(config()), 1)
    batch = {"turns": rng.integers(1, V + 1, (B, T, K)), "responses": rng.integers(1, V + 1, (B, N, J))}
    np.testing.assert_allclose(model.predict_on_batch(batch), to_numpy(model(batch)), atol=1e-5)


def test_dam_scores_depend_on_every_real_word():
    """The counterpart of the test above: what is no padding does count."""
    context, (response, *_) = examples()[0]
    some = [(context, [response])]
    for i, ids in enumerate([*context, response]):
        for k in range(len(ids)):
            *turns, last = changed = [[*ids] for ids in [*context, response]]
            changed[i][k] = ids[k] % V + 1
            some.append((turns, [last]))
    logits = to_numpy(dam()(batch_of(some)))[:, 0]
    assert len(logits) == 1 + sum(TURNS[0]) + CANDIDATES[0][0]
    assert np.abs(logits[1:] - logits[0]).min() > 1e-5


# === Training ===


@pytest.mark.parametrize(
    "variant, settings",
    [*((v, {}) for v in VARIANTS), ("full", {"positional": True}), ("self", LEXICAL)],
)
def test_dam_trains_every_weight(variant, settings):
    model = dam(variant, **settings)
    batch = inputs_of(model, examples(ids_of(settings)), turns=T, k=J, candidates=5, j=J)
    labels = np.arange(len(TURNS) * 5).reshape(-1, 5) % 2
    with tf.GradientTape() as tape:
        loss = keras.losses.BinaryCrossentropy(from_logits=True)(labels, model(batch))
    gradients = tape.gradient(loss, model.trainable_variables)
    assert {w.name for w in model.non_trainable_weights} == ({"idf"} if model.config.lexical else set())
    for weight, gradient in zip(model.trainable_variables, gradients, strict=True):
        values = tf.convert_to_tensor(gradient).numpy()
        assert np.isfinite(values).all(), weight.path
        assert np.abs(values).max() > 1e-6, weight.path
    table = tf.convert_to_tensor(gradients[[w.name for w in model.trainable_weights].index("embeddings")])
    assert not table.numpy()[0].any()  # padding


def test_dam_trains_no_frozen_embedding():
    model = dam("first", train_embedding=False)
    assert {w.path for w in model.weights} - {w.path for w in model.trainable_weights} == {"word_embedding/embeddings"}


@pytest.mark.parametrize(
    "variant", [pytest.param(name, marks=[] if name == "full" else pytest.mark.slow) for name in VARIANTS]
)
def test_dam_learns_one_batch(variant):
    keras.utils.set_random_seed(0)
    model, optimizer = DAM(config(variant, levels=1)), keras.optimizers.Adam(0.03)
    loss_of = keras.losses.BinaryCrossentropy(from_logits=True)
    batch = batch_of([(turns, responses[:2]) for turns, responses in examples()])
    labels, losses = np.array([[0, 1], [1, 0], [0, 1]]), [1.0]
    while losses[-1] > 0.02 and len(losses) < 40:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(batch))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        losses.append(float(loss))
    assert losses[1] == pytest.approx(np.log(2), abs=0.01)  # small weights: it starts undecided
    assert losses[-1] < 0.02


def test_dam_drops_features_in_training_alone():
    dropping = dam("first", embedding_dropout=0.5)
    batch = batch_of(examples())
    np.testing.assert_array_equal(to_numpy(dropping(batch)), to_numpy(dam("first")(batch)))
    trained = to_numpy(dropping(batch, training=True))
    assert np.abs(trained - to_numpy(dropping(batch))).max() > 0.01
