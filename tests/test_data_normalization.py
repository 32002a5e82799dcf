"""`data.normalization`: one reading of Unicode, and the places in the text as it was given."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colloquy.data.normalization import JOINERS, normalize, normalize_with_offsets

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
