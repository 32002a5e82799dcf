"""The endpoints of a response-selection model.

Letters: B batch   N candidates of a context   T turns   K words
"""

import tensorflow as tf

from colloquy.data.tokenizers import GraphTokenizer
from colloquy.data.vocabulary import WordIds
from colloquy.engine.export import build_archive, ensure_shape, require

NO_SCORE = -1.0  # of a missing candidate: no sigmoid is negative
NO_LOGIT = tf.float32.min  # finite, because JSON knows no infinity


def selection_archive(model, vocabulary, text):
    """The endpoints of a response-selection model, a `keras.export.ExportArchive`.

    Texts are split into words by the tokenizer of the run's dataset (`prepare.py --tokenizer`):
    most take raw text as people write it; `whitespace` takes words separated by ASCII white space,
    written as in the run's corpus (case, punctuation), and its bytes need not be UTF-8. A word that
    the vocabulary lacks is `_UNK_`, and so is a literal `_EOS_`.

        score (also `serving_default`)
            turns       string (B, T)   the context, oldest turn first, filled up with "" at the
                                        end; an empty turn is " ", or "" before another
            response    string (B,)     "" is a response without words
         -> logit       float32 (B,)
            score       float32 (B,)    its sigmoid
        rank, which encodes a context once for all its candidates
            turns       string (B, T)   as above
            candidates  string (B, N)   "" is no candidate; " " is a response without words
         -> logits      float32 (B, N)  the lowest float32 where there is no candidate
            scores      float32 (B, N)  -1 where there is no candidate
            order       int32 (B, N)    the candidates' places in their row, best first; equal ones
                                        in the order given, missing ones last

    Args:
        model: Takes `{"turns", "responses"}`, returns logits `(B, N)`; has a `config`.
        vocabulary: `data.vocabulary.Vocabulary` that its ids come from.
        text: `tokenizer` and `lower` of `data.tokenizers.GraphTokenizer`.
    """
    ids, split = WordIds(vocabulary), GraphTokenizer(**text)

    def logits_of(turns, candidates):
        return _logits(model, ids, split, ensure_shape(turns, "turns", "BT"), candidates)

    def score(turns, response):
        logit = logits_of(turns, ensure_shape(response, "response", "B")[:, None])[:, 0]
        return {"score": tf.sigmoid(logit), "logit": logit}

    def rank(turns, candidates):
        candidates = ensure_shape(candidates, "candidates", "BN")
        logits = logits_of(turns, candidates)
        real = tf.not_equal(candidates, "")
        ranked = tf.where(real, logits, NO_LOGIT)
        return {
            "scores": tf.where(real, tf.sigmoid(logits), NO_SCORE),
            "logits": ranked,
            "order": tf.argsort(ranked, direction="DESCENDING", stable=True),
        }

    endpoints = {
        "score": (score, {"turns": "BT", "response": "B"}),
        "rank": (rank, {"turns": "BT", "candidates": "BN"}),
    }
    return build_archive(endpoints, [ids.table, *split.tables])


def _logits(model, ids, split, turns, candidates):
    """The model's logits, float32 `(B, N)`, for strings `(B, T)` and `(B, N)`."""
    config = model.config
    B, N = tf.unstack(tf.shape(candidates))
    check = tf.debugging.assert_equal(
        tf.shape(turns)[0], B, "turns and candidates or response must have equally many rows"
    )
    turns, candidates = require([check], turns, candidates)
    # Convolutions refuse to work on nothing: if B or N is 0, a padded one is added and removed.
    turns = tf.pad(turns, [[0, tf.maximum(1 - B, 0)], [0, 0]])
    candidates = tf.pad(candidates, [[0, tf.maximum(1 - B, 0)], [0, tf.maximum(1 - N, 0)]])

    def ids_of(max_turns, max_words, full_size):
        yield _ids(_last_turns(turns, max_turns, full_size), ids, split, max_words, full_size)
        yield _ids(candidates, ids, split, max_words, full_size)

    full_size = config.masking == "release"  # padding counts there, so it must be complete
    inputs = dict(
        zip(
            ("turns", "responses"),
            ids_of(config.max_turns, config.max_words, full_size),
            strict=True,
        )
    )
    if lexical := getattr(config, "lexical", None):
        inputs |= zip(
            ("context", "candidates"), ids_of(lexical.turns, lexical.words, False), strict=True
        )
    return model(inputs, training=False)[:B, :N]


def _last_turns(turns, max_turns, full_size):
    """The last turns of each context of strings `(B, T)`, filled up with "" at the end."""
    T = tf.shape(turns)[1]
    ends = tf.where(tf.not_equal(turns, ""), tf.range(T) + 1, 0)
    count = tf.reduce_max(ends, axis=1, keepdims=True)  # negative where T is 0: none is kept
    kept = tf.minimum(count, max_turns)
    turn = tf.range(max_turns if full_size else tf.maximum(tf.reduce_max(kept), 1))
    index = tf.where(turn < kept, count - kept + turn, T)
    turns = tf.concat([turns, tf.fill([tf.shape(turns)[0], 1], "")], axis=1)  # "" at place T
    return tf.gather(turns, index, batch_dims=1)


def _ids(texts, ids, split, max_words, full_size):
    """The ids of the last words of strings of any shape: int32 of that shape and an axis of words,
    0 = padding.
    """
    words = split(tf.reshape(texts, [-1]))[:, -max_words:]
    found = tf.ragged.map_flat_values(ids, words).to_tensor(shape=(None, max_words))
    if not full_size:
        found = found[:, : tf.maximum(tf.reduce_max(words.row_lengths()), 1)]
    return tf.reshape(found, tf.concat([tf.shape(texts), tf.shape(found)[1:]], axis=0))
