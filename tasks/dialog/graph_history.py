"""Reads conversations in a TensorFlow graph, as `tasks.dialog.reader.DialogReader` does in Python.

Shape suffixes:
    B dialogs   M sentences of a history; it grows by the opening and by a silence
    S sentences of a batch, B * M   W words   E entities, counted from 1
"""

import tensorflow as tf

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.engine.endpoints import ensure_shape, require
from colloquy.tasks.dialog.graph_text import DialogText, lookup_table
from colloquy.tasks.dialog.split import SILENT, SPEAKERS

USER = SPEAKERS["user"]
BOT = SPEAKERS["bot"]
PADDING = 0


class HistoryReader:
    """Reads conversations, and makes the inputs of model and action mask.

    Conversations are two arrays `(B, M)`: the texts, string, and the speakers, int32 numbers of
    `SPEAKERS`, 0 for padding.

    Args:
        domain: A `tasks.dialog.domain.Domain`.
        reader: Its `DialogReader`.
    """

    def __init__(self, domain, reader):
        self.text = DialogText(domain, reader)
        self.entities = reader.entities
        self.opening = [turn.text for turn in reader.opening]
        self.candidate_numbers = lookup_table(domain.candidate_numbers, default=-1)
        self.speaker_numbers = lookup_table({"": PADDING, **SPEAKERS}, default=-1)
        self.tables = [*self.text.tables, self.candidate_numbers, self.speaker_numbers]

    # === Conversations ===

    def read(self, texts_BM, speakers_BM):
        """Reads texts and names of speakers, string `(B, M)`, as `DialogReader.read` does.

        Returns:
            The texts and the speakers.
            The place of each conversation's last sentence, which is the user's, int32 `(B, 1)`.
        """
        texts_BM, speakers_BM = self._checked(texts_BM, speakers_BM)
        texts_BM = self.text.read(texts_BM, speakers_BM == USER)
        texts_BM, speakers_BM = self._without_remarks(texts_BM, speakers_BM)
        if self.opening:
            texts_BM, speakers_BM = self._with_opening(texts_BM, speakers_BM)
        return _ending_with_user(texts_BM, speakers_BM)

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

    def _without_remarks(self, texts_BM, speakers_BM):
        """Makes padding of the sentences that `DialogReader.read` leaves out.

        These are the bot's sentences that are no candidates, and the user's sentences before them.
        """
        is_candidate_BM = self.candidate_numbers.lookup(texts_BM) >= 0
        is_remark_BM = (speakers_BM == BOT) & ~is_candidate_BM
        is_before_remark_BM = tf.pad(is_remark_BM[:, 1:], [[0, 0], [0, 1]])
        is_answered_BM = (speakers_BM == USER) & is_before_remark_BM
        is_left_out_BM = is_remark_BM | is_answered_BM
        texts_BM = tf.where(is_left_out_BM, "", texts_BM)
        return texts_BM, tf.where(is_left_out_BM, PADDING, speakers_BM)

    def _with_opening(self, texts_BM, speakers_BM):
        """Puts the opening before conversations that the user begins, and padding before others."""
        is_said_BM = speakers_BM != PADDING
        is_first_BM = is_said_BM & (tf.cumsum(tf.cast(is_said_BM, tf.int32), axis=1) == 1)
        lacks_opening_BM = is_first_BM & (speakers_BM == USER) & (texts_BM != SILENCE)
        lacks_opening_B1 = tf.reduce_any(lacks_opening_BM, axis=1, keepdims=True)
        opening_B2 = tf.where(lacks_opening_B1, [self.opening], "")
        speakers_B2 = tf.where(lacks_opening_B1, [[USER, BOT]], PADDING)
        return (
            tf.concat([opening_B2, texts_BM], axis=1),
            tf.concat([speakers_B2, speakers_BM], axis=1),
        )

    # === Arrays ===

    def collate(self, texts_BM, speakers_BM, last_B1):
        """Makes the inputs for what `read` returns, as `DialogReader.collate` does."""
        words_SW = self.text.split(tf.reshape(texts_BM, [-1]))
        ids_SW, typed_ids_SW, entities_SE = self.text.encode(words_SW)
        mentions_SE = tf.math.bincount(
            entities_SE,
            minlength=1 + self.entities,
            maxlength=1 + self.entities,
            axis=-1,
            binary_output=True,
        )
        said_S = tf.strings.reduce_join(words_SW, axis=1, separator=" ")
        said_S = tf.strings.strip(said_S)  # `words_SW` is padded with ""
        responses_S = tf.where(said_S == SILENCE, SILENT, 1 + self.candidate_numbers.lookup(said_S))

        # Times count the user's sentences. What comes before the first one has its time.
        times_BM = tf.cumsum(tf.cast(speakers_BM == USER, tf.int32), axis=1)
        times_BM = tf.maximum(times_BM, 1)
        last_time_B1 = tf.gather(times_BM, last_B1, axis=1, batch_dims=1)
        # Row 0 of `words` is an empty sentence, which stands for padding.
        numbers_BM = 1 + tf.reshape(tf.range(tf.size(speakers_BM)), tf.shape(speakers_BM))

        def by_dialog(values_S):
            """Splits the axis S into B and M."""
            shape = tf.concat([tf.shape(speakers_BM), tf.shape(values_S)[1:]], axis=0)
            return tf.reshape(values_S, shape)

        return {
            "words": tf.pad(ids_SW, [[1, 0], [0, 0]]),
            "typed_words": tf.pad(typed_ids_SW, [[1, 0], [0, 0]]),
            "sentences": tf.where(speakers_BM == PADDING, 0, numbers_BM),
            "speakers": speakers_BM,
            # Only the last sentence is answered, so its time is 0.
            "times": times_BM - last_time_B1,
            "turns": last_B1,
            "mentions": by_dialog(tf.cast(mentions_SE[:, 1:], tf.uint8)),  # entity 0 is padding
            "entities": by_dialog(entities_SE),
            "responses": by_dialog(responses_S),
        }


def _ending_with_user(texts_BM, speakers_BM):
    """Appends a silent user to conversations that do not end with the user, and padding to others.

    All get one more column. Returns texts, speakers and the place of the last sentence.
    """
    M = tf.shape(speakers_BM)[1]
    places_BM = tf.where(speakers_BM != PADDING, tf.range(M), -1)
    last_B1 = tf.reduce_max(places_BM, axis=1, keepdims=True)
    is_last_of_user_BM = (tf.range(M) == last_B1) & (speakers_BM == USER)
    ends_with_user_B1 = tf.reduce_any(is_last_of_user_BM, axis=1, keepdims=True)
    return (
        tf.concat([texts_BM, tf.where(ends_with_user_B1, "", SILENCE)], axis=1),
        tf.concat([speakers_BM, tf.where(ends_with_user_B1, PADDING, USER)], axis=1),
        tf.where(ends_with_user_B1, last_B1, M),
    )
