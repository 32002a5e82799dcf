"""`data.tokenizers`: text to tokens and back; Python and the graph agree."""

import re
import sys
import types
import unicodedata

import pytest
import tensorflow as tf
from helpers import refusal
from hypothesis import example, given
from hypothesis import strategies as st

from data.tokenizers import HAN, TOKENIZERS, WHITESPACE, GraphTokenizer, normalize, words_of

NI_HAO = "\u4f60\u597d"  # hello
TEXTS = [
    "I don\u2019t know \u2026 3,000.5 at 2:30pm -- (50%, $5)!",
    "the dogs' \"well-known\" o'clock a.b x_y 1st \u2014 5\u00b0C",
    "\u043f\u0440\u0438\u0432\u0435\u0442, \u0645\u0631\u062d\u0628\u0627\u061f \u0939\u093f\u0928\u094d\u0926\u0940"
    "\u0964 caf\u00e9 \u3053\u3093 \U0001f44d\U0001f3fd",
    f"{NI_HAO}\uff0cTom\uff01\u4eca\u5929 3:15 \u89c1\u2026\u2026\u597d\u5417\uff1f \U00020000\u3005",
    "try apt-get (e.g. v2.6.8-1) in /etc/fstab, __path__ or me@x.de: don't!... 50% a,b",
    "\ufb01ne \u2026 \u00a0 x\u200by \u1e9b \u00c9T\u00c9 \u0130 \u039f\u0394\u039f\u03a3 \U0001f44d\U0001f3fd",
    "_EOS_ a _UNK_ <script>alert('x')</script>",
    "\x00\x1f a\tb\r\nc\u2028d",
    "...",
    "",
    " \t ",
]
PATTERNS = [name for name, tokenizer in TOKENIZERS.items() if not tokenizer.segment]
GRAPHS = {(name, lower): GraphTokenizer(name, lower) for name in (WHITESPACE, *PATTERNS) for lower in (True, False)}


def tokens(name, text, lower=True):
    return TOKENIZERS[name].tokenize(normalize(text, lower))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It\u2019s \u02bctis \u00b4x` 5\u2032", "it's 'tis 'x' 5'"),
        ("\u201cA\u201d \u201eB\u201f 3\u2033", '"a" "b" 3"'),
        ("\uff21\uff22\uff11\uff0c\ufb01 \u2460", "ab1,fi 1"),
        (" a\t\u00a0\u3000b\x00\x85\u2028c\r\n", "a b c"),
        ("zero\u200bwidth so\u00adft \ufeffmark \u2764\ufe0f", "zerowidth soft mark \u2764"),
        ("cafe\u0301 \u200b\t", "caf\u00e9"),
    ],
)
def test_normalize(text, expected):
    assert normalize(text) == expected == normalize(expected)
    assert normalize(text, lower=False).lower() == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("space", "Don't, \u00a0 go!", "don't, go!"),
        ("words", TEXTS[0], "i don't know ... 3,000.5 at 2:30 pm -- ( 50 % , $ 5 ) !"),
        ("words", TEXTS[1], "the dogs ' \" well - known \" o'clock a . b x _ y 1st \u2014 5 \u00b0 c"),
        (
            "words",
            TEXTS[2],
            "\u043f\u0440\u0438\u0432\u0435\u0442 , \u0645\u0631\u062d\u0628\u0627 \u061f "
            "\u0939\u093f\u0928\u094d\u0926\u0940 \u0964 caf\u00e9 \u3053\u3093 \U0001f44d \U0001f3fd",
        ),
        (
            "mixed",
            TEXTS[3],
            "\u4f60 \u597d , tom ! \u4eca \u5929 3:15 \u89c1 ... ... \u597d \u5417 ? \U00020000 \u3005",
        ),
        ("characters", f"A b{NI_HAO}", "a b \u4f60 \u597d"),
        (
            "terms",
            TEXTS[4],
            "try apt-get ( e.g . v2.6.8-1 ) in / etc/fstab , __path__ or me@x.de : don't ! . . . 50 % a , b",
        ),
    ],
)
def test_tokens(name, text, expected):
    assert tokens(name, text) == expected.split()
    assert name == "characters" or tokens(name, expected) == expected.split()  # tokenized texts stay as they are


@pytest.mark.parametrize("text", TEXTS)
def test_no_character_is_lost(text):
    for name in PATTERNS:
        assert "".join(tokens(name, text)) == normalize(text).replace(" ", "")
    if not re.search(f"[{HAN}]", text):
        assert tokens("mixed", text) == tokens("words", text)


def test_words_of_raw_texts():
    assert words_of(" Hello\u00a0there! \t Caf\u00c9's\n") == ["Hello\u00a0there!", "Caf\u00c9's"]
    assert words_of(" Hello\u00a0there! Caf\u00c9's", "terms") == ["hello", "there", "!", "caf\u00e9's"]
    assert words_of("Hello!", "words", lower=False) == ["Hello", "!"]
    assert words_of("_EOS_", "words", lower=False) == ["_", "EOS", "_"]  # no special word


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


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ("sudo dpkg - i a.deb - f , ok", "sudo dpkg -i a.deb -f, ok"),
        ("tar - c - v - f a.tar", "tar -c -v -f a.tar"),
        ("- h or apt-get - it works - yes", "-h or apt-get - it works - yes"),
    ],
)
def test_detokenized_terms_have_the_same_tokens(joined, expected):
    """A hyphen that is a token joins only the option of a command."""
    assert TOKENIZERS["terms"].detokenize(joined.split()) == expected
    assert TOKENIZERS["space"].detokenize(joined.split()) == joined
    assert TOKENIZERS["characters"].detokenize(joined.split()) == joined.replace(" ", "")
    assert tokens("terms", expected) == joined.split()


@pytest.mark.parametrize(
    ("name", "text"),
    [(name, text) for name in PATTERNS for text in TEXTS[:4] if name not in ("words", "terms") or text != TEXTS[3]],
)
def test_detokenized_text_has_the_same_tokens(name, text):
    found = tokens(name, text)
    assert tokens(name, TOKENIZERS[name].detokenize(found)) == found


# === In a graph ===

UNICODE_14 = "\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8" + "".join(map(chr, range(0x10570, 0x10596)))
"""Capitals that TensorFlow's tables lack."""
PIECES = st.sampled_from([*".,:!?'\"-_/() 1a\u2019\u201c\u2026\u4f60\u597d\u3002\u3005\u0130\u03a3", "--", "..."])
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters=UNICODE_14)


def narrow_by_character(text):
    """Whether NFKC changes single characters only; the graph does not compose them."""
    return unicodedata.normalize("NFKC", text) == "".join(unicodedata.normalize("NFKC", each) for each in text)


TEXT = st.lists(st.one_of(PIECES, CHARACTERS), max_size=20).map("".join).filter(narrow_by_character)


@given(st.lists(TEXT, min_size=1, max_size=5), st.sampled_from(sorted(GRAPHS)))
def test_the_graph_finds_the_same_words(texts, key):
    texts = [*texts, *TEXTS]
    found = GRAPHS[key](tf.constant(texts)).to_list()
    assert [[word.decode() for word in words] for words in found] == [words_of(text, *key) for text in texts]


@given(st.lists(TEXT, max_size=3), st.sampled_from(PATTERNS))
@example([""], "words")
def test_the_graph_joins_tokens_the_same_way(texts, name):
    found = [tokens(name, text) for text in [*texts, *TEXTS]]
    padded = tf.ragged.constant(found, dtype=tf.string).to_tensor("")
    joined = TOKENIZERS[name].detokenize_in_graph(padded).numpy()
    assert [text.decode() for text in joined] == [TOKENIZERS[name].detokenize(each) for each in found]


def test_white_space_takes_any_bytes():
    assert GraphTokenizer(WHITESPACE, False)(tf.constant([b"\xffa B!"])).to_list() == [[b"\xffa", b"B!"]]


def test_han_has_no_kana_and_no_punctuation():
    han = re.compile(f"[{HAN}]")
    assert all(map(han.fullmatch, "\u4e00\u9fff\u3400\uf900\u3005\u3007\U00020000\U000323af"))
    assert not any(map(han.fullmatch, "a1\u3002\u3001\u300a\u3042\u30a2\uac00\uff0c"))


def test_jieba_is_asked_where_it_is_installed_and_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", types.SimpleNamespace(lcut=lambda text: [text[:2], text[2:]]))
    assert TOKENIZERS["jieba"].tokenize(f"{NI_HAO}\u4eca\u5929don't") == [NI_HAO, "\u4eca\u5929", "don't"]
    assert "cannot run inside a TensorFlow graph" in refusal(GraphTokenizer, "jieba", True)
    monkeypatch.setitem(sys.modules, "jieba", None)
    assert "needs a package: pip install -e" in refusal(TOKENIZERS["jieba"].tokenize, NI_HAO)
