"""`tasks.selection.retrieval.encoder` against loops, and what canonical correlations are."""

import numpy as np
import pytest

from data.sequences import Sequences
from tasks.selection.retrieval.encoder import PairEncoder


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(1)
    contexts = [rng.integers(3, 23, size=rng.integers(1, 9)).tolist() for _ in range(211)]
    responses = [[*rng.integers(3, 23, size=2).tolist(), context[0]] for context in contexts]
    return Sequences.of(contexts), Sequences.of(responses), rng.normal(size=(23, 5)).astype("float32")


def fit(contexts, responses, vectors, **options):
    """In parts of another size than that of the whole."""
    return PairEncoder.fit(lambda: contexts.parts(37), lambda: responses.parts(37), vectors, **options)


def means(encoder, texts, table):
    """The weighted mean of each text's vectors."""
    weights = encoder.weights
    return np.array([sum(weights[w] * table[w] for w in words) / sum(weights[words]) for words in texts.lists()])


def test_vectors_are_weighted_means_of_word_vectors_in_loops(texts):
    contexts, responses, vectors = texts
    encoder = fit(contexts, responses, vectors, dimension=3)
    documents = responses.lists()
    for word in range(3, 23):
        n = sum(word in document for document in documents)
        assert encoder.weights[word] == pytest.approx(np.log(1 + (211 - n + 0.5) / (n + 0.5)), rel=1e-5)
    found = encoder.contexts(contexts)
    assert found.shape == (211, 3) and found.dtype == np.float32
    expected = means(encoder, contexts, encoder.context_words) - encoder.context_mean
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-4)


def test_directions_are_canonical(texts):
    """Each direction's projections of contexts and responses correlate, different directions' do not."""
    contexts, responses, vectors = texts
    encoder = fit(contexts, responses, vectors, dimension=5, ridge=0.0)

    X = means(encoder, contexts, encoder.context_words) - encoder.context_mean
    Y = means(encoder, responses, encoder.response_words) - encoder.response_mean
    correlations = np.diag(X.T @ X / 211)
    assert (np.diff(correlations) < 0).all() and correlations[0] > 0.3
    np.testing.assert_allclose(X.T @ X / 211, np.diag(correlations), atol=1e-4)
    np.testing.assert_allclose(Y.T @ Y / 211, np.diag(correlations), atol=1e-4)
    np.testing.assert_allclose(X.T @ Y / 211, np.diag(correlations**2), atol=1e-4)


def test_an_encoder_saves_and_loads_and_gives_no_vector_to_a_text_that_says_nothing(texts, tmp_path):
    encoder = fit(*texts)
    encoder.save(tmp_path / "encoder.npz")
    again = PairEncoder.load(tmp_path / "encoder.npz")
    np.testing.assert_array_equal(again.responses(texts[0]), encoder.responses(texts[0]))
    assert again.context_words.shape[1] == 5 and not again.responses(Sequences.of([[2, 1, 2], []])).any()
