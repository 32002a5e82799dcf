"""The SavedModel of a model of reading: strings in, answers and their offsets out.

Letters:
    B questions   T context words   J query words   N distinct tokens   L characters   K answers
"""

import tensorflow as tf

from colloquy.base.characters import SPACELESS
from colloquy.data.normalization import INVISIBLE, JOINERS, MARKS, GraphNormalizer
from colloquy.data.vocabulary import WordIds
from colloquy.engine.endpoints import Endpoint, build_archive, ensure_shape, require
from colloquy.layers.masking import LOWEST, MASKED_LOGIT
from colloquy.models.bidaf import best_spans
from colloquy.tasks.reading_comprehension.confidence import LIKELY, NOT_IN_TEXT, SURE
from colloquy.tasks.reading_comprehension.data import WORD_CHARACTERS
from colloquy.tasks.reading_comprehension.predictor import BEST, SPANS

NO_SCORE = tf.float32.min  # finite, because JSON knows no infinity

# data.offsets.TOKEN in the syntax of TensorFlow's regular expressions (RE2), with full-width
# signs, and with what nobody sees inside of a token.
_HIDDEN = f"[{INVISIBLE}]*"
_DIGITS = rf"\p{{Nd}}(?:{_HIDDEN}[\p{{Nd}}{MARKS}])*"
_LETTER = r"\p{L}\p{N}_\x{FF3F}"
TOKEN = (
    rf"{_DIGITS}(?:{_HIDDEN}[.,\x{{FF0E}}\x{{FF0C}}]{_HIDDEN}{_DIGITS})*"
    rf"|[{_LETTER}](?:{_HIDDEN}(?:[{_LETTER}{MARKS}]|[{JOINERS}]+[{_LETTER}{MARKS}]))*"
    rf"|[^{_LETTER}\s\p{{Z}}\x{{04}}\x{{0B}}\x{{1C}}-\x{{1F}}\x{{85}}{INVISIBLE}{JOINERS}]"
    rf"(?:{_HIDDEN}[{MARKS}])*"
)
# A character of a script without spaces, with the voiced marks of kana.
BORDERED = f"[{SPACELESS}](?:{_HIDDEN}[\u3099\u309a\uff9e\uff9f])*"
# Put around a character that is a token of its own, beside the letters of others.
BORDER = "\x04"
# Put around each token; where a text has them, they count as another sign.
BEGIN = "\x02"
END = "\x03"


class ReadingText:
    """Makes the model's inputs of strings, as prepare.py and `ReadingSplit.collate` do.

    Args:
        vocabulary: A `Vocabulary` of lower-case words.
        characters: That of characters.
        min_context: Words that a context is padded to.
    """

    def __init__(self, vocabulary, characters, min_context=1):
        self.min_context = min_context
        self.words = WordIds(vocabulary)
        self.characters = WordIds(characters)
        self.normalize = GraphNormalizer()

    def tokens(self, texts):
        """The tokens of each text, string `(B,)`, ragged `(B, None)`.

        Returns the tokens, and their starts and ends in characters.
        """
        texts = tf.strings.regex_replace(texts, f"[{BEGIN}{END}{BORDER}]", "\x01")
        bordered = tf.strings.regex_replace(texts, BORDERED, BORDER + r"\0" + BORDER)
        marked = tf.strings.regex_replace(bordered, TOKEN, BEGIN + r"\0" + END)
        marked = tf.strings.regex_replace(marked, BORDER, "")
        # A piece is the text before a token, BEGIN and the token. The last one has no token.
        pieces = tf.strings.split(marked, END)[:, :-1]
        before_token = f"(?s)^[^{BEGIN}]*{BEGIN}"
        tokens = tf.ragged.map_flat_values(tf.strings.regex_replace, pieces, before_token, "")

        # BEGIN is no character of the text.
        lengths = tf.ragged.map_flat_values(_length, pieces) - 1
        dense_ends = tf.cumsum(lengths.to_tensor(), axis=1)
        ends = tf.RaggedTensor.from_tensor(dense_ends, lengths=lengths.row_lengths())
        starts = ends - tf.ragged.map_flat_values(_length, tokens)
        return tokens, starts, ends

    def inputs(self, context, query):
        """The inputs of `models.bidaf.BiDAF` for tokens, ragged string `(B, None)`."""
        # "" is no token, so number 0 is padding's alone.
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
            "context": _at_least(self.min_context, context_numbers.to_tensor()),
            "query": _at_least(1, query_numbers.to_tensor()),
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
        probability  float32 (B,)    its probability within the passage; 0 for none
        confidence   float32 (B,)    the probability that it is correct; 0 for none
        good         bool (B,)       whether the confidence reaches the scale's threshold
        verdict      string (B,)     the confidence in words

    These are the names and values of `predictor.AnswerSpan` and `Answer`. `n_best_answer` and so
    on, `(B, K)`, are those of its `n_best`, answers that share no word.

    Args:
        vocabulary, characters: Those of the model's words and characters.
        scale: The run's `confidence.Scale`; `None`: there is no `confidence`, `good` or
            `verdict`.
    """
    penalty = model.config.length_penalty
    max_words = model.config.max_answer_words
    # A context of so many words has `SPANS` spans.
    text = ReadingText(vocabulary, characters, min_context=1 + SPANS // max_words)

    def answer(passage, question):
        passage, question = _checked(passage, question)
        tokens, starts, ends = text.tokens(passage)
        query, _, _ = text.tokens(question)
        inputs = text.inputs(tokens, query)
        logits = model(inputs, training=False)
        first, last, score = best_apart(*best_spans(logits, max_words, SPANS, penalty), BEST)
        has_question = query.row_lengths() > 0
        is_real = tf.logical_and(score > LOWEST, has_question[:, None])
        first = tf.where(is_real, first, 0)
        last = tf.where(is_real, last, 0)

        start = tf.gather(_at_least(1, starts.to_tensor()), first, batch_dims=1)
        end = tf.gather(_at_least(1, ends.to_tensor()), last, batch_dims=1)
        length = tf.where(is_real, end - start, 0)
        passages = tf.repeat(passage[:, None], BEST, axis=1)
        log_z = tf.reduce_sum(tf.reduce_logsumexp(logits, axis=2), axis=1, keepdims=True)
        if model.config.no_answer:
            log_z = tf.math.softplus(log_z)  # log(exp(log_z) + exp(0))
        # The score is less the penalty of its length; the probability is without it.
        log_p = score + penalty * tf.cast(last - first, tf.float32) - log_z
        n_best = {
            "answer": tf.strings.substr(passages, start, length, unit="UTF8_CHAR"),
            "start": tf.where(is_real, start, -1),
            "end": tf.where(is_real, end, -1),
            "score": tf.where(is_real, score, NO_SCORE),
            "probability": tf.where(is_real, tf.exp(log_p), 0.0),
        }
        if scale is not None:
            logit = scale.score_weight * score + scale.offset
            n_best["confidence"] = tf.where(is_real, tf.sigmoid(logit), 0.0)
        outputs = {}
        for name, value in n_best.items():
            outputs[name] = value[:, 0]
            outputs[f"n_best_{name}"] = value
        if scale is not None:
            outputs["good"] = is_real[:, 0] & (outputs["confidence"] >= scale.threshold)
            outputs["verdict"] = _verdict(scale, outputs["confidence"])
        return outputs

    endpoint = Endpoint("answer", answer, inputs={"passage": "B", "question": "B"})
    tables = [text.words.table, text.characters.table, text.normalize.table]
    return build_archive([endpoint], tracked=tables)


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


def best_apart(first, last, score, count):
    """The best spans that share no word, as `predictor.best_apart`, in a graph.

    Takes spans `(B, N)` and returns them `(B, count)`, the best first; where there are fewer, the
    scores of the others are below `LOWEST`.
    """
    firsts = []
    lasts = []
    scores = []
    for _ in range(count):
        best = tf.argmax(score, axis=1)[:, None]
        best_first = tf.gather(first, best, batch_dims=1)
        best_last = tf.gather(last, best, batch_dims=1)
        firsts.append(best_first)
        lasts.append(best_last)
        scores.append(tf.gather(score, best, batch_dims=1))
        is_apart = (last < best_first) | (first > best_last)
        score = tf.where(is_apart, score, MASKED_LOGIT)
    return tf.concat(firsts, axis=1), tf.concat(lasts, axis=1), tf.concat(scores, axis=1)


def _verdict(scale, confidence):
    """`Scale.verdict` in a graph, string `(B,)`."""
    verdict = tf.where(confidence >= LIKELY, "likely", "may be wrong")
    verdict = tf.where(confidence >= SURE, "sure", verdict)
    return tf.where(confidence < scale.threshold, NOT_IN_TEXT, verdict)


def _length(texts):
    return tf.strings.length(texts, unit="UTF8_CHAR")


def _at_least(columns, x):
    """Pads `x` with 0 to at least this many columns."""
    missing = tf.maximum(columns - tf.shape(x)[1], 0)
    return tf.pad(x, [[0, 0], [0, missing]])
