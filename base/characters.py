"""Characters of scripts without spaces between words, each as the inner part of a class of a
regular expression.
"""

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Unified ideographs with extensions A to H, compatibility ideographs, and U+3005 to U+3007
(iteration mark, closing mark, zero); no kana, no Hangul."""
KANA = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
"""Hiragana and katakana with their marks."""
THAI = "\u0e01-\u0e3a\u0e40-\u0e4f"
"""Letters, vowels and tones; no digits."""
SPACELESS = HAN + KANA + THAI
