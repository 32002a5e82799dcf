"""`models.bidaf` beside what test_models_contract.py asserts: sizes, trained words, averaged weights."""

import bidaf_models
import numpy as np
from helpers import train_small

from engine.optimizers import averaged_weights
from models.bidaf import BiDAF, BiDAFConfig
from tasks import TASKS
from tasks.reading_comprehension import prepare as prepare_reading
from tasks.reading_comprehension.data import load_dataset
from tasks.reading_comprehension.prepare import Settings
from tasks.reading_comprehension.scoring import span_loss

reading = TASKS["reading_comprehension"]


def test_bidaf_has_as_many_weights_as_the_official_code():
    for end_pointer, published in (("paper", 1_610_703), ("official", 2_570_703)):
        model = BiDAF(BiDAFConfig(vocabulary_size=5, characters=7, end_pointer=end_pointer))
        count = sum(int(np.prod(weight.shape)) for weight in model.trainable_variables)
        # The published count leaves out the characters' table and has three biases that a softmax takes away again.
        assert count - 8 * (7 + 1) + 3 == published


def test_words_without_a_vector_get_one_by_how_often_they_occur(prepared_reading, tmp_path):
    raw = prepared_reading.parent / "raw"
    prepare_reading.prepare("squad", raw, tmp_path / "out", Settings(trained_words=7))
    dataset, plain = load_dataset(tmp_path / "out"), load_dataset(prepared_reading)
    new = dataset.vocabulary.words[len(plain.vocabulary) :]
    assert (dataset.trained_words, plain.trained_words) == (len(new), 0)
    assert set(new) == {"ann", "bob", "cyd", "dee", "eve"}
    assert dataset.vocabulary.words[: len(plain.vocabulary)] == plain.vocabulary.words
    prepare_reading.prepare("squad", raw, tmp_path / "most", Settings(trained_words=10**6))
    assert load_dataset(tmp_path / "most").trained_words == 0
    settings = {"train_unknown": "true", "ema": "0", "validations_per_epoch": "1"}
    run = train_small("reading_comprehension", tmp_path / "out", tmp_path / "run", settings, epochs=1.0)
    assert run.config.trained_words == 5
    learnt = run.load_model().get_layer("unknown_words").get_weights()[0]
    assert (np.abs(learnt[2:]).max(axis=1) > 0).all() and not learnt[0].any()


def test_averages_are_swapped_in_and_out_exactly():
    model = bidaf_models.fresh()
    inputs, spans = bidaf_models.batch(model)
    optimizer = reading.optimizer(reading.Training(ema=0.5, learning_rate=0.1), 100, model.config)
    model.compile(optimizer=optimizer, loss=span_loss, run_eagerly=True)
    model.train_on_batch(inputs, spans)
    first = [np.array(v) for v in model.trainable_variables]
    model.train_on_batch(inputs, spans)
    second = [np.array(v) for v in model.trainable_variables]
    with averaged_weights(model):
        for variable, a, b in zip(model.trainable_variables, first, second, strict=True):
            np.testing.assert_allclose(np.array(variable), 0.5 * a + 0.5 * b, atol=1e-6)
    for variable, b in zip(model.trainable_variables, second, strict=True):
        np.testing.assert_array_equal(np.array(variable), b)
