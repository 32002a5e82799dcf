"""`data.graph_text`: a graph splits texts as Python does."""

import pytest
import tensorflow as tf

from base.files import UserError
from data.graph_text import GraphTokenizer, word_table
from data.tokenizers import TOKENIZERS, WHITESPACE, words_of
from data.vocabulary import Vocabulary
from models.dam import DAMConfig
from tasks.selection.export import SelectionText

TEXTS = [
    "Hello there! It's 3,000.5 -- isn\u2019t it ... \u201cwell\u201d?",
    "try apt-get (e.g. v2.6.8-1) in /etc/fstab, __path__ or me@x.de: don't!... 50% a,b",
    "\uff28\uff49! \u4f60\u597d\uff0c\u4e16\u754c OK\u3002",
    "\ufb01ne \u2026 \u00a0 x\u200by \u1e9b \u00c9T\u00c9 \u0130 \U0001f44d\U0001f3fd",
    "_EOS_ a _UNK_ <script>alert('x')</script>",
    "\u05e9\u05dc\u05d5\u05dd, \u0645\u0631\u062d\u0628\u0627\u061f",
    "\x00\x1f a\tb\r\nc\u2028d",
    "...",
    "",
    " \t ",
]
NAMES = [WHITESPACE, *(name for name, tokenizer in TOKENIZERS.items() if not tokenizer.segment)]


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_words_are_those_of_python(name, lower):
    found = GraphTokenizer(name, lower)(tf.constant(TEXTS))
    assert [[word.decode() for word in words] for words in found.to_list()] == [
        words_of(text, name, lower) for text in TEXTS
    ]


def test_white_space_takes_any_bytes():
    assert GraphTokenizer(WHITESPACE, False)(tf.constant([b"\xffa B!"])).to_list() == [[b"\xffa", b"B!"]]


@pytest.mark.parametrize("name", NAMES)
def test_ids_of_a_selection_model_are_those_of_python(name):
    vocabulary = Vocabulary.of([word for text in TEXTS[::2] for word in words_of(text, name)])
    config = DAMConfig(len(vocabulary), max_words=97)
    text = SelectionText(vocabulary, config, {"tokenizer": name, "lower": True})
    found = text.words(tf.constant(TEXTS)).numpy().tolist()
    assert [[id for id in ids if id] for ids in found] == [vocabulary.encode(words_of(t, name)) for t in TEXTS]


@pytest.mark.parametrize("name", NAMES)
def test_unknown_words_have_the_hashed_ids_of_python(name):
    vocabulary = Vocabulary(Vocabulary.of(words_of(TEXTS[0], name)).words, hashed=997)
    config = DAMConfig(len(vocabulary), max_words=97, hashed_words=997, unknown_id=2)
    texts = [*TEXTS, "w" * 33 + " " + "w" * 32 + " " + "w" * 31 + "v"]
    found = SelectionText(vocabulary, config, {"tokenizer": name, "lower": True}).words(tf.constant(texts))
    found = [[id for id in ids if id] for ids in found.numpy().tolist()]
    assert found == [vocabulary.encode(words_of(text, name)) for text in texts]
    assert max(id for ids in found for id in ids) > len(vocabulary)
    if name == WHITESPACE:
        long, cut, other = found[-1]  # of a word the first 32 bytes count
        assert long == cut != other


def test_a_literal_special_is_unknown():
    vocabulary = Vocabulary.of(["a"])
    assert word_table(vocabulary).lookup(tf.constant(["_EOS_", "_UNK_", "a", "b"])).numpy().tolist() == [2, 2, 3, 2]


def test_a_vocabulary_of_the_release_has_its_own_order():
    words = tf.constant(["_EOS_", "_UNK_", "a", "b", "c"])
    assert word_table(Vocabulary(("a", "_UNK_", "b", "_EOS_"))).lookup(words).numpy().tolist() == [2, 2, 1, 3, 2]
    assert word_table(Vocabulary(("a", "b", "_EOS_"))).lookup(words).numpy().tolist() == [0, 0, 1, 2, 0]


def test_a_tokenizer_of_another_package_is_refused():
    with pytest.raises(UserError, match="needs a package that no graph holds"):
        GraphTokenizer("jieba", True)
