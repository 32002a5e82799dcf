"""`models.dam`: saving, sizes, precision, what its config refuses, and other backends."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
from dam_models import (
    FILTERS,
    VARIANTS,
    D,
    J,
    L,
    T,
    V,
    batch_of,
    config,
    dam,
    examples,
)
from helpers import to_numpy

from models.dam import DAM, DAMConfig, release_settings

# === Saving, sizes, precision ===


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras 3.15
@pytest.mark.parametrize("variant", VARIANTS)
def test_dam_saves_and_loads(variant, tmp_path):
    settings = {"positional": True, **release_settings(variant)} if variant == "last" else {}
    model, batch = dam(variant, **settings), batch_of(examples(), turns=T, k=J, j=J)
    model.save(tmp_path / "dam.keras")
    loaded = keras.saving.load_model(tmp_path / "dam.keras", safe_mode=True)
    assert type(loaded) is DAM
    assert loaded.config == model.config
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
    with pytest.raises(ValueError, match=r"\nvariant\n.*input_value='middle'"):
        config("middle")


@pytest.mark.parametrize("value", (0, -1))
@pytest.mark.parametrize("field", ("vocabulary_size", "embedding_dim", "max_turns", "max_words"))
def test_dam_rejects_sizes(field, value):
    settings = {"vocabulary_size": V, field: value}
    with pytest.raises(ValueError, match=rf"\n{field}\n.*input_value={value}"):
        DAMConfig(**settings)


@pytest.mark.parametrize("variant", ("full", "last"))
def test_dam_rejects_levels(variant):
    with pytest.raises(ValueError, match=r"\nlevels\n.*input_value=-1"):
        DAM(config(variant, levels=-1))


def test_dam_rejects_masking():
    with pytest.raises(ValueError, match=r"\nmasking\n.*input_value='padding'"):
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
model = DAM(DAMConfig(vocabulary_size=37, embedding_dim=13, max_turns=5, **config, positional=sys.argv[3] == "True"))
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
