"""`engine.optimizers` against Keras's Adam and against a loop over words."""

import keras
import numpy as np
import pytest

from colloquy.engine.optimizers import LazyAdam, TwoRateAdam
from colloquy.layers.word_embedding import WordEmbedding
from colloquy.models.dam import DAMConfig
from colloquy.tasks import TASKS

V, D = 7, 3


def train(optimizer, sparse, batches, weights):
    """The table after one step per batch; the loss is the sum of squares of the batch's vectors,
    place by place.
    """
    layer = WordEmbedding(V, D, sparse_gradient=sparse)
    model = keras.Sequential([keras.Input((None,), dtype="int32"), layer])
    layer.set_weights([weights])
    model.compile(
        optimizer,
        loss=lambda _, y: keras.ops.sum(keras.ops.square(y), axis=(1, 2)),
        run_eagerly=True,
    )
    tables = []
    for ids in batches:
        model.train_on_batch(np.array([ids]), np.zeros((1, 1)))
        tables.append(layer.get_weights()[0])
    return tables


def table(seed=0):
    return np.random.default_rng(seed).normal(size=(V, D)).astype("float32")


@pytest.mark.parametrize("kind", [LazyAdam, TwoRateAdam])
def test_with_dense_gradients_it_is_adam(kind):
    batches = [[1, 2, 2], [3, 3, 0], [5]]
    exact = train(keras.optimizers.Adam(0.1, clipvalue=0.5), False, batches, table())
    found = train(kind(0.1, clipvalue=0.5), False, batches, table())
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)
    assert np.abs(found[2][[1, 2, 3, 0]] - found[1][[1, 2, 3, 0]]).min() > 1e-3  # by momentum


def test_only_the_words_of_a_batch_move_as_a_loop_moves_them():
    batches = [[1, 2, 2], [2, 4], [1, 1, 1, 4]]
    rate, beta_1, beta_2, epsilon, clip = 0.1, 0.9, 0.999, 1e-7, 1.5
    expected, m, v = table().astype("float64"), np.zeros((V, D)), np.zeros((V, D))
    found = train(LazyAdam(rate, clipvalue=clip), True, batches, table())
    for step, (ids, one) in enumerate(zip(batches, found, strict=True), 1):
        before = expected.copy()
        for word in set(ids):
            g = np.clip(2 * before[word] * ids.count(word), -clip, clip)
            m[word] = beta_1 * m[word] + (1 - beta_1) * g
            v[word] = beta_2 * v[word] + (1 - beta_2) * g**2
            size = rate * np.sqrt(1 - beta_2**step) / (1 - beta_1**step)
            expected[word] = before[word] - size * m[word] / (np.sqrt(v[word]) + epsilon)
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)
    for word in (0, 3, 5, 6):
        np.testing.assert_array_equal(found[-1][word], table()[word])


def test_it_is_lazy_only_where_the_model_asks():
    for lazy in (False, True):
        config = DAMConfig(vocabulary_size=V, embedding_dim=D, lazy_embedding=lazy)
        adam = TASKS["selection"].optimizer(TASKS["selection"].Training(), 7, config)
        assert type(adam) is (LazyAdam if lazy else keras.optimizers.Adam)
