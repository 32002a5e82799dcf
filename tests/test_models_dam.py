"""`models.dam` against loops from the paper (Zhou et al. 2018)."""

import dataclasses
import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import set_random_weights, to_numpy
from reference import aggregate_in_loops, block_in_loops, block_weights, cross_match_in_loops, signal_in_loops
from test_layers_lexical_match import cosine_of_words, match_of_words

from models.dam import DAM, VARIANTS, DAMConfig, release_settings

B, N, T, K, J, D = 2, 3, 5, 7, 11, 13  # batch, candidates, turns, words, words, features
L, V, FILTERS = 2, 37, (17, 19)

# Words of each turn and candidate: a turn of one word, empty turns, a candidate without a word.
TURNS = ((7, 0, 3, 1), (2, 7, 0, 4, 6), (1,))
CANDIDATES = ((11, 1, 4), (5, 9, 0), (2, 8, 3))


LEXICAL = {"lexical": True, "hashed_words": 41, "unknown_id": 2}


def words(rng, counts, ids):
    return [rng.integers(1, ids + 1, count).tolist() for count in counts]


def examples(ids=V):
    """Ragged `(context, candidates)`: lists of turns and of responses, lists of ids from 1 to `ids`."""
    rng = np.random.default_rng(0)
    return [(words(rng, t, ids), words(rng, c, ids)) for t, c in zip(TURNS, CANDIDATES, strict=True)]


def ids_of(settings):
    return V + settings.get("hashed_words", 0)


def batch_of(some, turns=1, k=1, candidates=1, j=1):
    """The model's inputs, of the smallest size that holds `some` and the sizes asked for."""
    T = max([turns, *(len(context) for context, _ in some)])
    N = max([candidates, *(len(responses) for _, responses in some)])
    K = max([k, *(len(ids) for context, _ in some for ids in context)])
    J = max([j, *(len(ids) for _, responses in some for ids in responses)])
    batch = {
        "turns": np.zeros((len(some), T, K), "int32"),
        "responses": np.zeros((len(some), N, J), "int32"),
    }
    for b, example in enumerate(some):
        for ids, lists in zip(batch.values(), example, strict=True):
            for i, one in enumerate(lists):
                ids[b, i, : len(one)] = one
    return batch


def config(variant="full", **settings):
    sizes = {"embedding_dim": D, "max_turns": T, "max_words": J, "levels": L}
    return DAMConfig(V, **{**sizes, "conv_filters": FILTERS, "variant": variant, **settings})


@functools.cache
def dam(variant="full", **settings):
    """A model with random weights, shared by the tests: do not change it."""
    return set_random_weights(DAM(config(variant, **settings)), 1)


def dam_in_loops(turns, response, model, divisor):
    """The logit of one context and one response.

    Exact masking: lists of real ids. The release's: padded to the largest size, 0 = padding.
    """
    c, layer = model.config, model.get_layer
    release = c.masking == "release"
    levels = {"first": [0], "last": [c.levels]}.get(c.variant, range(c.levels + 1))

    def represent(ids):
        ids = [id if id <= V else c.unknown_id for id in ids]
        x = layer("word_embedding").embeddings.numpy().astype("float64")[np.array(ids, int)]
        if c.positional:
            signal = signal_in_loops(len(ids), c.embedding_dim, 10.0)
            x = x + layer("positional").weight_K.numpy()[: len(ids), None] * signal
        pairs = np.outer(ids, ids) > 0 if release else None
        found = [x]
        for l in range(max(levels)):
            w = block_weights(layer(f"self_attention_{l}"))
            found.append(block_in_loops(*[found[-1]] * 3, w, pairs=pairs))
        return found

    K, J = max(len(ids) for ids in turns), len(response)
    kinds = {"self": ["self"], "cross": ["cross"]}.get(c.variant, ["cross", "self"])
    image = np.zeros((len(turns), K, J, len(kinds) * len(levels) + c.lexical))
    mask = np.zeros(image.shape[:3], bool)
    R = represent(response)
    for t, ids in enumerate(turns):
        U, pairs = represent(ids), np.outer(ids, response) > 0 if release else None
        channels = []
        for kind in kinds:
            for l in levels:
                if kind == "self":
                    channels.append(np.array([[u @ r for r in R[l]] for u in U[l]]))
                else:
                    match = layer(f"cross_match_{l}")
                    channels.append(cross_match_in_loops(U[l], R[l], match, pairs))
        for channel, M in enumerate(channels):
            image[t, : len(ids), :, channel] = M.reshape(len(ids), J)
        if c.lexical:
            for k, j in np.ndindex(len(ids), J):
                image[t, k, j, -1] = divisor * match_of_words(ids[k], response[j], layer("lexical_match"))
        mask[t, : len(ids)] = True
    if c.response_rows:
        image, mask = np.swapaxes(image, 1, 2), np.swapaxes(mask, 1, 2)
    logit = aggregate_in_loops(image, mask, layer("aggregation"), 1 / divisor, release)
    return logit + cosine_of_words(turns, response, layer("lexical_match")) if c.lexical else logit


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
    logits = to_numpy(model(batch_of(some)))
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
            [to_numpy(model(batch_of([(turns, [response])]))).item() for response in responses]
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
        found = to_numpy(model(batch_of(some, **sizes)))
        np.testing.assert_allclose(found[:, :N], alone, atol=1e-5)
        nothing = model.get_layer("aggregation").b3.numpy()[0]  # a response without a word
        np.testing.assert_allclose(found[:, N:], nothing, atol=1e-5)
    for (turns, responses), row in zip(some, alone, strict=True):
        backwards = to_numpy(model(batch_of([(turns, responses[::-1])])))[0, ::-1]
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
    model, batch = dam(variant, **settings), batch_of(examples(ids_of(settings)), turns=T, k=J, candidates=5, j=J)
    labels = np.arange(len(TURNS) * 5).reshape(-1, 5) % 2
    with tf.GradientTape() as tape:
        loss = keras.losses.BinaryCrossentropy(from_logits=True)(labels, model(batch))
    gradients = tape.gradient(loss, model.trainable_variables)
    assert {w.name for w in model.non_trainable_weights} == ({"w"} if model.config.lexical else set())
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


# === Saving, sizes, precision ===


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras 3.15
@pytest.mark.parametrize("variant", VARIANTS)
def test_dam_saves_and_loads(variant, tmp_path):
    settings = {"positional": True, **release_settings(variant)} if variant == "last" else {}
    model, batch = dam(variant, **settings), batch_of(examples(), turns=T, k=J, j=J)
    model.save(tmp_path / "dam.keras")
    loaded = keras.saving.load_model(tmp_path / "dam.keras", safe_mode=True)
    assert type(loaded) is DAM
    saved, found = dataclasses.asdict(model.config), dataclasses.asdict(loaded.config)
    assert {**found, "conv_filters": tuple(found["conv_filters"])} == saved
    np.testing.assert_array_equal(to_numpy(loaded(batch)), to_numpy(model(batch)))


def test_dam_from_config_has_the_same_config():
    again = DAM.from_config(dam().get_config())
    assert again.config == dam().config and again.name == dam().name


def test_dam_from_stored_config_has_the_same_config():
    stored = json.dumps(dam("first").get_config())
    assert DAM.from_config(json.loads(stored)).config == dam("first").config


def parameters(d, levels, variant, filters, cells, scalar_bias):
    """Parameters without the embedding, from the paper's equations."""
    block = 2 * d * d + 2 * (1 if scalar_bias else d) + 2 * 2 * d
    matched = 1 if variant in ("first", "last") else levels + 1
    blocks = (0 if variant == "first" else levels) + (0 if variant == "self" else 2 * matched)
    channels = matched * (1 if variant in ("self", "cross") else 2)
    first, second = filters
    convolutions = 27 * channels * first + first + 27 * first * second + second
    return blocks * block + convolutions + cells * second + 1


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("scalar_bias", (False, True))
def test_dam_counts_parameters(variant, scalar_bias):
    settings = release_settings(variant) if scalar_bias else {}
    found = dam(variant, **settings).count_params() - (V + 1) * D
    assert found == parameters(D, L, variant, FILTERS, 1 * 2 * 2, scalar_bias)


def test_dam_counts_as_many_parameters_as_the_release():
    """17 blocks of 80,802: 1,398,451 in all; of vectors for biases, 2 x 199 more a block."""
    release = DAM(DAMConfig(vocabulary_size=1, **release_settings()))
    vectors = DAM(DAMConfig(vocabulary_size=1))
    found = [model.count_params() - 2 * 200 for model in (release, vectors)]
    assert found == [1_398_451, 1_398_451 + 17 * 2 * 199]
    assert found == [parameters(200, 5, "full", (32, 16), 36, bias) for bias in (True, False)]


@pytest.fixture
def precision(request):
    dam()  # built in float32, whichever test runs first
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy("float32")


@pytest.mark.parametrize(
    "precision, atol",
    [
        ("mixed_float16", 0.02),
        ("mixed_bfloat16", 0.1),
    ],
    indirect=["precision"],
)
def test_dam_in_half_precision_is_near_float32(precision, atol):
    model = DAM(config())
    model.set_weights(dam().get_weights())
    assert all(weight.dtype == "float32" for weight in model.weights)
    batch = batch_of(examples(), turns=T, candidates=5)
    logits, exact = model(batch), to_numpy(dam()(batch))
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    assert 0 < np.abs(to_numpy(logits) - exact).max() < atol < np.ptp(exact) / 5


# === Errors ===


def test_dam_rejects_variant():
    with pytest.raises(ValueError, match=r"variant must be one of .*Received: variant='middle'"):
        config("middle")


@pytest.mark.parametrize("value", (0, -1))
@pytest.mark.parametrize("field", ("vocabulary_size", "embedding_dim", "max_turns", "max_words"))
def test_dam_rejects_sizes(field, value):
    settings = {"vocabulary_size": V, field: value}
    with pytest.raises(ValueError, match=f"{field} must be at least 1. Received: {field}={value}"):
        DAMConfig(**settings)


@pytest.mark.parametrize("variant", ("full", "last"))
def test_dam_rejects_levels(variant):
    with pytest.raises(ValueError, match=r"levels must be .*Received: levels=-1"):
        DAM(config(variant, levels=-1))


def test_dam_rejects_masking():
    with pytest.raises(ValueError, match=r"masking must be one of .*Received: masking='padding'"):
        DAM(config(masking="padding"))


@pytest.mark.parametrize("sizes", [{"turns": T + 1}, {"k": J + 1}, {"j": J + 1}])
def test_dam_rejects_long_inputs(sizes):
    with pytest.raises(ValueError, match=r"at most 5 turns of 11 words.*is too long"):
        dam()(batch_of(examples(), **sizes))


def test_padding_is_computed_where_xla_compiles_and_where_the_release_counts_it():
    model = DAM(config("full", levels=1))
    assert model.unpad
    model.jit_compile = False
    assert model.unpad
    model.compile(jit_compile=True)
    assert not model.unpad and model.jit_compile
    model.unpad = True
    assert all(layer.unpad for layer in model.layers if hasattr(layer, "unpad"))
    assert not DAM(config("full", levels=1, masking="release")).unpad


# === Other backends ===

ON_ANOTHER_BACKEND = """
import resource
import sys

resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))  # shape inference by example is greedy
import keras
import numpy as np
from models.dam import DAM, DAMConfig

assert "tensorflow" not in sys.modules
stored = dict(np.load(sys.argv[1], allow_pickle=False))
config = {"max_words": 11, "conv_filters": (17, 19), "levels": 2}
model = DAM(DAMConfig(37, 13, 5, **config, positional=sys.argv[3] == "True"))
model.set_weights([stored[f"weight_{i}"] for i in range(len(model.weights))])
logits = model({"turns": stored["turns"], "responses": stored["responses"]})
np.save(sys.argv[2], keras.ops.convert_to_numpy(logits))
print(keras.backend.backend())
"""


@pytest.mark.parametrize("backend", ("jax", "torch"))
@pytest.mark.parametrize("positional", (False, True))
def test_dam_gives_the_same_logits_on_other_backends(backend, positional, tmp_path):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    model = dam(**({"positional": True} if positional else {}))
    batch = batch_of(examples(), turns=T, candidates=5)
    weights = {f"weight_{i}": weight for i, weight in enumerate(model.get_weights())}
    np.savez(tmp_path / "stored.npz", **weights, **batch)
    files = tmp_path / "stored.npz", tmp_path / "logits.npy"
    done = subprocess.run(
        [sys.executable, "-c", ON_ANOTHER_BACKEND, *files, str(positional)],
        cwd=pathlib.Path(__file__).parent.parent,
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == backend
    np.testing.assert_allclose(np.load(files[1]), to_numpy(model(batch)), atol=1e-5)
