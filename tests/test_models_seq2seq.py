"""`models.seq2seq` beside what test_models_contract.py asserts: word by word, shared vectors, sizes."""

import numpy as np
import pytest
from gradients import gradients_of
from helpers import to_numpy
from seq2seq_models import V, batch, fresh, made

from models.seq2seq import Seq2Seq, Seq2SeqConfig
from tasks.generation.scoring import word_loss


@pytest.mark.parametrize("settings", [{}, {"tied_output": True}], ids=str)
def test_seq2seq_leaves_padding_out_in_training(settings):
    """The loss and all gradients are those of all logits, which a model that XLA compiles gives in training too."""
    model = made(**settings)
    inputs, targets = batch(model, more=3)

    def found(training):
        return gradients_of(
            lambda *_: word_loss(targets, model(inputs, training=training)), list(model.trainable_variables)
        )

    (losses, gradients), (padded_losses, padded_gradients) = found(True), found(False)
    np.testing.assert_allclose(losses, padded_losses, rtol=1e-5)
    for gradient, padded in zip(gradients, padded_gradients, strict=True):
        np.testing.assert_allclose(gradient, padded, atol=1e-5)
    assert model(inputs, training=True).shape == (64, V + 1)
    model.jit_compile = True
    assert model(inputs, training=True).shape == model(inputs).shape == (*targets.shape, V + 1)


def tables(model):
    return [layer for layer in model.layers if layer.name.endswith("_embedding")]


@pytest.mark.parametrize("settings", [{}, {"attention": "scaled_dot", "tied_output": True}], ids=str)
@pytest.mark.parametrize("policy", ("mixed_float16", "mixed_bfloat16"))
def test_seq2seq_steps_are_the_call_in_half_precision(settings, policy):
    model = Seq2Seq(fresh(**settings).config, dtype=policy)
    model.set_weights(made(**settings).get_weights())
    inputs, _ = batch(model)
    logits = to_numpy(model(inputs))
    states, cache = model.encode(inputs["source"])
    stepped, _, _ = model.step(inputs["target_in"][:, 0], states, cache)
    np.testing.assert_allclose(to_numpy(stepped), logits[:, 0], atol=np.ptp(logits) / 50)


def test_seq2seq_shares_word_vectors():
    """One table for source and target, or two, which begin with different numbers."""
    for shared, names in ((True, ["word_embedding"]), (False, ["source_embedding", "word_embedding"])):
        assert sorted(layer.name for layer in tables(made(shared_embedding=shared))) == names
    for start, deviation in (("uniform", 0.1 / 3**0.5), ("normal", 1.0)):
        settings = {"embedding_dim": 20, "hidden": 4, "shared_embedding": False, "embedding_start": start}
        model = Seq2Seq(Seq2SeqConfig(vocabulary_size=500, **settings))
        source, target = (layer.get_weights()[0] for layer in tables(model))
        np.testing.assert_allclose([source.std(), target.std()], deviation, rtol=0.05)
        assert np.abs(source - target).max() > 0.1
        assert (np.abs(source).max() <= 0.1) == (start == "uniform")
