"""The SavedModel of a model of reading: strings in, answers and their offsets out.

Letters:
    B questions   T context words   J query words   N distinct tokens   L characters
"""

import tensorflow as tf

from colloquy.base.characters import SPACELESS
from colloquy.data.graph_normalization import GraphNormalizer
from colloquy.data.normalization import INVISIBLE, JOINERS, MARKS
from colloquy.data.vocabulary import WordIds
from colloquy.engine.endpoints import (
    at_least_one_column,
    build_archive,
    ensure_shape,
    require,
)
from colloquy.models.best_spans import best_spans
from colloquy.tasks.reading_comprehension.questions import WORD_CHARACTERS

NO_SCORE = tf.float32.min  # finite, because JSON knows no infinity

# `data.offsets.TOKEN` for texts that are not normalized, in the syntax of RE2, TensorFlow's regular
# expressions. So it also allows invisible characters inside a token, and the full-width underscore
# (FF3F), full stop (FF0E) and comma (FF0C).
_HIDDEN = f"[{INVISIBLE}{JOINERS}]*"
_DIGITS = rf"\p{{Nd}}(?:{_HIDDEN}[\p{{Nd}}{MARKS}])*"
_LETTER = r"\p{L}\p{N}_\x{FF3F}"
TOKEN = (
    rf"{_DIGITS}(?:{_HIDDEN}[.,\x{{FF0E}}\x{{FF0C}}]{_HIDDEN}{_DIGITS})*"
    rf"|[{_LETTER}](?:{_HIDDEN}[{_LETTER}{MARKS}])*"
    rf"|[^{_LETTER}\s\p{{Z}}\x{{04}}\x{{0B}}\x{{1C}}-\x{{1F}}\x{{85}}{INVISIBLE}{JOINERS}]"
    rf"(?:{_HIDDEN}[{MARKS}])*"
)
# A character of a script without spaces, with the voiced marks of kana.
BORDERED = f"[{SPACELESS}](?:[{INVISIBLE}]*[\u3099\u309a\uff9e\uff9f])*"
# `tokens` puts it before and after each character of such a script, so that no word includes it.
BORDER = "\x04"
# `tokens` puts them before and after each token. In the text itself they count as another sign.
BEGIN = "\x02"
END = "\x03"


class ReadingText:
    """Makes the model's inputs of strings, as prepare.py and `ReadingSplit.collate` do.

    Args:
        vocabulary: A `Vocabulary` of lower-case words.
        characters: That of characters.
    """

    def __init__(self, vocabulary, characters):
        self.words = WordIds(vocabulary)
        self.characters = WordIds(characters)
        self.normalize = GraphNormalizer()

    def tokens(self, texts):
        """Finds the tokens of texts, string `(B,)`.

        Returns the tokens, ragged string `(B, None)`, and where they start and end in characters,
        ragged int32 `(B, None)`.
        """
        texts = tf.strings.regex_replace(texts, f"[{BEGIN}{END}{BORDER}]", "\x01")
        bordered = tf.strings.regex_replace(texts, BORDERED, BORDER + r"\0" + BORDER)
        marked = tf.strings.regex_replace(bordered, TOKEN, BEGIN + r"\0" + END)
        marked = tf.strings.regex_replace(marked, BORDER, "")
        # A piece is the text before a token, BEGIN and the token. The last one has no token.
        pieces = tf.strings.split(marked, END)[:, :-1]
        before_token = f"^[^{BEGIN}]*{BEGIN}"
        tokens = tf.ragged.map_flat_values(tf.strings.regex_replace, pieces, before_token, "")

        # Minus 1: each piece has a BEGIN, which is not in the text.
        lengths = tf.ragged.map_flat_values(_length, pieces) - 1
        dense_ends = tf.cumsum(lengths.to_tensor(), axis=1)
        ends = tf.RaggedTensor.from_tensor(dense_ends, lengths=lengths.row_lengths())
        starts = ends - tf.ragged.map_flat_values(_length, tokens)
        return tokens, starts, ends

    def inputs(self, context, query):
        """The inputs of `models.bidaf.BiDAF` for tokens, ragged string `(B, None)`."""
        # Number 0 is the empty text, for padding; no token is empty.
        flat = tf.concat([[""], context.flat_values, query.flat_values], axis=0)
        distinct, number = tf.unique(self.normalize(flat))
        lower = tf.strings.lower(distinct[1:], encoding="utf-8")
        letters = tf.strings.unicode_split(distinct, "UTF-8")[:, :WORD_CHARACTERS]
        characters = tf.ragged.map_flat_values(self.characters, letters)

        query_start = 1 + tf.size(context.flat_values)
        context_numbers = context.with_flat_values(number[1:query_start])
        query_numbers = query.with_flat_values(number[query_start:])
        return {
            "words": tf.concat([[0], self.words(lower)], axis=0),
            "characters": characters.to_tensor(shape=(None, WORD_CHARACTERS)),
            "context": at_least_one_column(context_numbers.to_tensor()),
            "query": at_least_one_column(query_numbers.to_tensor()),
        }


def reading_archive(model, vocabulary, characters, scale=None):
    """The endpoint `answer`, also `serving_default`, of a model.

        passage      string (B,)     UTF-8; anything else is refused
        question     string (B,)
     -> answer       string (B,)     the best part of the passage; "" if passage or question is
                                     without words
        start, end   int32 (B,)      its offsets in the passage, in characters; -1 for none
        score        float32 (B,)    sum of two logits, comparable between passages; the lowest
                                     float32 for none
        confidence   float32 (B,)    the probability that it is correct; 0 for none
        good         bool (B,)       whether the confidence reaches the scale's threshold

    These are names and values of `predictor.AnswerSpan` and `Answer`. A passage is read whole. The
    predictor reads one of more than `max_context` words in windows, so there its answer may be
    another.

    Args:
        vocabulary, characters: Those of the model's words and characters.
        scale: The run's `confidence.Scale`; `None`: there is no `confidence` and no `good`.
    """
    text = ReadingText(vocabulary, characters)

    def answer(passage, question):
        passage, question = _checked(passage, question)
        tokens, starts, ends = text.tokens(passage)
        query, _, _ = text.tokens(question)
        logits = model(text.inputs(tokens, query), training=False)
        config = model.config
        spans = best_spans(logits, config.max_answer_words, length_penalty=config.length_penalty)
        first, last, score = [x[:, 0] for x in spans]

        has_words = (tokens.row_lengths() > 0) & (query.row_lengths() > 0)
        first = tf.where(has_words, first, 0)
        last = tf.where(has_words, last, 0)
        start = tf.gather(at_least_one_column(starts.to_tensor()), first, batch_dims=1)
        end = tf.gather(at_least_one_column(ends.to_tensor()), last, batch_dims=1)
        length = tf.where(has_words, end - start, 0)
        outputs = {
            "answer": tf.strings.substr(passage, start, length, unit="UTF8_CHAR"),
            "start": tf.where(has_words, start, -1),
            "end": tf.where(has_words, end, -1),
            "score": tf.where(has_words, score, NO_SCORE),
        }
        if scale is not None:
            confidence = tf.sigmoid(scale.score_weight * score + scale.offset)
            outputs["confidence"] = tf.where(has_words, confidence, 0.0)
            outputs["good"] = has_words & (confidence >= scale.threshold)
        return outputs

    tables = [text.words.table, text.characters.table, text.normalize.table]
    return build_archive("answer", answer, {"passage": "B", "question": "B"}, tracked=tables)


def _checked(passage, question):
    """Refuses passages and questions that differ in number, and passages that are no UTF-8."""
    passage = ensure_shape(passage, "passage", "B")
    question = ensure_shape(question, "question", "B")
    # Invalid bytes become U+FFFD.
    valid = tf.strings.unicode_transcode(passage, "UTF-8", "UTF-8")
    is_utf8 = tf.debugging.assert_equal(
        valid == passage, True, "passage must be UTF-8: offsets in other bytes have no meaning"
    )
    has_equal_number = tf.debugging.assert_equal(
        tf.shape(passage), tf.shape(question), "passage and question must be equally many"
    )
    return require([is_utf8, has_equal_number], passage, question)


def _length(texts):
    return tf.strings.length(texts, unit="UTF8_CHAR")
