"""`models.dam` beside what test_models_contract.py asserts: sizes, the release's masks, limits, compilation."""

import numpy as np
import pytest
from dam_models import B, J, N, T, V, batch_of, config, examples, fresh, made
from helpers import randomised, to_numpy

from layers.attentive_module import AttentiveModule
from models.dam import DAM, DAMConfig, release_settings


def test_dam_counts_as_many_parameters_as_the_release():
    """17 blocks of 80,802: 1,398,451 in all; of vectors for biases, 2 x 199 more a block."""
    configs = DAMConfig(vocabulary_size=1, **release_settings()), DAMConfig(vocabulary_size=1)
    found = [DAM(each).count_params() - 2 * 200 for each in configs]
    assert found == [1_398_451, 1_398_451 + 17 * 2 * 199]


@pytest.mark.parametrize("T, K, J", [(3, 6, 9), (5, 7, 11), (4, 8, 10)])
def test_dam_predicts_batches_of_one_shape_as_it_computes_them(T, K, J):
    """A graph for known shapes: TensorFlow joins operations in it that it leaves alone elsewhere."""
    rng, model = np.random.default_rng(0), randomised(fresh(), 1)
    batch = {"turns": rng.integers(1, V + 1, (B, T, K)), "responses": rng.integers(1, V + 1, (B, N, J))}
    np.testing.assert_allclose(model.predict_on_batch(batch), to_numpy(model(batch)), atol=1e-5)


@pytest.mark.parametrize("sizes", [{"turns": T + 1}, {"k": J + 1}, {"j": J + 1}])
def test_dam_rejects_long_inputs(sizes):
    with pytest.raises(ValueError, match=r"at most 5 turns of 11 words.*is too long"):
        made()(batch_of(examples(), **sizes))


def test_padding_is_computed_where_xla_compiles_and_where_the_release_counts_it():
    def fast(model):
        parts = model._flatten_layers()
        return [(part.fast, part.supports_jit) for part in parts if isinstance(part, AttentiveModule)]

    model = DAM(config(levels=1))
    model.jit_compile = False
    assert fast(model) == [(True, False)] * 5
    model.compile(jit_compile=True)
    assert model.jit_compile and fast(model) == fast(DAM(config(levels=1, masking="release"))) == [(False, True)] * 5
