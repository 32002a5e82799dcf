"""`tasks.generation.scoring`: loss and likelihood against loops; the optimizer."""

import collections

import keras
import numpy as np
import pytest
from helpers import to_numpy
from reference_recurrent import nll_in_loops

from models.seq2seq import Seq2Seq, Seq2SeqConfig
from tasks import TASKS
from tasks.generation.scoring import likelihood, nll_model, word_nll
from tasks.generation.task import Training

generation = TASKS["generation"]
B, T, V = 3, 5, 7  # pairs, words of a target, words


def test_loss_is_the_mean_over_words_whatever_the_padding():
    rng = np.random.default_rng(0)
    target = rng.integers(1, V, (B, T)) * (np.arange(T) < np.array([5, 2, 1])[:, None])
    target, logits = target.astype("int32"), rng.normal(size=(B, T, V)).astype("float32")
    by_word = np.zeros((B, T))
    for place in zip(*target.nonzero(), strict=True):
        by_word[place] = nll_in_loops(target[place], logits[place])
    found = to_numpy(word_nll(target, logits.astype("float16")))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_word, atol=0.01)
    compute = generation.loss(Training())
    losses = to_numpy(compute(target, logits))
    np.testing.assert_allclose(losses, by_word.sum(axis=1) * B / 8, rtol=1e-5)  # a pair counts by its words, 8 in all
    padded = np.pad(target, ((0, 0), (0, 2))), np.pad(logits, ((0, 0), (0, 2), (0, 0)), constant_values=9.0)
    np.testing.assert_allclose(to_numpy(compute(*padded)), losses, rtol=1e-5)
    assert to_numpy(compute(np.zeros((B, T), "int32"), logits)).tolist() == [0.0] * B
    assert generation.loss_counts(target).tolist() == [5, 2, 1]


def test_the_likelihood_of_a_pair_is_the_same_in_any_batch(generation_dataset, generation_model, monkeypatch):
    split = generation_dataset.splits["dev"]
    nll = likelihood(generation_model, split)
    np.testing.assert_allclose(likelihood(generation_model, split, batch_size=5), nll, rtol=1e-4)
    for row in (0, 11, 20):
        inputs, target = split.collate([row])
        logits = to_numpy(generation_model(inputs))[0]
        by_hand = sum(nll_in_loops(word, scores) for word, scores in zip(target[0], logits, strict=True))
        assert nll[row] == pytest.approx(by_hand, rel=1e-4)
    for _ in range(2):
        metrics, score = generation.validate(generation_model, split)
        assert metrics == {"perplexity": pytest.approx(np.exp(nll.sum() / split.target.lengths.sum()), rel=1e-5)}
        assert score == pytest.approx(1 / metrics["perplexity"])
    assert nll_model(generation_model).predict_function.experimental_get_tracing_count() == 1
    monkeypatch.setattr("tasks.generation.data.MAX_SOURCE", 3)
    monkeypatch.setattr("tasks.generation.data.MAX_TARGET", 2)
    inputs, target = generation.collate(split, generation_model.config, [1], 1)
    assert inputs["source"].shape == (1, 3) and target.shape == (1, 2)  # training cuts, the likelihood does not
    np.testing.assert_array_equal(likelihood(generation_model, split), nll)
    monkeypatch.setattr("tasks.generation.scoring.WORDS", 11)
    np.testing.assert_allclose(likelihood(generation_model, split), nll, rtol=1e-5)


@pytest.mark.parametrize("rate", (1.0, 5.0))
def test_the_decoder_moves_at_its_own_rate(rate):
    """Adam's first step is the learning rate, whatever the gradient."""
    model = Seq2Seq(Seq2SeqConfig(vocabulary_size=11, embedding_dim=7, hidden=10, layers=2))
    adam = generation.optimizer(Training(decoder_rate=rate, gradient_clip=0.0), 10)
    before = [variable.numpy() for variable in model.trainable_variables]
    gradients = [np.full(variable.shape, 3.0, "float32") for variable in model.trainable_variables]
    adam.apply([keras.ops.convert_to_tensor(gradient) for gradient in gradients], model.trainable_variables)
    moved = collections.defaultdict(set)
    for variable, start in zip(model.trainable_variables, before, strict=True):
        step = np.abs(variable.numpy() - start)
        np.testing.assert_allclose(step, step.mean(), atol=1e-6)
        moved[variable.path.split("/")[0]].add(round(float(step.mean()), 5))
    assert moved == {"word_embedding": {0.001}, "encoder": {0.001}, "decoder": {0.001 * rate}, "logits": {0.001 * rate}}
