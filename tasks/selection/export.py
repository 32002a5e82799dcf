"""The endpoints of a response-selection model.

Letters: B batch   N candidates of a context   T turns   K words
"""

import copy

import keras
import tensorflow as tf

from data.tokenizers import GraphTokenizer
from data.vocabulary import WordIds
from engine.export import of_shape

NO_SCORE = -1.0  # of a missing candidate: no sigmoid is negative
NO_LOGIT = tf.float32.min  # finite, because JSON knows no infinity


class SelectionText:
    """Makes a selection model's ids out of strings, as prepare.py and `SelectionSplit.collate` do.

    Args:
        vocabulary: A `data.vocabulary.Vocabulary`.
        config: The model's config: what it reads of a context.
        text: `tokenizer` and `lower` of `data.tokenizers.GraphTokenizer`.
    """

    def __init__(self, vocabulary, config, text):
        self.ids, self.split = WordIds(vocabulary), GraphTokenizer(**text)
        self.max_turns = config.max_turns
        self.max_words = config.max_words
        self.full_size = config.masking == "release"  # where padding counts, it must all be there

    def whole(self, config):
        """The same for what a model's `lexical` match reads."""
        other = copy.copy(self)
        other.max_turns, other.max_words, other.full_size = config.lexical.turns, config.lexical.words, False
        return other

    def context(self, turns):
        """The last turns of each context.

        Args:
            turns: string `(B, T)`.

        Returns:
            int32 `(B, turns read, words read)`, 0 = padding.
        """
        T = tf.shape(turns)[1]
        ends = tf.where(tf.not_equal(turns, ""), tf.range(T) + 1, 0)
        count = tf.reduce_max(ends, axis=1, keepdims=True)  # negative where T is 0: none is kept
        kept = tf.minimum(count, self.max_turns)
        longest = self.max_turns if self.full_size else tf.maximum(tf.reduce_max(kept), 1)
        turn = tf.range(longest)
        index = tf.where(turn < kept, count - kept + turn, T)
        turns = tf.concat([turns, tf.fill([tf.shape(turns)[0], 1], "")], axis=1)  # "" at place T
        return self.words(tf.gather(turns, index, batch_dims=1))

    def words(self, texts):
        """The last words of each text.

        Args:
            texts: string of any shape.

        Returns:
            int32 of that shape, then the words read, 0 = padding.
        """
        words = self.split(tf.reshape(texts, [-1]))[:, -self.max_words :]
        ids = tf.ragged.map_flat_values(self.ids, words).to_tensor(shape=(None, self.max_words))
        if not self.full_size:
            ids = ids[:, : tf.maximum(tf.reduce_max(words.row_lengths()), 1)]
        return tf.reshape(ids, tf.concat([tf.shape(texts), tf.shape(ids)[1:]], axis=0))


def selection_archive(model, vocabulary, text):
    """The endpoints of a response-selection model.

    Texts are split into words by the tokenizer of the run's dataset (`prepare.py --tokenizer`): most take raw text as
    people write it; `whitespace` takes words separated by ASCII white space, written as in the run's corpus (case,
    punctuation), and its bytes need not be UTF-8. A word that the vocabulary lacks is `_UNK_`, and so is a literal
    `_EOS_`.

        score (also `serving_default`)
            turns       string (B, T)   the context, oldest turn first, filled up with "" at the end; an empty turn is
                                        " ", or "" before another
            response    string (B,)     "" is a response without words
         -> logit       float32 (B,)
            score       float32 (B,)    its sigmoid
        rank, which encodes a context once for all its candidates
            turns       string (B, T)   as above
            candidates  string (B, N)   "" is no candidate; " " is a response without words
         -> logits      float32 (B, N)  the lowest float32 where there is no candidate
            scores      float32 (B, N)  -1 where there is no candidate
            order       int32 (B, N)    the candidates' places in their row, best first; equal ones in the order given,
                                        missing ones last

    Args:
        model: Takes `{"turns", "responses"}`, returns logits `(B, N)`; has a `config`.
        vocabulary: The `data.vocabulary.Vocabulary` that its ids come from.
        text: As of `SelectionText`.

    Returns:
        A `keras.export.ExportArchive`.
    """
    text = SelectionText(vocabulary, model.config, text)

    def score(turns, response):
        response = of_shape(response, "response", "B")
        logit = _logits(model, text, turns, response[:, None])[:, 0]
        return {"score": tf.sigmoid(logit), "logit": logit}

    def rank(turns, candidates):
        candidates = of_shape(candidates, "candidates", "BN")
        logits = _logits(model, text, turns, candidates)
        real = tf.not_equal(candidates, "")
        ranked = tf.where(real, logits, NO_LOGIT)
        return {
            "scores": tf.where(real, tf.sigmoid(logits), NO_SCORE),
            "logits": ranked,
            "order": tf.argsort(ranked, direction="DESCENDING", stable=True),
        }

    archive = keras.export.ExportArchive()
    for table in (text.ids.table, *text.split.tables):
        archive.track(table)
    turns = tf.TensorSpec((None, None), tf.string, name="turns")
    response = tf.TensorSpec((None,), tf.string, name="response")
    candidates = tf.TensorSpec((None, None), tf.string, name="candidates")
    archive.add_endpoint("score", score, [turns, response])  # the first is serving_default too
    archive.add_endpoint("rank", rank, [turns, candidates])
    return archive


def _logits(model, text, turns, candidates):
    """The model's logits, float32 `(B, N)`, of strings `(B, T)` and `(B, N)`; `text` is a `SelectionText`."""
    turns = of_shape(turns, "turns", "BT")
    B, N = tf.unstack(tf.shape(candidates))
    tf.debugging.assert_equal(tf.shape(turns)[0], B, "turns and candidates or response must have equally many rows")
    # Convolutions refuse to work on nothing: where B or N is 0, a padded one comes and goes.
    rows, columns = [0, tf.maximum(1 - B, 0)], [0, tf.maximum(1 - N, 0)]

    def ids(text, *names):
        contexts = tf.pad(text.context(turns), [rows, [0, 0], [0, 0]])
        return dict(zip(names, [contexts, tf.pad(text.words(candidates), [rows, columns, [0, 0]])], strict=True))

    inputs = ids(text, "turns", "responses")
    if getattr(model.config, "lexical", None):
        inputs |= ids(text.whole(model.config), "context", "candidates")
    return model(inputs, training=False)[:B, :N]
