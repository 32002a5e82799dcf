"""`data.normalization` in TensorFlow graphs and in tokenizers: the same words as in Python."""

import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from colloquy.data.normalization import GraphNormalizer, normalize
from colloquy.data.offsets import tokenize, words_at
from colloquy.data.tokenizers import TOKENIZERS, GraphTokenizer, words_of
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.reading_comprehension.export import ReadingText

CLEAN = "Z\u00fcrich's caf\u00e9 costs 3,000.5 francs, \ud55c\uad6d \u1ebf \u30ac \u0915\u093f!"
TYPED = (
    CLEAN,
    unicodedata.normalize("NFD", CLEAN),
    CLEAN.replace("rich", "\u00adri\u200bch\u2060"),
    f"\ufeff\u202a{CLEAN}\u202c",
    CLEAN.replace("!", "\uff01").replace("3,000.5", "\uff13\uff0c\uff10\uff10\uff10\uff0e\uff15"),
    CLEAN.replace(" costs", "\u200e \u200ccosts"),
)


def test_a_graph_normalizes_as_python_does():
    found = GraphNormalizer()(tf.constant(TYPED)).numpy()
    assert [text.decode() for text in found] == [normalize(text) for text in TYPED] == [CLEAN] * 6


@pytest.mark.parametrize("name", ["words", "terms", "mixed"])
def test_a_text_has_the_same_words_however_it_is_typed(name):
    words = words_of(CLEAN, name)
    assert "z\u00fcrich" in " ".join(words) and TOKENIZERS[name].tokenize(CLEAN.lower()) == words
    in_graph = GraphTokenizer(name, lower=True)(tf.constant(TYPED)).to_list()
    for text, found in zip(TYPED, in_graph, strict=True):
        assert words_of(text, name) == words
        assert [word.decode() for word in found] == words


def test_spans_of_a_passage_point_into_the_text_as_given():
    vocabulary = Vocabulary.of(["a"])
    reading = ReadingText(vocabulary, vocabulary)
    tokens, starts, ends = reading.tokens(tf.constant(TYPED))
    words = words_at(CLEAN, tokenize(CLEAN))
    assert words[:3] == ["Z\u00fcrich", "'", "s"] and "3,000.5" in words
    for number, text in enumerate(TYPED):
        spans = tokenize(text)
        assert words_at(text, spans) == words
        assert np.stack([starts[number], ends[number]], axis=1).tolist() == [list(s) for s in spans]
        in_graph = reading.normalize(tokens[number]).numpy()
        assert [word.decode() for word in in_graph] == words
