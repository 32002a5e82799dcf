"""The SavedModel of a dialog model: it takes conversations as strings and returns responses.

Who calls it owns the database: looks up an `api_call` and appends the facts to the history.

Shape suffixes:
    B dialogs   M sentences of a history   S sentences of a batch   W words   E entities
    C candidates   K best candidates   R restaurants   V values that users may wish
"""

import numpy as np
import tensorflow as tf

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.engine.endpoints import build_archive, ensure_shape, require
from colloquy.layers.masking import LOWEST
from colloquy.tasks.dialog import remarks
from colloquy.tasks.dialog.domain import CALL
from colloquy.tasks.dialog.graph_text import DialogText, join_chosen, lookup_table
from colloquy.tasks.dialog.split import SPEAKERS
from colloquy.tasks.dialog.talk import BEST

USER = SPEAKERS["user"]
BOT = SPEAKERS["bot"]


def dialog_archive(predictor):
    """Builds the archive of a `tasks.dialog.predictor.DialogPredictor`.

    Its endpoint `respond`, also `serving_default`:

        history     string (B, M)   what was said, in order; "" of a user is silence
        speakers    string (B, M)   "user", "bot", "fact" (what a search found), or "" for padding
     -> response    string (B,)     the best candidate that the action mask allows; where none
                                    fits, a remark of `tasks.dialog.remarks`
        api_call    string (B,)     the response if it is a search, otherwise ""
        best        string (B, K)   at most five allowed candidates, the best first, then ""
        scores      float32 (B, K)  their probabilities among all candidates
        unknown     string (B,)     the user's last words that users of the training dialogs never
                                    say, with commas between them; no response fits these

    If the last sentence is not the user's, the user is silent. Padding is at the end.
    """
    respond = _Responder(predictor)
    tables = [
        respond.text.ids_of_words.table,
        *respond.text.normalizer.tables,
        respond.text.surface_forms,
        respond.text.users_words,
        respond.numbers,
        respond.speaker_numbers,
    ]
    inputs = {"history": "BM", "speakers": "BM"}
    return build_archive("respond", respond, inputs, tracked=[respond.model, *tables])


class _Responder:
    """The endpoint `respond`, see `dialog_archive`."""

    def __init__(self, predictor):
        domain = predictor.domain
        self.model = predictor.model
        self.mask = predictor.responder.mask
        self.config = predictor.config
        self.text = DialogText(domain, predictor.reader)
        self.opening = [turn.text for turn in predictor.reader.opening]
        self.candidates = tf.constant(domain.candidates)
        self.slot_values_text = domain.slot_values_text
        # Numbers and names of the values that a user may wish, and which restaurants have them. The
        # first restaurant stands for none and has nothing.
        slots = domain.slot_values
        values = []
        for number, entity in enumerate(domain.entities, 1):
            if entity.type in slots:
                values.append((number, entity.name))
        restaurants = domain.values_by_subject.values()
        self.value_V = np.array([number for number, _ in values], np.int32)
        self.names_V = tf.constant([name for _, name in values], tf.string)
        self.has_VR = np.zeros((len(values), 1 + len(restaurants)), np.float32)
        for v, (_, name) in enumerate(values):
            self.has_VR[v, 1:] = [name in values_of_one for values_of_one in restaurants]
        self.numbers = lookup_table(domain.candidate_numbers, default=-1)
        self.speaker_numbers = lookup_table({"": 0, **SPEAKERS}, default=-1)

    def __call__(self, history, speakers):
        texts_BM, speakers_BM = self._checked(history, speakers)
        texts_BM = self.text.read(texts_BM, speakers_BM == USER)
        texts_BM, speakers_BM = self._leave_out_remarks(texts_BM, speakers_BM)
        texts_BM, speakers_BM = self._put_in_opening(texts_BM, speakers_BM)
        texts_BM, speakers_BM, turn_B1 = _append_silence(texts_BM, speakers_BM)
        words_SW = self.text.split(tf.reshape(texts_BM, [-1]))
        inputs = self._encode(words_SW, speakers_BM, turn_B1)

        reads = {name: inputs[name] for name in self.config.reads}
        logits_BC = self.model(reads, training=False)[:, 0]
        asked_B = tf.gather(texts_BM, turn_B1[:, 0], batch_dims=1)
        unknown_B = self.text.unknown(asked_B)
        allowed_BTC, wished_BTE = self.mask(inputs)
        allowed_BC = allowed_BTC[:, 0] & (unknown_B == "")[:, None]
        remark_B = self._remark(unknown_B, wished_BTE[:, 0])
        return {**self._best(logits_BC, allowed_BC, remark_B), "unknown": unknown_B}

    def _checked(self, history, speakers):
        """Returns the history and the numbers of its speakers, both `(B, M)`."""
        history_BM = ensure_shape(history, "history", "BM")
        speakers_BM = ensure_shape(speakers, "speakers", "BM")
        same_shape = tf.debugging.assert_equal(
            tf.shape(history_BM),
            tf.shape(speakers_BM),
            "history and speakers must have one shape",
        )
        history_BM, speakers_BM = require([same_shape], history_BM, speakers_BM)

        speakers_BM = self.speaker_numbers.lookup(speakers_BM)
        known_speakers = tf.debugging.assert_non_negative(
            speakers_BM, "speakers must be user, bot, fact, or empty for padding"
        )
        return require([known_speakers], history_BM, speakers_BM)

    def _encode(self, words_SW, speakers_BM, turn_B1):
        """Makes the inputs of the model and of the mask, as `DialogSplit.collate` does."""
        ids_SW, typed_ids_SW, entities_SE = self.text.encode(words_SW)
        texts_S = tf.strings.strip(tf.strings.reduce_join(words_SW, axis=1, separator=" "))
        responses_S = tf.where(texts_S == SILENCE, -1, self.numbers.lookup(texts_S) + 1)
        mentions_SE = tf.math.bincount(
            entities_SE,
            minlength=1 + self.config.entities,
            maxlength=1 + self.config.entities,
            axis=-1,
            binary_output=True,
        )[:, 1:]
        numbers_BM = tf.reshape(tf.range(tf.size(speakers_BM)), tf.shape(speakers_BM))
        turns_BM = tf.cumsum(tf.cast(speakers_BM == USER, tf.int32), axis=1)
        turns_BM = tf.maximum(turns_BM, 1)
        asking_turn_B1 = tf.gather(turns_BM, turn_B1, axis=1, batch_dims=1)

        def by_dialog(values_S):
            shape = tf.concat([tf.shape(speakers_BM), tf.shape(values_S)[1:]], axis=0)
            return tf.reshape(values_S, shape)

        return {
            # Sentence 0 is empty.
            "words": tf.pad(ids_SW, [[1, 0], [0, 0]]),
            "typed_words": tf.pad(typed_ids_SW, [[1, 0], [0, 0]]),
            "sentences": tf.where(speakers_BM > 0, numbers_BM + 1, 0),
            "speakers": speakers_BM,
            # The turn that asks is the only one of the batch, so it counts as turn 0.
            "times": turns_BM - asking_turn_B1,
            "turns": turn_B1,
            "mentions": by_dialog(tf.cast(mentions_SE, tf.uint8)),
            "entities": by_dialog(entities_SE),
            "responses": by_dialog(responses_S),
        }

    def _leave_out_remarks(self, texts_BM, speakers_BM):
        """Makes padding of the sentences that `DialogReader.read` leaves out."""
        is_candidate_BM = self.numbers.lookup(texts_BM) >= 0
        is_remark_BM = (speakers_BM == BOT) & ~is_candidate_BM
        is_before_BM = tf.pad(is_remark_BM, [[0, 0], [0, 1]])[:, 1:]
        is_left_out_BM = is_remark_BM | (is_before_BM & (speakers_BM == USER))
        return tf.where(is_left_out_BM, "", texts_BM), tf.where(is_left_out_BM, 0, speakers_BM)

    def _put_in_opening(self, texts_BM, speakers_BM):
        """Puts the opening of the training dialogs before a history that the user begins."""
        if not self.opening:
            return texts_BM, speakers_BM
        is_first_BM = tf.cumsum(tf.cast(speakers_BM > 0, tf.int32), axis=1) == 1
        is_first_BM &= speakers_BM > 0
        is_spoken_BM = (speakers_BM == USER) & (texts_BM != SILENCE)
        lacks_opening_B1 = tf.reduce_any(is_first_BM & is_spoken_BM, axis=1, keepdims=True)
        opening_B2 = tf.where(lacks_opening_B1, tf.constant([self.opening]), "")
        speakers_B2 = tf.where(lacks_opening_B1, tf.constant([[USER, BOT]]), 0)
        return (
            tf.concat([opening_B2, texts_BM], axis=1),
            tf.concat([speakers_B2, speakers_BM], axis=1),
        )

    def _remark(self, unknown_B, wished_BE):
        """What `Responder` says where no response fits, string `(B,)`."""
        wished_BV = tf.gather(wished_BE, self.value_V, axis=1)
        wishes_BV = tf.cast(wished_BV, tf.float32)
        num_wishes_B = tf.reduce_sum(wishes_BV, axis=1)
        most_met_B = tf.reduce_max(tf.matmul(wishes_BV, self.has_VR), axis=1)
        remark_B = tf.where(
            most_met_B < num_wishes_B,
            remarks.NOTHING_FOUND + join_chosen(self.names_V, wished_BV),
            remarks.with_values(remarks.NO_RESPONSE, self.slot_values_text),
        )
        unknown_words_B = remarks.UNKNOWN_WORDS + unknown_B
        unknown_words_B += remarks.with_values("", self.slot_values_text)
        return tf.where(unknown_B == "", remark_B, unknown_words_B)

    def _best(self, logits_BC, allowed_BC, remark_B):
        """Returns the outputs of the endpoint for the allowed candidates."""
        K = min(BEST, len(self.candidates))
        _, best_BK = tf.math.top_k(tf.where(allowed_BC, logits_BC, LOWEST), K)
        is_allowed_BK = tf.gather(allowed_BC, best_BK, batch_dims=1)
        texts_BK = tf.where(is_allowed_BK, tf.gather(self.candidates, best_BK), "")
        scores_BK = tf.gather(tf.nn.softmax(logits_BC), best_BK, batch_dims=1)
        response_B = tf.where(is_allowed_BK[:, 0], texts_BK[:, 0], remark_B)
        is_call_B = tf.strings.regex_full_match(response_B, f"{CALL}.*")
        return {
            "response": response_B,
            "api_call": tf.where(is_call_B, response_B, ""),
            "best": texts_BK,
            "scores": tf.where(is_allowed_BK, scores_BK, 0.0),
        }


def _append_silence(texts_BM, speakers_BM):
    """Appends a silent user where the last sentence is not the user's, and padding elsewhere.

    Returns:
        The sentences and their speakers, `(B, M + 1)`.
        The place of the user's last sentence, int32 `(B, 1)`.
    """
    M = tf.shape(speakers_BM)[1]
    place_BM = tf.where(speakers_BM > 0, tf.range(M), -1)
    last_B1 = tf.reduce_max(place_BM, axis=1, keepdims=True)
    is_last_BM = tf.range(M) == last_B1
    is_asked_B1 = tf.reduce_any(is_last_BM & (speakers_BM == USER), axis=1, keepdims=True)
    text_B1 = tf.where(is_asked_B1, "", SILENCE)
    speaker_B1 = tf.where(is_asked_B1, 0, USER)
    return (
        tf.concat([texts_BM, text_B1], axis=1),
        tf.concat([speakers_BM, speaker_B1], axis=1),
        tf.where(is_asked_B1, last_B1, M),
    )
