"""The SavedModel of a reader: takes passages and questions as strings, returns answers and their
places.

Letters: B questions   T context words   J query words   N distinct tokens   L characters   K
answers
"""

import tensorflow as tf

from colloquy.data.vocabulary import WordIds
from colloquy.engine.export import build_archive, ensure_shape, require
from colloquy.layers.masking import LOWEST, MASKED_LOGIT
from colloquy.models.bidaf import best_spans
from colloquy.tasks.reading_comprehension.data import WORD_CHARACTERS
from colloquy.tasks.reading_comprehension.predictor import BEST, SPANS
from colloquy.tasks.reading_comprehension.scoring import MAX_LENGTH

ROOM = 1 + SPANS // MAX_LENGTH  # words of the shortest context, which has that many spans
NO_SCORE = tf.float32.min  # finite, because JSON knows no infinity

# data.corpora.squad.TOKEN in the syntax of TensorFlow's regular expressions (RE2).
TOKEN = (
    r"\p{Nd}+(?:[.,]\p{Nd}+)*"
    r"|[\p{L}\p{N}_][\p{L}\p{N}_\x{0300}-\x{036F}]*"
    r"|[^\p{L}\p{N}_\s\p{Z}\x{0B}\x{1C}-\x{1F}\x{85}]"
)
# put round each token; where a text has them, they count as another sign
BEGIN, END = "\x02", "\x03"


class ReadingText:
    """Makes the model's inputs out of strings, as prepare.py and `ReadingSplit.collate` do, by the
    `Vocabulary` of lower-case words and that of characters."""

    def __init__(self, vocabulary, characters):
        self.words, self.characters = map(WordIds, (vocabulary, characters))

    def tokens(self, texts):
        """The tokens of each text, string `(B,)`, and their starts and ends in characters: ragged
        `(B, None)`.
        """
        texts = tf.strings.regex_replace(texts, f"[{BEGIN}{END}]", "\x01")
        marked = tf.strings.regex_replace(texts, TOKEN, BEGIN + r"\0" + END)
        pieces = tf.strings.split(marked, END)[:, :-1]  # text before a token, BEGIN, the token
        tokens = tf.ragged.map_flat_values(
            tf.strings.regex_replace, pieces, f"(?s)^[^{BEGIN}]*{BEGIN}", ""
        )
        lengths = tf.ragged.map_flat_values(_length, pieces) - 1
        dense = tf.cumsum(lengths.to_tensor(), axis=1)
        ends = tf.RaggedTensor.from_tensor(dense, lengths=lengths.row_lengths())
        return tokens, ends - tf.ragged.map_flat_values(_length, tokens), ends

    def inputs(self, context, query):
        """The inputs of `models.bidaf.BiDAF` for tokens, ragged string `(B, None)`."""
        flat = tf.concat([[""], context.flat_values, query.flat_values], axis=0)
        distinct, number = tf.unique(flat)  # "" is no token, so number 0 is padding's alone
        split = tf.strings.unicode_split(distinct, "UTF-8")[:, :WORD_CHARACTERS]
        characters = tf.ragged.map_flat_values(self.characters, split)
        words = tf.concat(
            [[0], self.words(tf.strings.lower(distinct[1:], encoding="utf-8"))], axis=0
        )
        cut = 1 + tf.size(context.flat_values)
        return {
            "words": words,
            "characters": characters.to_tensor(shape=(None, WORD_CHARACTERS)),
            "context": _at_least(ROOM, context.with_flat_values(number[1:cut]).to_tensor()),
            "query": _at_least(1, query.with_flat_values(number[cut:]).to_tensor()),
        }


def reading_archive(model, vocabulary, characters):
    """The endpoint `answer`, also `serving_default`, of a model.

        passage      string (B,)     UTF-8; anything else is refused
        question     string (B,)
     -> answer       string (B,)     the best part of the passage; "" if the passage or the question
        has no word start, end   int32 (B,)      its place in the passage, in characters; -1 for
        none score        float32 (B,)    sum of two logits, comparable between passages; the lowest
        float32 for none probability  float32 (B,)    `p1 p2` within the passage; 0 for none

    These are the names and values of `predictor.Found`. `n_best_answer` and so on, `(B, K)`, are
    those of its `n_best`, answers that share no word. `vocabulary` and `characters` are those of
    the model's words and characters.
    """
    text = ReadingText(vocabulary, characters)

    def answer(passage, question):
        passage, question = (
            ensure_shape(passage, "passage", "B"),
            ensure_shape(question, "question", "B"),
        )
        # with U+FFFD for what is no UTF-8
        valid = tf.strings.unicode_transcode(passage, "UTF-8", "UTF-8")
        same = tf.debugging.assert_equal
        checks = [
            same(
                valid == passage,
                True,
                "passage must be UTF-8: places in other bytes have no meaning",
            ),
            same(
                tf.shape(passage), tf.shape(question), "passage and question must be equally many"
            ),
        ]
        passage, question = require(checks, passage, question)
        tokens, starts, ends = text.tokens(passage)
        query, _, _ = text.tokens(question)
        logits, penalty = (
            model(text.inputs(tokens, query), training=False),
            model.config.length_penalty,
        )
        first, last, score = best_apart(*best_spans(logits, MAX_LENGTH, SPANS, penalty), BEST)
        real = tf.logical_and(score > LOWEST, (query.row_lengths() > 0)[:, None])
        first, last = tf.where(real, first, 0), tf.where(real, last, 0)
        start = tf.gather(_at_least(1, starts.to_tensor()), first, batch_dims=1)
        end = tf.gather(_at_least(1, ends.to_tensor()), last, batch_dims=1)
        copies, length = tf.repeat(passage[:, None], BEST, axis=1), tf.where(real, end - start, 0)
        log_z = tf.reduce_sum(tf.reduce_logsumexp(logits, axis=2), axis=1, keepdims=True)
        log_p = score + penalty * tf.cast(last - first, tf.float32) - log_z
        n_best = {
            "answer": tf.strings.substr(copies, start, length, unit="UTF8_CHAR"),
            "start": tf.where(real, start, -1),
            "end": tf.where(real, end, -1),
            "score": tf.where(real, score, NO_SCORE),
            "probability": tf.where(real, tf.exp(log_p), 0.0),
        }
        best = {name: value[:, 0] for name, value in n_best.items()}
        return best | {f"n_best_{name}": value for name, value in n_best.items()}

    inputs = {"passage": "B", "question": "B"}
    return build_archive({"answer": (answer, inputs)}, [text.words.table, text.characters.table])


def best_apart(first, last, score, count):
    """`predictor.best_apart` in a graph: of spans `(B, N)`, the best first, `count` that share no
    word, `(B, count)`; their scores are below `LOWEST` where there are fewer."""
    kept = []
    for _ in range(count):
        best = tf.argmax(score, axis=1)[:, None]
        found = [tf.gather(each, best, batch_dims=1) for each in (first, last, score)]
        kept.append(found)
        score = tf.where((last < found[0]) | (first > found[1]), score, MASKED_LOGIT)
    return [tf.concat(each, axis=1) for each in zip(*kept, strict=True)]


def _length(texts):
    return tf.strings.length(texts, unit="UTF8_CHAR")


def _at_least(columns, x):
    return tf.pad(x, [[0, 0], [0, tf.maximum(columns - tf.shape(x)[1], 0)]])
