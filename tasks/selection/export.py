"""The endpoint of a response-selection model.

Letters: B batch   N candidates of a context   T turns   K words
"""

import tensorflow as tf

from colloquy.data.tokenizers import GraphTokenizer
from colloquy.data.vocabulary import WordIds
from colloquy.engine.endpoints import (
    Endpoint,
    at_least_one_column,
    build_archive,
    ensure_shape,
    require,
)

# Score of a missing candidate: no sigmoid is negative.
NO_SCORE = -1.0
# Its logit, finite because JSON knows no infinity.
NO_LOGIT = tf.float32.min
# Texts that `str.strip` makes empty.
WHITE_SPACE = r"[\s\x0b\x1c-\x1f\x{85}\pZ]*"


def selection_archive(model, vocabulary, text):
    """The endpoint `rank`, also `serving_default`, of a model: a `keras.export.ExportArchive`.

    Texts are split into words by the tokenizer of the run's dataset (`prepare.py --tokenizer`):
    most take raw text as people write it; `whitespace` takes words separated by ASCII white space,
    written as in the run's corpus (case, punctuation), and its bytes need not be UTF-8. A word that
    the vocabulary lacks is `_UNK_`, and so is a literal `_EOS_`.

        turns       string (B, T)   the context, oldest turn first; a turn of white space is
                                    dropped, wherever it is, so "" pads a shorter context
        candidates  string (B, N)   "" is no candidate; " " is a response without words
     -> logits      float32 (B, N)  the lowest float32 where there is no candidate
        scores      float32 (B, N)  -1 where there is no candidate, else the sigmoid of the logit
        order       int32 (B, N)    the candidates' places in their row, best first; equal ones in
                                    the order given, missing ones last

    A context is encoded once for all its candidates.

    Args:
        model: Takes `{"turns", "responses"}`, returns logits `(B, N)`; has a `config`.
        vocabulary: `data.vocabulary.Vocabulary` that its ids come from.
        text: `data.tokenizer_config.TokenizerConfig`.
    """
    word_ids = WordIds(vocabulary)
    split_words = GraphTokenizer(text.tokenizer, text.lower)

    def rank(turns, candidates):
        candidates = ensure_shape(candidates, "candidates", "BN")
        turns = ensure_shape(turns, "turns", "BT")
        logits = _logits(model, word_ids, split_words, turns, candidates)
        is_candidate = tf.not_equal(candidates, "")
        ranked = tf.where(is_candidate, logits, NO_LOGIT)
        return {
            "scores": tf.where(is_candidate, tf.sigmoid(logits), NO_SCORE),
            "logits": ranked,
            "order": tf.argsort(ranked, direction="DESCENDING", stable=True),
        }

    endpoint = Endpoint("rank", rank, inputs={"turns": "BT", "candidates": "BN"})
    return build_archive([endpoint], tracked=[word_ids.table, *split_words.tables])


def _logits(model, word_ids, split_words, turns, candidates):
    """The model's logits, float32 `(B, N)`, for strings `(B, T)` and `(B, N)`."""
    has_equal_rows = tf.debugging.assert_equal(
        tf.shape(turns)[0],
        tf.shape(candidates)[0],
        "turns and candidates must have equally many rows",
    )
    turns, candidates = require([has_equal_rows], turns, candidates)

    def encode(texts, max_words, full_size=False):
        return _ids(texts, word_ids, split_words, max_words, full_size)

    config = model.config
    full_size = config.masking == "release"  # padding counts there, so it must be complete
    read_turns = _last_turns(turns, config.max_turns, full_size)
    inputs = {
        "turns": encode(read_turns, config.max_words, full_size),
        "responses": encode(candidates, config.max_words, full_size),
    }
    lexical = getattr(config, "lexical", None)
    if lexical is not None:
        matched_turns = _last_turns(turns, lexical.turns, full_size=False)
        inputs["context"] = encode(matched_turns, lexical.words)
        inputs["candidates"] = encode(candidates, lexical.words)
    return model(inputs, training=False)


def _last_turns(turns, max_turns, full_size):
    """The last turns with text of each context of strings `(B, T)`, padded with "" at the end.

    Others are dropped, as `SelectionPredictor.Instance` does.
    """
    is_empty_BT = tf.strings.regex_full_match(turns, WHITE_SPACE)
    kept = tf.ragged.boolean_mask(turns, ~is_empty_BT)[:, -max_turns:]
    return _padded(kept, max_turns, full_size)


def _ids(texts, word_ids, split_words, max_words, full_size):
    """The ids of the last words of strings.

    Args:
        texts: String tensor of any shape.
        full_size: Pad to `max_words`, not to the longest text.

    Returns:
        Int32, of the shape of `texts` and an axis of words; 0 = padding.
    """
    flat_texts = tf.reshape(texts, [-1])
    words = split_words(flat_texts)[:, -max_words:]
    ids = _padded(tf.ragged.map_flat_values(word_ids, words), max_words, full_size)
    shape = tf.concat([tf.shape(texts), tf.shape(ids)[1:]], axis=0)
    return tf.reshape(ids, shape)


def _padded(rows, max_width, full_size):
    """A ragged tensor `(R, ...)` as a tensor with `max_width` columns, or as few as it needs."""
    if full_size:
        return rows.to_tensor(shape=(None, max_width))
    return at_least_one_column(rows.to_tensor())
