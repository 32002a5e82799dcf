"""The endpoint of a response-selection model.

Letters: B batch   N candidates of a context   T turns   K words
"""

import functools

import tensorflow as tf

from colloquy.data.graph_tokenizer import GraphTokenizer
from colloquy.data.graph_vocabulary import WordIds
from colloquy.engine.endpoints import (
    at_least_one_column,
    build_archive,
    ensure_shape,
    require,
)

# Score of a missing candidate: no sigmoid is negative.
NO_SCORE = -1.0
# Logit of a missing candidate: finite, because JSON has no infinity.
NO_LOGIT = tf.float32.min
# Texts that `str.strip` makes empty.
WHITE_SPACE = r"[\s\x0b\x1c-\x1f\x{85}\pZ]*"


def selection_archive(model, vocabulary, text):
    """Builds a `keras.export.ExportArchive` with one endpoint, `rank`, also `serving_default`.

    Texts are split into words by the tokenizer of the run's dataset (`prepare.py --tokenizer`):
    most take raw text as people write it; `whitespace` takes words separated by ASCII white space,
    written as in the run's corpus (case, punctuation), and its bytes need not be UTF-8. A word that
    the vocabulary lacks has the id that `Vocabulary.encode` gives it; so has a literal `_EOS_`.

        turns       string (B, T)   the context, oldest turn first; a turn of white space is
                                    dropped, wherever it is, so "" pads a shorter context
        candidates  string (B, N)   "" is no candidate; " " is a response without words
     -> logits      float32 (B, N)  the lowest float32 where there is no candidate
        scores      float32 (B, N)  -1 where there is no candidate, else the sigmoid of the logit
        order       int32 (B, N)    the candidates' places in their row, best first; equal ones in
                                    the order given, missing ones last

    The model reads the last turns and the last words of each text, up to the limits of its config.
    A context is encoded once for all its candidates.

    Args:
        model: Takes `{"turns", "responses"}`, with a lexical match also `{"context",
            "candidates"}`; returns logits `(B, N)`. It has a `config`.
        vocabulary: `data.vocabulary.Vocabulary` that its ids come from.
        text: `data.tokenizer_config.TokenizerConfig`.
    """
    word_ids = WordIds(vocabulary)
    split_words = GraphTokenizer(text.tokenizer, text.lower)
    encode = functools.partial(_encode, word_ids, split_words)

    def rank(turns, candidates):
        candidates = ensure_shape(candidates, "candidates", "BN")
        turns = ensure_shape(turns, "turns", "BT")
        model_logits = _logits(model, encode, turns, candidates)
        is_candidate = tf.not_equal(candidates, "")
        logits = tf.where(is_candidate, model_logits, NO_LOGIT)
        return {
            "scores": tf.where(is_candidate, tf.sigmoid(model_logits), NO_SCORE),
            "logits": logits,
            "order": tf.argsort(logits, direction="DESCENDING", stable=True),
        }

    inputs = {"turns": "BT", "candidates": "BN"}
    tables = [word_ids.table, *split_words.tables]
    return build_archive("rank", rank, inputs, tracked=[model, *tables])


def _logits(model, encode, turns, candidates):
    """The model's logits, float32 `(B, N)`, for strings `(B, T)` and `(B, N)`.

    `encode` is `_encode` with the words of the model.
    """
    check_rows = tf.debugging.assert_equal(
        tf.shape(turns)[0],
        tf.shape(candidates)[0],
        "turns and candidates must have equally many rows",
    )
    turns, candidates = require([check_rows], turns, candidates)

    config = model.config
    # With the masking of DAM's release, padding changes the logits, so inputs have their full size.
    full_size = config.masking == "release"
    read_turns = _last_turns(turns, config.max_turns, full_size)
    inputs = {
        "turns": encode(read_turns, config.max_words, full_size),
        "responses": encode(candidates, config.max_words, full_size),
    }
    lexical = getattr(config, "lexical", None)  # of DAM alone; it always ignores padding
    if lexical is not None:
        matched_turns = _last_turns(turns, lexical.turns, full_size=False)
        inputs["context"] = encode(matched_turns, lexical.words)
        inputs["candidates"] = encode(candidates, lexical.words)
    return model(inputs, training=False)


def _last_turns(turns, max_turns, full_size):
    """Selects the last `max_turns` turns with text of contexts `(B, T)`, and pads with "".

    Turns of white space are dropped first, as by `SelectionPredictor.Instance`.
    """
    is_empty_BT = tf.strings.regex_full_match(turns, WHITE_SPACE)
    kept = tf.ragged.boolean_mask(turns, ~is_empty_BT)[:, -max_turns:]
    return _padded(kept, max_turns, full_size)


def _encode(word_ids, split_words, texts, max_words, full_size=False):
    """Encodes the last `max_words` words of each text.

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
    """Pads a ragged tensor to `max_width` columns if `full_size`, else to its longest row, of one
    column at least.
    """
    if full_size:
        return rows.to_tensor(shape=(None, max_width))
    return at_least_one_column(rows.to_tensor())
