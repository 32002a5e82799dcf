"""Sets of characters, each as the inner part of a class of a regular expression, `[...]`.

Characters beyond ASCII are written literally, for Python's `re` and for RE2, TensorFlow's syntax.
"""

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Unified ideographs with extensions A to H, compatibility ideographs, and U+3005 to U+3007
(iteration mark, closing mark, zero); no kana, no Hangul."""
KANA = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
"""Hiragana and katakana with their marks."""
THAI = "\u0e01-\u0e3a\u0e40-\u0e4f"
"""Letters, vowels and tones; no digits."""
SPACELESS = HAN + KANA + THAI
"""Characters of scripts without spaces between words."""
SIGNS = (
    "!-/:-@\\[-`{-~"  # ASCII
    # Latin-1
    "\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7"
    # Hebrew, Arabic, Devanagari
    "\u05be\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965"
    # punctuation, currencies, symbols, arrows
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u2100-\u2bff\u2e00-\u2e7f"
    # Chinese and Japanese punctuation
    "\u3001-\u3004\u3008-\u3020\u3030\u30fb"
    # private use, and full-width forms
    "\ue000-\uf8ff\ufe10-\ufe6f\uff00-\uff0f\uffe0-\uffff"
    "\U0001f000-\U0001faff"  # emoji
)
"""Punctuation and symbols. Tokenizers count every other character, of any script, as a letter."""
