"""The SavedModel of a dialog model: it takes conversations as strings and returns responses.

Who calls it owns the database: looks up an `api_call` and appends the facts to the history.

Shape suffixes:
    B dialogs   M sentences of a history   S sentences of a batch, B * M   W words
    E entities, counted from 1   C candidates   K best candidates
    V values that users may wish   R restaurants
"""

import numpy as np
import tensorflow as tf

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.engine.endpoints import build_archive
from colloquy.layers.masking import LOWEST
from colloquy.tasks.dialog import remarks
from colloquy.tasks.dialog.graph_history import PADDING, USER, HistoryReader, last_places
from colloquy.tasks.dialog.graph_names import lookup_table
from colloquy.tasks.dialog.graph_text import DialogText, join_chosen
from colloquy.tasks.dialog.knowledge import CALL
from colloquy.tasks.dialog.split import SILENT
from colloquy.tasks.dialog.talk import BEST


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
    tables = [*respond.text.tables, respond.candidate_numbers, respond.reader.speaker_numbers]
    inputs = {"history": "BM", "speakers": "BM"}
    return build_archive("respond", respond, inputs, tracked=[respond.model, *tables])


class _Responder:
    """The endpoint `respond`, see `dialog_archive`."""

    def __init__(self, predictor):
        domain = predictor.domain
        self.model = predictor.model
        self.mask = predictor.responder.mask
        self.config = predictor.config
        self.candidates = tf.constant(domain.candidates)
        self.candidate_numbers = lookup_table(domain.candidate_numbers, default=-1)
        self.text = DialogText(domain, predictor.reader)
        opening = [turn.text for turn in predictor.reader.opening]
        self.reader = HistoryReader(self.text, opening, self.candidate_numbers)
        self.remarks = _Remarks(domain)

    def __call__(self, history, speakers):
        texts_BM, speakers_BM = self.reader.read(history, speakers)
        # The last sentence is the one that the bot answers.
        asked_B1 = last_places(speakers_BM)
        inputs = self._encode(texts_BM, speakers_BM, asked_B1)
        reads = {name: inputs[name] for name in self.config.reads}
        logits_BTC = self.model(reads, training=False)
        allowed_BTC, wished_BTE = self.mask(inputs)
        asked_texts_B = tf.gather(texts_BM, asked_B1[:, 0], batch_dims=1)
        unknown_B = self.text.unknown(asked_texts_B)

        # There is only one turn, the asked one. No response fits a sentence with unknown words.
        allowed_BC = allowed_BTC[:, 0] & (unknown_B == "")[:, None]
        remark_B = self.remarks.make(unknown_B, wished_BTE[:, 0])
        return {**self._best(logits_BTC[:, 0], allowed_BC, remark_B), "unknown": unknown_B}

    def _encode(self, texts_BM, speakers_BM, asked_B1):
        """Makes the inputs of the model and of the mask, as `DialogSplit.collate` does."""
        words_SW = self.text.split(tf.reshape(texts_BM, [-1]))
        ids_SW, typed_ids_SW, entities_SE = self.text.encode(words_SW)
        mentions_SE = tf.math.bincount(
            entities_SE,
            minlength=1 + self.config.entities,
            maxlength=1 + self.config.entities,
            axis=-1,
            binary_output=True,
        )[:, 1:]  # without padding, 0
        said_S = tf.strings.reduce_join(words_SW, axis=1, separator=" ")
        said_S = tf.strings.strip(said_S)  # `words_SW` is padded with ""
        candidates_S = 1 + self.candidate_numbers.lookup(said_S)
        responses_S = tf.where(said_S == SILENCE, SILENT, candidates_S)

        # In `words`, sentence 0 is empty.
        numbers_BM = 1 + tf.reshape(tf.range(tf.size(speakers_BM)), tf.shape(speakers_BM))
        # Turns count the user's sentences. Those of others before the first one belong to turn 1.
        turns_BM = tf.cumsum(tf.cast(speakers_BM == USER, tf.int32), axis=1)
        turns_BM = tf.maximum(turns_BM, 1)
        asked_turn_B1 = tf.gather(turns_BM, asked_B1, axis=1, batch_dims=1)

        def by_dialog(values_S):
            """Splits the axis S into B and M."""
            shape = tf.concat([tf.shape(speakers_BM), tf.shape(values_S)[1:]], axis=0)
            return tf.reshape(values_S, shape)

        return {
            "words": tf.pad(ids_SW, [[1, 0], [0, 0]]),
            "typed_words": tf.pad(typed_ids_SW, [[1, 0], [0, 0]]),
            "sentences": tf.where(speakers_BM == PADDING, 0, numbers_BM),
            "speakers": speakers_BM,
            # The asked turn is the only one that the model answers, so it is its turn 0.
            "times": turns_BM - asked_turn_B1,
            "turns": asked_B1,
            "mentions": by_dialog(tf.cast(mentions_SE, tf.uint8)),
            "entities": by_dialog(entities_SE),
            "responses": by_dialog(responses_S),
        }

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


class _Remarks:
    """Makes the remarks of `tasks.dialog.remarks`, which the bot says where no response fits."""

    def __init__(self, domain):
        self.slot_values_text = domain.slot_values_text
        numbers = []
        names = []
        for number, entity in enumerate(domain.entities, 1):
            if entity.type in domain.slot_values:
                numbers.append(number)
                names.append(entity.name)
        self.numbers_V = np.array(numbers, np.int32)
        self.names_V = tf.constant(names, tf.string)

        # 1 where a restaurant has a value.
        self.has_VR = np.zeros((len(names), len(domain.values_by_subject)), np.float32)
        for r, values in enumerate(domain.values_by_subject.values()):
            self.has_VR[:, r] = [name in values for name in names]

    def make(self, unknown_B, wished_BE):
        """Makes the remark to each user, string `(B,)`.

        Args:
            unknown_B: The user's unknown words, with commas between them.
            wished_BE: The entities that the user wishes.
        """
        name_unknown_B = remarks.UNKNOWN_WORDS + unknown_B
        name_unknown_B += remarks.with_values("", self.slot_values_text)
        return tf.where(unknown_B == "", self._name_missing(wished_BE), name_unknown_B)

    def _name_missing(self, wished_BE):
        """As `remarks.name_missing`."""
        wished_BV = tf.gather(wished_BE, self.numbers_V, axis=1)
        wishes_BV = tf.cast(wished_BV, tf.float32)
        num_wishes_B1 = tf.reduce_sum(wishes_BV, axis=1, keepdims=True)
        num_met_BR = tf.matmul(wishes_BV, self.has_VR)
        has_restaurant_B = tf.reduce_any(num_met_BR == num_wishes_B1, axis=1)
        has_wishes_B = num_wishes_B1[:, 0] > 0
        names_BV = tf.broadcast_to(self.names_V, tf.shape(wished_BV))
        return tf.where(
            has_wishes_B & ~has_restaurant_B,
            remarks.NOTHING_FOUND + join_chosen(names_BV, wished_BV),
            remarks.with_values(remarks.NO_RESPONSE, self.slot_values_text),
        )
