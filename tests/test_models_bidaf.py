"""`models.bidaf`: padding, weights, settings, and the averages of the weights that training keeps."""

import keras
import numpy as np
import pytest
from gradients import weights_without_gradient
from helpers import randomised, train_small
from keras import ops

from engine.validation import averaged_weights
from models.bidaf import BiDAF, BiDAFConfig, _same_words
from tasks import TASKS
from tasks.reading_comprehension import prepare as prepare_reading
from tasks.reading_comprehension.data import load_dataset
from tasks.reading_comprehension.prepare import Settings
from tasks.reading_comprehension.scoring import span_loss

reading = TASKS["reading_comprehension"]


# === Model ===


def small_model(**settings):
    keras.utils.set_random_seed(1)
    config = BiDAFConfig(
        vocabulary_size=11, characters=13, embedding_dim=3, hidden=5, character_filters=7, character_dim=2, **settings
    )
    return BiDAF(config)


def small_batch():
    rng = np.random.default_rng(0)
    words = rng.integers(1, 12, 17).astype("int32")
    characters = rng.integers(1, 14, (17, 6)).astype("int32")
    words[0], characters[0] = 0, 0
    return {
        "words": words,
        "characters": characters,
        "context": rng.integers(1, 17, (2, 8)).astype("int32"),
        "query": rng.integers(1, 17, (2, 4)).astype("int32"),
    }


VARIANTS = [
    {},
    {"end_pointer": "official"},
    {"use_characters": False},
    {"use_words": False},
    {"c2q": False},
    {"q2c": False},
    {"attention": "dynamic"},
    {"similarity": "mlp", "fusion": "mlp"},
    {"train_unknown": True, "trained_words": 4},
    {"tuned_words": 5},
    {"exact_match": True},
    {"self_attention": True},
]


@pytest.mark.parametrize("settings", VARIANTS)
def test_bidaf_ignores_padding(settings):
    model, batch = small_model(**settings), small_batch()
    alone = ops.convert_to_numpy(model({**batch, "context": batch["context"][:1, :5], "query": batch["query"][:1, :3]}))
    batch["context"][0, 5:], batch["query"][0, 3:] = 0, 0
    both = ops.convert_to_numpy(model(batch))
    np.testing.assert_allclose(both[0, :, :5], alone[0], atol=1e-5)
    assert (both[0, :, 5:] < -1e29).all() and (both[1] > -1e3).all()


@pytest.mark.parametrize("settings", VARIANTS)
def test_bidaf_trains_every_weight_but_the_word_vectors(settings):
    model = randomised(small_model(dropout=0.0, **settings), 1, 0.1)
    spans = np.array([[[1, 2]], [[0, 5]]], "int32")
    assert all("word_embedding" not in weight.path for weight in model.trainable_weights)
    assert weights_without_gradient(model, span_loss, small_batch(), spans) == []


def test_exact_match_says_which_words_the_other_text_has_too():
    """Token 3 and token 4 are one word in two spellings; 5 and 6 are unknown words, which are not the same."""
    words = np.array([0, 7, 8, 9, 9, 2, 2], "int32")
    context, query = np.array([[1, 3, 5, 6, 0]], "int32"), np.array([[4, 6, 2, 0]], "int32")
    same = ops.convert_to_numpy(_same_words(*map(ops.convert_to_tensor, (words, context, query)), 2))
    assert same.shape == (1, 5, 4) and np.argwhere(same[0]).tolist() == [[1, 0], [3, 1]]


def test_trained_vectors_are_those_of_words_without_one():
    """Of 11 words 2 is the unknown one and the last 4 had no vector; the others stay as they are given."""
    model, batch = small_model(train_unknown=True, trained_words=4, dropout=0.0), small_batch()
    table = model.get_layer("unknown_words")
    assert table.get_weights()[0].shape == (6, 3) and not table.get_weights()[0].any()
    batch["context"] = np.arange(1, 17, dtype="int32")[None]
    batch["query"] = np.array([[1, 2, 3]], "int32")
    batch["words"][1:12] = np.arange(1, 12)
    before = ops.convert_to_numpy(model(batch))
    rows = {2: 1, 8: 2, 9: 3, 10: 4, 11: 5}
    for word in range(1, 12):
        batch["words"][1:] = 1
        batch["words"][5] = word
        before = ops.convert_to_numpy(model(batch))
        for row in range(6):
            changed = np.zeros((6, 3), "float32")
            changed[row] = 5.0
            table.set_weights([changed])
            after = ops.convert_to_numpy(model(batch))
            assert (np.abs(after - before).max() > 1e-4) == (rows.get(word) == row), (word, row)
        table.set_weights([np.zeros((6, 3), "float32")])


def test_tuned_vectors_are_those_of_the_first_words():
    """Of 11 words the first 3 learn a change of their vectors, each its own; padding and the others do not."""
    model, batch = small_model(tuned_words=3, dropout=0.0), small_batch()
    table = model.get_layer("tuned_words")
    assert table.get_weights()[0].shape == (4, 3) and not table.get_weights()[0].any()
    for word in range(1, 12):
        batch["words"][1:] = word
        table.set_weights([np.zeros((4, 3), "float32")])
        before = ops.convert_to_numpy(model(batch))
        for row in range(4):
            table.set_weights([5.0 * np.eye(4)[row][:, None] * np.ones(3)])
            changed = np.abs(ops.convert_to_numpy(model(batch)) - before).max() > 1e-4
            assert changed == (word == row), (word, row)


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


def test_bidaf_has_as_many_weights_as_the_official_code():
    for end_pointer, published in (("paper", 1_610_703), ("official", 2_570_703)):
        model = BiDAF(BiDAFConfig(vocabulary_size=5, characters=7, end_pointer=end_pointer))
        count = sum(int(np.prod(weight.shape)) for weight in model.trainable_variables)
        # The published count leaves out the characters' table and has three biases that a softmax takes away again.
        assert count - 8 * (7 + 1) + 3 == published


def test_bidaf_is_made_again_from_its_config(tmp_path):
    model, batch = small_model(end_pointer="official"), small_batch()
    model.save_weights(tmp_path / "w.weights.h5")
    other = BiDAF.from_config(model.get_config())
    other.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_array_equal(ops.convert_to_numpy(other(batch)), ops.convert_to_numpy(model(batch)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"end_pointer": "none"}, "\nend_pointer\n"),
        ({"use_characters": False, "use_words": False}, "must not both be False"),
        ({"dropout": 1.0}, "\ndropout\n"),
        ({"attention": "none"}, "\nattention\n"),
        ({"similarity": "dot"}, "\nsimilarity\n"),
        ({"train_unknown": True, "use_words": False}, "needs use_words=True"),
        ({"tuned_words": 3, "use_words": False}, "needs use_words=True"),
        ({"tuned_words": -1}, "\ntuned_words\n"),
        ({"tuned_words": 12}, "tuned_words must be at most vocabulary_size=11"),
    ],
)
def test_bidaf_config_rejects(settings, message):
    with pytest.raises(ValueError, match=message):
        small_model(**settings)


# === Averages ===


def test_averages_are_swapped_in_and_out_exactly():
    model, batch = small_model(), small_batch()
    model.compile(
        optimizer=reading.optimizer(reading.Training(ema=0.5, learning_rate=0.1)), loss=span_loss, run_eagerly=True
    )
    spans = np.array([[[1, 2]], [[0, 5]]], "int32")
    model.train_on_batch(batch, spans)
    first = [np.array(v) for v in model.trainable_variables]
    model.train_on_batch(batch, spans)
    second = [np.array(v) for v in model.trainable_variables]
    with averaged_weights(model):
        for variable, a, b in zip(model.trainable_variables, first, second, strict=True):
            np.testing.assert_allclose(np.array(variable), 0.5 * a + 0.5 * b, atol=1e-6)
    for variable, b in zip(model.trainable_variables, second, strict=True):
        np.testing.assert_array_equal(np.array(variable), b)
