"""`data.tokenizers` and `data.vocabulary`: text to words and back, words to ids; Python and the
graph agree.
"""

import collections
import re
import sys
import types
import unicodedata

import pytest
import tensorflow as tf
from helpers import refusal, written
from hypothesis import example, given
from hypothesis import strategies as st

from colloquy.base.characters import HAN
from colloquy.data.corpora import dam_release
from colloquy.data.graph_tokenizer import GraphTokenizer
from colloquy.data.graph_vocabulary import WordIds
from colloquy.data.tokenizers import (
    TOKENIZERS,
    WHITESPACE,
    normalize,
    words_of,
)
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, UNK_ID, Vocabulary

TERMS = (
    "try apt-get ( e.g . v2.6.8-1 ) in / etc/fstab , __path__ or me@x.de : don't ! . . . 50 % a , b"
)
NI_HAO = "\u4f60\u597d"  # hello
TEXTS = [
    "I don\u2019t know \u2026 3,000.5 at 2:30pm -- (50%, $5)!",
    "the dogs' \"well-known\" o'clock a.b x_y 1st \u2014 5\u00b0C",
    "привет, مرحبا؟ हिन्दी। café こん 👍🏽",
    f"{NI_HAO}\uff0cTom\uff01\u4eca\u5929 3:15 \u89c1\u2026\u2026\u597d\u5417\uff1f "
    "\U00020000\u3005",
    "try apt-get (e.g. v2.6.8-1) in /etc/fstab, __path__ or me@x.de: don't!... 50% a,b",
    "\ufb01ne \u2026 \u00a0 x\u200by \u1e9b \u00c9T\u00c9 \u0130 \u039f\u0394\u039f\u03a3 "
    "\U0001f44d\U0001f3fd",
    "_EOS_ a _UNK_ <script>alert('x')</script>",
    "\x00\x1f a\tb\r\nc\u2028d",
    "...",
    "",
    " \t ",
]
PATTERNS = [name for name, tokenizer in TOKENIZERS.items() if not tokenizer.segment]
GRAPHS = {
    (name, lower): GraphTokenizer(name, lower)
    for name in (WHITESPACE, *PATTERNS)
    for lower in (True, False)
}


NORMALIZED = {
    "It\u2019s \u02bctis \u00b4x` 5\u2032": "it's 'tis 'x' 5'",
    "\u201cA\u201d \u201eB\u201f 3\u2033": '"a" "b" 3"',
    "\uff21\uff22\uff11\uff0c\ufb01 \u2460": "ab1,fi 1",
    " a\t\u00a0\u3000b\x00\x85\u2028c\r\n": "a b c",
    "zero\u200bwidth so\u00adft \ufeffmark \u2764\ufe0f": "zerowidth soft mark \u2764",
    "cafe\u0301 \u200b\t": "caf\u00e9",
}


def tokens(name, text, lower=True):
    return TOKENIZERS[name].tokenize(normalize(text, lower))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("space", "Don't, \u00a0 go!", "don't, go!"),
        ("words", TEXTS[0], "i don't know ... 3,000.5 at 2:30 pm -- ( 50 % , $ 5 ) !"),
        (
            "words",
            TEXTS[1],
            "the dogs ' \" well - known \" o'clock a . b x _ y 1st \u2014 5 \u00b0 c",
        ),
        ("words", TEXTS[2], "привет , مرحبا ؟ हिन्दी । café こん 👍 🏽"),
        ("mixed", TEXTS[3], "你 好 , tom ! 今 天 3:15 见 ... ... 好 吗 ? \U00020000 々"),
        ("terms", TEXTS[4], TERMS),
    ],
)
def test_tokens(name, text, expected):
    assert tokens(name, text) == expected.split()
    # tokenized texts stay as they are
    assert tokens(name, expected) == expected.split()


def test_texts_are_normalized_and_no_character_is_lost():
    for text, expected in NORMALIZED.items():
        assert normalize(text) == expected == normalize(expected)
        assert normalize(text, lower=False).lower() == expected
    for text in TEXTS:
        for name in PATTERNS:
            assert "".join(tokens(name, text)) == normalize(text).replace(" ", "")
        if not re.search(f"[{HAN}]", text):
            assert tokens("mixed", text) == tokens("words", text)
    han = re.compile(f"[{HAN}]")
    assert all(map(han.fullmatch, "\u4e00\u9fff\u3400\uf900\u3005\u3007\U00020000\U000323af"))
    assert not any(map(han.fullmatch, "a1\u3002\u3001\u300a\u3042\u30a2\uac00\uff0c"))


def test_words_of_raw_texts():
    assert words_of(" Hello\u00a0there! \t Caf\u00c9's\n") == ["Hello\u00a0there!", "Caf\u00c9's"]
    assert words_of(" Hello\u00a0there! Caf\u00c9's", "terms") == [
        "hello",
        "there",
        "!",
        "caf\u00e9's",
    ]
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
        (
            "\u597d \u3002 \u300a \u4e66 \u300b \u3001 i love you",
            "\u597d\u3002\u300a\u4e66\u300b\u3001i love you",
        ),
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
    assert tokens("terms", expected) == joined.split()


@pytest.mark.parametrize("name", PATTERNS)
def test_detokenized_text_has_the_same_tokens(name):
    for text in TEXTS[:3] if name in ("words", "terms") else TEXTS[:4]:
        found = tokens(name, text)
        assert tokens(name, TOKENIZERS[name].detokenize(found)) == found


# === In a graph ===

UNICODE_14 = "\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8" + "".join(map(chr, range(0x10570, 0x10596)))
"""Capitals that TensorFlow's tables lack."""
PIECES = st.sampled_from(
    [*".,:!?'\"-_/() 1a\u2019\u201c\u2026\u4f60\u597d\u3002\u3005\u0130\u03a3", "--", "..."]
)
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters=UNICODE_14)


def narrow_by_character(text):
    """Whether NFKC changes single characters only; the graph does not compose them."""
    return unicodedata.normalize("NFKC", text) == "".join(
        unicodedata.normalize("NFKC", each) for each in text
    )


TEXT = st.lists(st.one_of(PIECES, CHARACTERS), max_size=20).map("".join).filter(narrow_by_character)


@given(st.lists(TEXT, min_size=1, max_size=5), st.sampled_from(sorted(GRAPHS)))
def test_the_graph_finds_the_same_words(texts, key):
    texts = [*texts, *TEXTS]
    found = GRAPHS[key](tf.constant(texts)).to_list()
    assert [[word.decode() for word in words] for words in found] == [
        words_of(text, *key) for text in texts
    ]
    any_bytes = GRAPHS[WHITESPACE, False](tf.constant([b"\xffa B!"])).to_list()
    assert any_bytes == [[b"\xffa", b"B!"]]


@given(st.lists(TEXT, max_size=3), st.sampled_from(PATTERNS))
@example([""], "words")
def test_the_graph_joins_tokens_the_same_way(texts, name):
    found = [tokens(name, text) for text in [*texts, *TEXTS]]
    padded = tf.ragged.constant(found, dtype=tf.string).to_tensor("")
    joined = GRAPHS[name, True].detokenize(padded).numpy()
    assert [text.decode() for text in joined] == [
        TOKENIZERS[name].detokenize(each) for each in found
    ]


def test_jieba_is_asked_where_it_is_installed_and_named_where_it_is_missing(monkeypatch):
    jieba = types.SimpleNamespace(lcut=lambda text: [text[:2], text[2:]])
    monkeypatch.setitem(sys.modules, "jieba", jieba)
    words = TOKENIZERS["jieba"].tokenize(f"{NI_HAO}\u4eca\u5929don't")
    assert words == [NI_HAO, "\u4eca\u5929", "don't"]
    assert "cannot run inside a TensorFlow graph" in refusal(GraphTokenizer, "jieba", True)
    monkeypatch.setitem(sys.modules, "jieba", None)
    assert "needs a package: pip install jieba" in refusal(TOKENIZERS["jieba"].tokenize, NI_HAO)


# === Vocabularies ===

ODD = ("ü", "a\u2028b", "c\x85", "\u3000", "\ufeff", "it's")


def test_words_are_ordered_by_falling_count_then_alphabet():
    counts = collections.Counter(["b", "é", "a", "c", "b", "Z", "_EOS_", "a", "b", "c"])
    for each in (counts, dict(sorted(counts.items(), reverse=True))):
        assert Vocabulary.of_counts(each).words == ("_EOS_", "_UNK_", "b", "a", "c", "Z", "é")
    assert Vocabulary.of_counts(counts, min_count=3).words == ("_EOS_", "_UNK_", "b")


def test_vocabulary_saves_and_loads(tmp_path):
    path = tmp_path / "new" / "vocabulary.txt"
    vocabulary = Vocabulary(("_EOS_", "_UNK_", *ODD))
    vocabulary.save(path)
    assert path.read_bytes().decode() == "_EOS_\n_UNK_\n" + "".join(f"{word}\n" for word in ODD)
    assert Vocabulary.load(path) == vocabulary
    assert Vocabulary.load(written(path, path.read_bytes().removesuffix(b"\n"))) == vocabulary
    message = refusal(Vocabulary.load, tmp_path / "absent")
    assert "expected a vocabulary. Received: No such file" in message


def load_word2id(path):
    return dam_release.load_word2id(path, eos_id=3)


@pytest.mark.parametrize(
    ("load", "content", "message"),
    [
        (Vocabulary.load, "_UNK_\nx\n", ": one of its words must be _EOS_"),
        (Vocabulary.load, f"_EOS_\n{'x' * 99} y\n", ": line 2 must be a word .*: 'x{59}$"),
        (Vocabulary.load, "_EOS_\n_UNK_\nx\ny\nx\n", ": line 5 repeats line 3"),
        (Vocabulary.load, "_EOS_\n_UNK_\nx\r\n", ": line 3 must be a word"),
        (Vocabulary.load, b"_EOS_\n_UNK_\nx\n\xff\n", ": line 4 must be UTF-8"),
        (load_word2id, "", ".*expected words and ids. Received: an empty file"),
        (load_word2id, "x 1\ny -1\n", ".*line 2: expected an id after 'y'"),
        (load_word2id, "x 1\ny", ".*line 2: expected an id after 'y'"),
        (load_word2id, "x 1\ny 999999999\n", ": expected ids up to 9. Received: 999,999,999"),
        (load_word2id, "x 1\ny 1\n", ".*line 2: expected a new id; 1 is 'x'"),
        (load_word2id, "x 1\n_EOS_ 2\n", ".*line 2: expected _EOS_ to have the id 3"),
        (load_word2id, "online 1\nonline 2\n", ": id 2 repeats id 1. Received: 'online'"),
    ],
)
def test_a_bad_line_of_words_is_refused(tmp_path, load, content, message):
    path = written(tmp_path / "words", content)
    found = refusal(load, path)
    assert re.search(f"^{path}{message}", found), found


@pytest.mark.parametrize(
    "content",
    [
        "y\t4\r\nx\t1\r\n_EOS_\t3\r\n",
        "y\n4\nx\n1\n_EOS_\n3\n",
        "\ufeffx 1\n\ny 4\n_PAD_ 0",
        "x 1\neos 3\ny 4",
    ],
)
def test_load_word2id_reads_any_order(tmp_path, content):
    vocabulary = load_word2id(written(tmp_path / "word2id", content))
    assert vocabulary.words == ("x", "_2_", "_EOS_", "y")
    vocabulary.save(tmp_path / "vocabulary.txt")
    assert Vocabulary.load(tmp_path / "vocabulary.txt") == vocabulary


WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1)
# the release's, too
ORDERS = [("_EOS_", "_UNK_", "x", *ODD), ("x", "_UNK_", "y", "_EOS_"), ("x", "y", "_EOS_")]


@given(WORDS, st.sampled_from(ORDERS), st.sampled_from([0, 997, 2**24]))
@example(["w" * 33, "w" * 32, "w" * 31 + "v", "_EOS_", "_UNK_", "x"], ORDERS[0], 997)
@example(["_EOS_", "_UNK_", "x", "y", "z"], ORDERS[2], 0)
def test_the_graph_finds_the_same_ids(words, order, hashed):
    vocabulary = Vocabulary(order, hashed)
    assert WordIds(vocabulary)(tf.constant(words)).numpy().tolist() == vocabulary.encode(words)


def test_special_words_may_have_any_id_and_hashed_ids_follow_the_words():
    vocabulary = Vocabulary(("x", "_UNK_", "y", "_EOS_"))
    assert (vocabulary.eos_id, vocabulary.unk_id) == (4, 2)
    assert vocabulary.encode(["y", "z", "_EOS_", "x"]) == [3, 2, 2, 1]
    standard = Vocabulary(("_EOS_", "_UNK_"))
    assert (standard.eos_id, standard.unk_id) == (EOS_ID, UNK_ID) == (1, 2)
    without = Vocabulary(("x", "_EOS_"))
    assert without.unk_id == PADDING_ID == 0 and without.encode(["x", "z"]) == [1, 0]
    # They depend on 32 bytes.
    vocabulary = Vocabulary(("_EOS_", "_UNK_", "x"), hashed=997)
    long, cut, other, known = vocabulary.encode(["w" * 33, "w" * 32, "w" * 31 + "v", "x"])
    assert long == cut != other and min(cut, other) > 3 == known and max(cut, other) <= 1000
    assert vocabulary.word(cut) == "_UNK_" and vocabulary.word(known) == "x"
