"""The SavedModel of a reading comprehension model: strings in, answers and their offsets out.

Letters:
    B questions   T context words   J query words   N distinct tokens   L characters
"""

import tensorflow as tf

from colloquy.data.graph_normalization import GraphNormalizer
from colloquy.data.graph_vocabulary import WordIds
from colloquy.data.vocabulary import PADDING_ID
from colloquy.engine.endpoints import (
    at_least_one_column,
    build_archive,
    ensure_shape,
    require,
)
from colloquy.models.best_spans import best_spans
from colloquy.tasks.reading_comprehension.graph_tokens import find_tokens
from colloquy.tasks.reading_comprehension.tokens import WORD_CHARACTERS

NO_SCORE = tf.float32.min  # finite, because JSON knows no infinity


class ReadingText:
    """Makes the model's inputs of tokens, as `Questions.collate` does.

    Args:
        vocabulary: A `Vocabulary` of lower-case words.
        characters: A `Vocabulary` of characters.
    """

    def __init__(self, vocabulary, characters):
        self.words = WordIds(vocabulary)
        self.characters = WordIds(characters)
        self.normalize = GraphNormalizer()

    def inputs(self, context, query):
        """Makes the inputs of `models.bidaf.BiDAF` from tokens, ragged strings `(B, None)`.

        Each distinct token is looked up once. In contexts and queries, its number stands for it:

            context   ["Ann", "met", "Ann"]           becomes [1, 2, 1]
            query     ["Who", "met", "?"]             becomes [3, 2, 4]
            distinct  ["", "Ann", "met", "Who", "?"]  are numbered from 0
        """
        # No token is empty. The empty text comes first, so that its number is 0, as padding needs.
        all_tokens = tf.concat([[""], context.flat_values, query.flat_values], axis=0)
        distinct_N, numbers = tf.unique(self.normalize(all_tokens))
        sizes = [1, tf.size(context.flat_values), tf.size(query.flat_values)]
        _, context_numbers, query_numbers = tf.split(numbers, sizes)
        context_BT = context.with_flat_values(context_numbers).to_tensor()
        query_BJ = query.with_flat_values(query_numbers).to_tensor()

        word_ids_N = self.words(tf.strings.lower(distinct_N, encoding="utf-8"))
        letters = tf.strings.unicode_split(distinct_N, "UTF-8")[:, :WORD_CHARACTERS]
        character_ids = tf.ragged.map_flat_values(self.characters, letters)
        return {
            "words": tf.where(distinct_N == "", PADDING_ID, word_ids_N),
            "characters": character_ids.to_tensor(shape=(None, WORD_CHARACTERS)),
            "context": at_least_one_column(context_BT),
            "query": at_least_one_column(query_BJ),
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

    The outputs have the names and meanings of `answers.AnswerSpan` and `Answer`. The model reads
    each passage whole. The predictor reads a passage of more than `max_context` words in windows,
    so it may give another answer.

    Args:
        model: `models.bidaf.BiDAF`.
        vocabulary: A `Vocabulary` of lower-case words.
        characters: A `Vocabulary` of characters.
        scale: The run's `confidence.Scale`; `None`: no output `confidence` and no `good`.
    """
    text = ReadingText(vocabulary, characters)

    def answer(passage, question):
        passage, question = _checked(passage, question)
        tokens, starts, ends = find_tokens(passage)
        query, _, _ = find_tokens(question)
        logits = model(text.inputs(tokens, query), training=False)
        config = model.config
        first_B1, last_B1, score_B1 = best_spans(
            logits, config.max_answer_words, length_penalty=config.length_penalty
        )

        has_words = (tokens.row_lengths() > 0) & (query.row_lengths() > 0)
        start = _offset_at(starts, first_B1[:, 0], has_words)
        end = _offset_at(ends, last_B1[:, 0], has_words)
        score = score_B1[:, 0]
        outputs = {
            # With both offsets -1, this is an empty text.
            "answer": tf.strings.substr(
                passage, tf.maximum(start, 0), end - start, unit="UTF8_CHAR"
            ),
            "start": start,
            "end": end,
            "score": tf.where(has_words, score, NO_SCORE),
        }
        if scale is not None:
            confidence = tf.sigmoid(scale.score_weight * score + scale.offset)
            outputs["confidence"] = tf.where(has_words, confidence, 0.0)
            outputs["good"] = has_words & (confidence >= scale.threshold)
        return outputs

    tables = [text.words.table, text.characters.table, text.normalize.table]
    return build_archive("answer", answer, {"passage": "B", "question": "B"}, tracked=tables)


def _offset_at(offsets, token, has_words):
    """The offset of one token of each passage, int32 `(B,)`; -1 where `has_words` is false.

    Args:
        offsets: Those of all tokens, ragged int32 `(B, None)`.
        token: The number of the token in its passage, int32 `(B,)`; without words, any number.
    """
    offsets_BT = at_least_one_column(offsets.to_tensor())
    existing_token = tf.where(has_words, token, 0)
    offset = tf.gather(offsets_BT, existing_token, batch_dims=1)
    return tf.where(has_words, offset, -1)


def _checked(passage, question):
    """Returns both, if they are equally many and the passages are UTF-8; otherwise fails."""
    passage = ensure_shape(passage, "passage", "B")
    question = ensure_shape(question, "question", "B")
    # Decoding replaces invalid bytes with U+FFFD, so a text that has some changes.
    valid = tf.strings.unicode_transcode(passage, "UTF-8", "UTF-8")
    is_utf8 = tf.debugging.assert_equal(
        valid == passage, True, "passage must be UTF-8: offsets in other bytes have no meaning"
    )
    has_equal_number = tf.debugging.assert_equal(
        tf.shape(passage), tf.shape(question), "passage and question must be equally many"
    )
    return require([is_utf8, has_equal_number], passage, question)
