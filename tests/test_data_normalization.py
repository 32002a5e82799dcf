"""`data.normalization`: one reading of Unicode, and the places in the text as it was given."""

import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from colloquy.data.graph_normalization import GraphNormalizer
from colloquy.data.graph_tokenizer import GraphTokenizer
from colloquy.data.normalization import JOINERS, normalize, normalize_with_offsets
from colloquy.data.offsets import read_text
from colloquy.data.tokenizers import TOKENIZERS, words_of
from colloquy.tasks.reading_comprehension.graph_tokens import find_tokens

HIDDEN = ("\u00ad", "\u200b", "\u200e", "\u202a", "\u202e", "\u2066", "\u2060", "\ufeff", "\ufe0f")
ALPHABET = (
    "ab .,1\u00e9\u1ebf\u0308\u0301\u0323\ufb01\uff21\uff76\uff9e\u0915\u093f\uac01\u11a8"
    "\u200c\u200d"
)
TEXTS = st.text(alphabet=ALPHABET, max_size=12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Zu\u00adrich", "Zurich"),
        ("Zu\u0308\u200brich", "Z\u00fcrich"),
        ("\ufeffhello", "hello"),
        ("\u202aa\u202c b", "a b"),
        ("\uff21\uff11\uff0e\uff15\uff01", "A1.5!"),
        ("\ufb01ne o\ufb03ce", "fine office"),
        ("\uff76\uff9e", "\u30ac"),
        ("\u1112\u1161\u11ab", "\ud55c"),
        # Joiners stay between letters: Persian, and a conjunct of Devanagari.
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
        ("\u0915\u094d\u200d\u0937", "\u0915\u094d\u200d\u0937"),
        ("a \u200cb\u200d.", "a b."),
        # Other signs and superscripts are tokenizers' matter.
        ("\u201cm\u00b2\u201d \u2013 \u2026", "\u201cm\u00b2\u201d \u2013 \u2026"),
    ],
)
def test_normalize(text, expected):
    assert normalize(text) == expected


@settings(max_examples=200, deadline=None)
@example("\u1100\u1161\u0301\uff9e")  # a syllable, an accent and a voiced mark of half width
@given(TEXTS)
def test_offsets_point_into_the_text_as_given(text):
    normalized = normalize_with_offsets(text)
    assert normalized.text == normalize(text)
    assert len(normalized.starts) == len(normalized.ends) == len(normalized.text)
    assert normalized.starts == sorted(normalized.starts)
    for character, start, end in zip(*normalized, strict=True):
        is_joiner = character in JOINERS
        assert is_joiner or character in normalize(text[start:end])


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.data())
def test_invisible_characters_and_composition_change_nothing(text, data):
    place = data.draw(st.integers(0, len(text)))
    hidden = data.draw(st.sampled_from(HIDDEN))
    assert normalize(text[:place] + hidden + text[place:]) == normalize(text)
    decomposed = unicodedata.normalize("NFD", text)
    assert normalize(decomposed) == normalize(unicodedata.normalize("NFC", text))
    assert normalize(normalize(text)) == normalize(text)


# === In a graph, and in tokenizers ===

CLEAN = "Z\u00fcrich's caf\u00e9 costs 3,000.5 francs, \ud55c\uad6d \u1ebf \u30ac \u0915\u093f!"
TYPED = (
    CLEAN,
    unicodedata.normalize("NFD", CLEAN),
    CLEAN.replace("rich", "\u00adri\u200bch\u2060"),
    f"\ufeff\u202a{CLEAN}\u202c",
    CLEAN.replace("!", "\uff01").replace("3,000.5", "\uff13\uff0c\uff10\uff10\uff10\uff0e\uff15"),
    CLEAN.replace(" costs", "\u200e \u200ccosts"),
)


@pytest.mark.parametrize("name", ["words", "terms", "mixed"])
def test_a_text_has_the_same_words_however_it_is_typed(name):
    words = words_of(CLEAN, name)
    assert {normalize(text) for text in TYPED} == {CLEAN}
    assert "z\u00fcrich" in " ".join(words) and TOKENIZERS[name].tokenize(CLEAN.lower()) == words
    in_graph = GraphTokenizer(name, lower=True)(tf.constant(TYPED)).to_list()
    for text, found in zip(TYPED, in_graph, strict=True):
        assert words_of(text, name) == words
        assert [word.decode() for word in found] == words


def test_spans_of_a_passage_point_into_the_text_as_given():
    tokens, starts, ends = find_tokens(tf.constant(TYPED))
    normalizer = GraphNormalizer()
    words = read_text(CLEAN).words
    assert words[:3] == ["Z\u00fcrich", "'", "s"] and "3,000.5" in words
    for number, text in enumerate(TYPED):
        read = read_text(text)
        assert read.words == words
        spans = np.stack([starts[number], ends[number]], axis=1)
        assert spans.tolist() == [list(span) for span in read.offsets]
        in_graph = normalizer(tokens[number]).numpy()
        assert [word.decode() for word in in_graph] == words
