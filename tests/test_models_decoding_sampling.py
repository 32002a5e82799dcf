"""`models.decoding` draws words by their probability."""

import keras
import numpy as np
import pytest
from searches import EOS, SOURCES, UNK, L, V, log_p, made, replies, run, scored

from models.decoding import Decoder, Decoding

# === Sampling ===

DRAWS = 2003


def drawn(model, source, **settings):
    """How often each word comes first; the noise passes through [0, 1) in even steps."""
    d = Decoding(beam=DRAWS, sample=True, max_length=1, **settings)
    noise = ((np.random.default_rng(0).permutation(DRAWS) + 0.5) / DRAWS).astype("float32")
    ids, _ = run(model, source[None], d, noise[None, :, None])
    return np.bincount(ids[0, :, 0], minlength=V + 1) / DRAWS


def probabilities_in_loops(logits, temperature=1.0, top_k=0, top_p=1.0, min_length=0):
    words = sorted((w for w in range(1, V + 1) if w != UNK and (w != EOS or not min_length)), key=lambda w: -logits[w])
    words = words[:top_k] if top_k else words
    total = sum(np.exp(logits[w] / temperature) for w in words)
    p, kept, so_far = np.zeros(V + 1), [], 0.0
    for w in words:
        if so_far >= top_p:
            break
        kept.append(w)
        p[w] = np.exp(logits[w] / temperature) / total
        so_far += p[w]
    return p / p.sum(), kept


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, 6),
        ({"temperature": 3.0}, 6),
        ({"temperature": 0.5}, 6),
        ({"top_k": 3}, 3),
        ({"top_p": 0.9, "temperature": 2.0}, 5),
        ({"top_k": 5, "top_p": 0.9, "temperature": 2.0}, 4),
        ({"min_length": 0, "top_k": 100}, 6),
        ({"top_p": 1e-6}, 1),
    ],
    ids=str,
)
def test_words_are_drawn_by_their_probability(settings, words):
    model, source = made(), SOURCES[0]
    [row] = log_p(model, source, [[EOS]])
    expected, kept = probabilities_in_loops(row[0], **settings)
    assert len(kept) == words
    np.testing.assert_allclose(drawn(model, source, **settings), expected, atol=2 / DRAWS)


def test_the_same_noise_draws_the_same_replies_whatever_their_neighbours():
    model, d = made(), Decoding(beam=5, sample=True, max_length=L, temperature=1.5)
    noise, other = np.random.default_rng(0).random((2, 3, 5, L), "float32")
    ids, scores = run(model, SOURCES, d, noise)
    again, _ = run(model, SOURCES, d, noise)
    np.testing.assert_array_equal(again, ids)
    alone, _ = run(model, SOURCES[1:2, :2], d, noise[1:2])
    np.testing.assert_array_equal(alone[0], ids[1])
    assert (run(model, SOURCES, d, other)[0] != ids).any()
    for source, found, ranked in zip(SOURCES, ids, scores, strict=True):
        assert len(set(map(tuple, replies(found)))) > 2
        assert (np.diff(ranked) <= 0).all()
        # Ranked by the model's own probability, whatever the temperature.
        np.testing.assert_allclose(ranked, scored(model, source, replies(found)), atol=1e-4)


class EveryWordAlike:
    """A model by which all of its words have the same probability."""

    begin_id, words = 2004, 2003

    def encode(self, source):
        return [keras.ops.zeros((keras.ops.shape(source)[0], 1))], []

    def step(self, words, states, cache):
        return keras.ops.zeros((keras.ops.shape(words)[0], self.words + 1), "bfloat16"), states, None


def test_every_word_can_be_drawn_in_half_precision():
    """Cast to bfloat16, the noise would have a few hundred values, and meet float32 probabilities besides."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    model, d = EveryWordAlike(), Decoding(beam=2003, sample=True, max_length=1, allow_unknown=True)
    noise = ((np.arange(2003) + 0.5) / 2003).astype("float32")[None, :, None]
    decoder = Decoder(model, d, EOS, UNK)
    ids, _ = decoder.predict_on_batch({"source": SOURCES[:1], "noise": noise})
    assert len(np.unique(ids)) == 2003


def test_drawing_among_one_word_is_greedy_search():
    model = made()
    expected, scores = run(model, SOURCES, Decoding(max_length=L))
    noise = np.random.default_rng(0).random((3, 2, L), "float32")
    ids, ranked = run(model, SOURCES, Decoding(beam=2, sample=True, top_k=1, max_length=L), noise)
    for k in range(2):
        np.testing.assert_array_equal(ids[:, k], expected[:, 0])
        np.testing.assert_allclose(ranked[:, k], scores[:, 0], atol=1e-5)
