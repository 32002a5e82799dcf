"""`data.tokenizers`: texts into tokens and back, in Python and as a graph would."""

import re
import sys
import types

import pytest

from base.files import UserError
from data.tokenizers import HAN, TOKENIZERS, normalize, words_of

NI_HAO = "\u4f60\u597d"  # hello
TEXTS = [
    "I don\u2019t know \u2026 3,000.5 at 2:30pm -- (50%, $5)!",
    "the dogs' \"well-known\" o'clock a.b x_y 1st \u2014 5\u00b0C",
    "\u043f\u0440\u0438\u0432\u0435\u0442, \u0645\u0631\u062d\u0628\u0627\u061f \u0939\u093f\u0928\u094d\u0926\u0940"
    "\u0964 cafe\u0301 \u3053\u3093 \U0001f44d\U0001f3fd",
    f"{NI_HAO}\uff0cTom\uff01\u4eca\u5929 3:15 \u89c1\u2026\u2026\u597d\u5417\uff1f \U00020000\u3005",
]
PATTERNS = [name for name, tokenizer in TOKENIZERS.items() if not tokenizer.segment]


def tokens(name, text, lower=True):
    return TOKENIZERS[name].tokenize(normalize(text, lower))


# === Normal form ===


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It\u2019s \u02bctis \u00b4x` 5\u2032", "it's 'tis 'x' 5'"),
        ("\u201cA\u201d \u201eB\u201f 3\u2033", '"a" "b" 3"'),
        ("\uff21\uff22\uff11\uff0c\ufb01 \u2460", "ab1,fi 1"),
        (" a\t\u00a0\u3000b\x00\x85\u2028c\r\n", "a b c"),
        ("zero\u200bwidth so\u00adft \ufeffmark \u2764\ufe0f", "zerowidth soft mark \u2764"),
        (" \u200b\t", ""),
    ],
)
def test_normalize(text, expected):
    assert normalize(text) == expected
    assert normalize(expected) == expected


def test_normalize_keeps_case_when_told():
    assert normalize("\uff21 B\u0130", lower=False) == "A B\u0130"


# === Tokens ===


def test_space_splits_at_white_space_alone():
    assert tokens("space", "Don't, \u00a0 go!") == ["don't,", "go!"]


def test_words_keeps_inner_apostrophes_and_numbers():
    expected = "i don't know ... 3,000.5 at 2:30 pm -- ( 50 % , $ 5 ) !"
    assert tokens("words", TEXTS[0]) == expected.split()
    expected = "the dogs ' \" well - known \" o'clock a . b x _ y 1st \u2014 5 \u00b0 c"
    assert tokens("words", TEXTS[1]) == expected.split()


def test_words_takes_letters_of_every_script():
    expected = "\u043f\u0440\u0438\u0432\u0435\u0442 , \u0645\u0631\u062d\u0628\u0627 \u061f "
    expected += "\u0939\u093f\u0928\u094d\u0926\u0940 \u0964 caf\u00e9 \u3053\u3093 \U0001f44d \U0001f3fd"
    assert tokens("words", TEXTS[2]) == expected.split()
    assert tokens("words", f"{NI_HAO}!") == [NI_HAO, "!"]


def test_mixed_parts_han_characters():
    expected = "\u4f60 \u597d , tom ! \u4eca \u5929 3:15 \u89c1 ... ... \u597d \u5417 ? \U00020000 \u3005"
    assert tokens("mixed", TEXTS[3]) == expected.split()
    assert tokens("mixed", f"abc{NI_HAO}don't") == ["abc", "\u4f60", "\u597d", "don't"]
    for text in TEXTS[:3]:
        assert tokens("mixed", text) == tokens("words", text)


def test_characters():
    assert tokens("characters", f"A b{NI_HAO}") == ["a", "b", "\u4f60", "\u597d"]


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("text", TEXTS)
def test_no_character_is_lost(name, text):
    assert "".join(tokens(name, text)) == normalize(text).replace(" ", "")


def test_terms_keep_the_signs_that_join_parts():
    expected = "try apt-get ( e.g . v2.6.8-1 ) in / etc/fstab , __path__ or me@x.de : don't ! . . . 50 % a,b".split()
    expected[-1:] = ["a", ",", "b"]
    assert (
        tokens("terms", "Try apt-get (e.g. v2.6.8-1) in /etc/fstab, __path__ or me@x.de: don't!... 50% a,b") == expected
    )
    assert tokens("terms", " ".join(expected)) == expected  # of texts that are cut already it changes nothing


def test_words_of_raw_texts():
    assert words_of(" Hello\u00a0there! \t Caf\u00c9's\n") == ["Hello\u00a0there!", "Caf\u00c9's"]
    assert words_of(" Hello\u00a0there! Caf\u00c9's", "terms") == ["hello", "there", "!", "caf\u00e9's"]
    assert words_of("Hello!", "words", lower=False) == ["Hello", "!"]


def test_special_words_are_no_tokens():
    assert tokens("words", "_EOS_", lower=False) == ["_", "EOS", "_"]


# === And back ===


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ("i don't know , do you ?", "i don't know, do you?"),
        ("wait ... what ?! ; no : yes .", "wait... what?!; no: yes."),
        ("( 50 % ) for $ 5 [ x ]", "(50%) for $5 [x]"),
        ('he said " no way " and " ok "', 'he said "no way" and "ok"'),
        ("push - ups -- yes", "push-ups -- yes"),
        ("\u4f60 \u597d , tom ! \u4eca \u5929 ?", "\u4f60\u597d\uff0ctom!\u4eca\u5929\uff1f"),
        ("\u597d \u3002 \u300a \u4e66 \u300b \u3001 i love you", "\u597d\u3002\u300a\u4e66\u300b\u3001i love you"),
        ("", ""),
    ],
)
def test_detokenize(joined, expected):
    for name in ("words", "mixed", "jieba"):
        assert TOKENIZERS[name].detokenize(joined.split()) == expected


def test_detokenized_terms_have_the_same_tokens():
    """Hyphens are in terms, so one that stands alone joins nothing but the option of a command."""
    texts = {
        "sudo dpkg - i a.deb - f , ok": "sudo dpkg -i a.deb -f, ok",
        "tar - c - v - f a.tar": "tar -c -v -f a.tar",
        "- h or apt-get - it works - yes": "-h or apt-get - it works - yes",
    }
    for joined, expected in texts.items():
        assert TOKENIZERS["terms"].detokenize(joined.split()) == expected
        assert tokens("terms", expected) == joined.split()


def test_detokenize_of_spaces_and_characters():
    assert TOKENIZERS["space"].detokenize(["a", ",", "b"]) == "a , b"
    assert TOKENIZERS["characters"].detokenize(["a", ",", "b"]) == "a,b"


@pytest.mark.parametrize(
    ("name", "text"),
    [(name, text) for name in PATTERNS for text in TEXTS if name not in ("words", "terms") or text != TEXTS[3]],
)
def test_detokenized_text_has_the_same_tokens(name, text):
    found = tokens(name, text)
    assert tokens(name, TOKENIZERS[name].detokenize(found)) == found


# === In a graph ===


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_mean_the_same_to_re2(name):
    import tensorflow as tf

    tokenizer = TOKENIZERS[name]
    texts = [normalize(text) for text in TEXTS]
    separated = tf.strings.regex_replace(texts, f"({tokenizer.pattern})", r" \1 ").numpy()
    assert [text.decode().split() for text in separated] == [tokenizer.tokenize(text) for text in texts]
    joined = [tokenizer.glue.join(tokenizer.tokenize(text)) for text in texts]
    for pattern, replacement in tokenizer.join:
        joined = tf.strings.regex_replace(joined, pattern, replacement)
    joined = joined if isinstance(joined, list) else [text.decode() for text in joined.numpy()]
    assert joined == [tokenizer.detokenize(tokenizer.tokenize(text)) for text in texts]


def test_han_has_no_kana_and_no_punctuation():
    han = re.compile(f"[{HAN}]")
    assert all(map(han.fullmatch, "\u4e00\u9fff\u3400\uf900\u3005\u3007\U00020000\U000323af"))
    assert not any(map(han.fullmatch, "a1\u3002\u3001\u300a\u3042\u30a2\uac00\uff0c"))


# === Jieba ===


def test_jieba_is_asked_where_it_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", types.SimpleNamespace(lcut=lambda text: [text[:2], text[2:]]))
    assert TOKENIZERS["jieba"].tokenize(f"{NI_HAO}\u4eca\u5929don't") == [NI_HAO, "\u4eca\u5929", "don't"]


def test_jieba_is_not_needed_else(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(UserError, match="needs a package that is not here: pip install jieba"):
        TOKENIZERS["jieba"].tokenize(NI_HAO)
