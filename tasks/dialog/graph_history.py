"""Reads conversations in a TensorFlow graph, as `DialogReader.read` does in Python.

Shape suffixes:
    B dialogs   M sentences of a history; it grows by the opening and by a silence
"""

from typing import Any, NamedTuple

import tensorflow as tf

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.engine.endpoints import ensure_shape, require
from colloquy.tasks.dialog.graph_names import lookup_table
from colloquy.tasks.dialog.split import SPEAKERS

USER = SPEAKERS["user"]
BOT = SPEAKERS["bot"]
PADDING = 0


class History(NamedTuple):
    """Conversations."""

    texts_BM: Any
    """Sentences, string."""
    speakers_BM: Any
    """Numbers of `SPEAKERS`, int32; 0 = padding."""


class HistoryReader:
    """Reads conversations.

    Args:
        text: The `DialogText` of the bot.
        opening: Texts of the opening of the training dialogs, `[SILENCE, greeting]` or empty.
        candidate_numbers: Lookup table from a candidate to its number; -1: no candidate.
    """

    def __init__(self, text, opening, candidate_numbers):
        self.text = text
        self.opening = opening
        self.candidate_numbers = candidate_numbers
        self.speaker_numbers = lookup_table({"": PADDING, **SPEAKERS}, default=-1)

    def read(self, texts_BM, speakers_BM):
        """Reads texts and names of speakers, string `(B, M)` each, as a `History`.

        The last sentence of each conversation is the user's.
        """
        texts_BM, numbers_BM = self._checked(texts_BM, speakers_BM)
        texts_BM = self.text.read(texts_BM, numbers_BM == USER)
        history = self._without_remarks(History(texts_BM, numbers_BM))
        if self.opening:
            history = self._with_opening(history)
        return _ending_with_user(history)

    def _checked(self, texts_BM, speakers_BM):
        """Checks the inputs of a call, and returns the texts and the numbers of the speakers."""
        texts_BM = ensure_shape(texts_BM, "history", "BM")
        speakers_BM = ensure_shape(speakers_BM, "speakers", "BM")
        same_shape = tf.debugging.assert_equal(
            tf.shape(texts_BM),
            tf.shape(speakers_BM),
            "history and speakers must have one shape",
        )
        numbers_BM = self.speaker_numbers.lookup(speakers_BM)
        known_speakers = tf.debugging.assert_non_negative(
            numbers_BM, "speakers must be user, bot, fact, or empty for padding"
        )
        return require([same_shape, known_speakers], texts_BM, numbers_BM)

    def _without_remarks(self, history):
        """Makes padding of the sentences that `DialogReader.read` leaves out.

        These are the bot's sentences that are no candidates, and the user's sentences before them.
        """
        is_candidate_BM = self.candidate_numbers.lookup(history.texts_BM) >= 0
        is_remark_BM = (history.speakers_BM == BOT) & ~is_candidate_BM
        is_before_remark_BM = tf.pad(is_remark_BM[:, 1:], [[0, 0], [0, 1]])
        is_answered_BM = (history.speakers_BM == USER) & is_before_remark_BM
        is_left_out_BM = is_remark_BM | is_answered_BM
        return History(
            tf.where(is_left_out_BM, "", history.texts_BM),
            tf.where(is_left_out_BM, PADDING, history.speakers_BM),
        )

    def _with_opening(self, history):
        """Puts the opening before conversations that the user begins, and padding before others."""
        texts_BM, speakers_BM = history
        M = tf.shape(speakers_BM)[1]
        places_BM = tf.where(speakers_BM != PADDING, tf.range(M), M)
        first_B1 = tf.reduce_min(places_BM, axis=1, keepdims=True)
        is_spoken_BM = (speakers_BM == USER) & (texts_BM != SILENCE)
        is_first_spoken_BM = is_spoken_BM & (tf.range(M) == first_B1)
        lacks_opening_B1 = tf.reduce_any(is_first_spoken_BM, axis=1, keepdims=True)
        opening_B2 = tf.where(lacks_opening_B1, [self.opening], "")
        speakers_B2 = tf.where(lacks_opening_B1, [[USER, BOT]], PADDING)
        return History(
            tf.concat([opening_B2, texts_BM], axis=1),
            tf.concat([speakers_B2, speakers_BM], axis=1),
        )


def last_places(speakers_BM):
    """Returns the place of the last sentence of each conversation, int32 `(B, 1)`; -1: none."""
    M = tf.shape(speakers_BM)[1]
    places_BM = tf.where(speakers_BM != PADDING, tf.range(M), -1)
    return tf.reduce_max(places_BM, axis=1, keepdims=True)


def _ending_with_user(history):
    """Appends a silent user to conversations that do not end with the user, and padding to others.

    All get one more column.
    """
    texts_BM, speakers_BM = history
    is_last_BM = tf.range(tf.shape(speakers_BM)[1]) == last_places(speakers_BM)
    is_last_of_user_BM = is_last_BM & (speakers_BM == USER)
    ends_with_user_B1 = tf.reduce_any(is_last_of_user_BM, axis=1, keepdims=True)
    return History(
        tf.concat([texts_BM, tf.where(ends_with_user_B1, "", SILENCE)], axis=1),
        tf.concat([speakers_BM, tf.where(ends_with_user_B1, PADDING, USER)], axis=1),
    )
