"""The SavedModel of a dialog model: it takes conversations as strings and returns responses.

It does not search. Its caller searches for an `api_call`, and appends the facts to the history.

Shape suffixes:
    B dialogs   M sentences of a history   T turns   C candidates   K best candidates
    E entities, counted from 1   V those of them that users may wish   R restaurants
"""

import numpy as np
import tensorflow as tf

from colloquy.engine.endpoints import build_archive
from colloquy.layers.masking import LOWEST
from colloquy.tasks.dialog import remarks
from colloquy.tasks.dialog.graph_history import HistoryReader
from colloquy.tasks.dialog.graph_text import join_chosen
from colloquy.tasks.dialog.knowledge import CALL
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
    inputs = {"history": "BM", "speakers": "BM"}
    tracked = [respond.model, *respond.reader.tables]
    return build_archive("respond", respond, inputs, tracked=tracked)


class _Responder:
    """The endpoint `respond`, see `dialog_archive`."""

    def __init__(self, predictor):
        self.model = predictor.model
        self.mask = predictor.responder.mask
        self.reader = HistoryReader(predictor.domain, predictor.reader)
        self.remarks = _Remarks(predictor.domain)
        self.candidates = tf.constant(predictor.domain.candidates)

    def __call__(self, history, speakers):
        texts_BM, speakers_BM, last_B1 = self.reader.read(history, speakers)
        inputs = self.reader.collate(texts_BM, speakers_BM, last_B1)
        model_inputs = {name: inputs[name] for name in self.model.config.reads}
        # There is only one turn: the last sentence is the one that the bot answers.
        logits_BC = self.model(model_inputs, training=False)[:, 0]
        allowed_BTC, wished_BTE = self.mask(inputs)

        # No candidate answers a sentence with unknown words: a remark names them.
        unknown_B = self.reader.text.unknown(tf.gather(texts_BM, last_B1[:, 0], batch_dims=1))
        allowed_BC = allowed_BTC[:, 0] & (unknown_B == "")[:, None]
        remark_B = self.remarks.make(unknown_B, wished_BTE[:, 0])
        return {**self._best(logits_BC, allowed_BC, remark_B), "unknown": unknown_B}

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
        self.values_text = domain.slot_values_text
        numbers = []
        for number, entity in enumerate(domain.entities, 1):
            if entity.type in domain.slot_values:
                numbers.append(number)
        names = [domain.entity(number).name for number in numbers]
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
        # A restaurant has all values that the user wishes if it has as many of them as there are.
        wished_BV = tf.gather(wished_BE, self.numbers_V, axis=1)
        wishes_BV = tf.cast(wished_BV, tf.float32)
        num_wishes_B1 = tf.reduce_sum(wishes_BV, axis=1, keepdims=True)
        has_all_BR = tf.matmul(wishes_BV, self.has_VR) == num_wishes_B1
        is_missing_B = (num_wishes_B1[:, 0] > 0) & ~tf.reduce_any(has_all_BR, axis=1)

        names_BV = tf.broadcast_to(self.names_V, tf.shape(wished_BV))
        remark_B = tf.where(
            is_missing_B,
            remarks.NOTHING_FOUND + join_chosen(names_BV, wished_BV),
            remarks.with_values(remarks.NO_RESPONSE, self.values_text),
        )
        name_unknown_B = remarks.UNKNOWN_WORDS + unknown_B
        # `with_values` of an empty remark is what follows a remark: ". i know cuisine: french".
        name_unknown_B += remarks.with_values("", self.values_text)
        return tf.where(unknown_B == "", remark_B, name_unknown_B)
