"""Pointers to the entities that a conversation mentions.

Shape suffixes:
    B dialogs   T turns   M sentences   E entities   R turn distances   C candidates
    K entities of a candidate   D features   A the three weights a_1, a_2, a_3   N conditions
"""

import keras
from keras import ops

from colloquy.layers.candidates import add_ids, sum_by_candidate


@keras.saving.register_keras_serializable("colloquy")
class EntityPointer(keras.layers.Layer):
    """Scores entities by the sentences that mention them, and candidates by their entities.

    `P` is the 0-1 matrix of the entities that each sentence mentions. For the state `h` of a turn:

        a_n(m) = (W_n h) . (x_m + time_m)            weight of sentence m, n = 1, 2, 3
        first  = a_1 P                               score of an entity, by its sentences
        passed = first P^T                           score of a sentence, by its entities
        score  = (a_2 + a_3 * passed) P              score of an entity, by its sentences
               + (W_c h) . c                         and by the conditions `c` that it meets

    Why twice: the bot offers a restaurant, and a fact names the restaurant and its phone number.
    `passed` gives this fact a high score, and so the phone number gets one, which is in no other
    sentence.

    A candidate gains the sum of its entities' scores. An entity that is neither mentioned nor meets
    a condition scores 0. No entity has a vector of its own, so one that is not in train is like any
    other.

    Args:
        candidates: `(C, K)`.
        conditions: N.

    Call arguments:
        state: `h`, float `(B, T, D)`.
        sentences: `x`, float `(B, M, D)`.
        seen: Sentences that count for a turn, its own included, boolean `(B, T, M)`.
        mentions: `P`, `(B, M, E)`, 0 or 1.
        time_vectors: Float `(R, D)`.
        distances: One-hot float `(B, T, M, R)`.
        conditions: `c`, bool `(B, T, N, 1 + E)`, see `layers.dialog_state`.

    Returns:
        The gain of the logits, float `(B, T, C)`, and the entities' scores, float `(B, T, E)`.

    Not from a paper: an extension, after the pointers of Mem2Seq (Madotto et al. 2018) and GLMP (Wu
    et al. 2019).
    """

    def __init__(self, candidates, conditions, **kwargs):
        super().__init__(**kwargs)
        self.candidates = tuple(candidates)
        self.conditions = conditions

    def build(self, state_shape, *_):
        D = state_shape[-1]
        self.kernel_DAD = self.add_weight((D, 3, D), "glorot_uniform", name="kernel")
        self.kernel_DN = self.add_weight((D, self.conditions), "zeros", name="conditions")
        self.entity_CK = add_ids(self, "candidate_entities", self.candidates)

    def call(self, state, sentences, seen, mentions, time_vectors, distances, conditions):
        dtype = state.dtype
        P_BME = ops.cast(mentions, dtype)

        # The weights of the sentences: W h times x, and W h times the time of each distance
        Wh_BTAD = ops.einsum("btd,dae->btae", state, self.kernel_DAD)
        a_BATM = ops.einsum("btad,bmd->batm", Wh_BTAD, sentences)
        a_by_distance_BTAR = ops.einsum("btad,rd->btar", Wh_BTAD, time_vectors)
        a_BATM = a_BATM + ops.einsum("btar,btmr->batm", a_by_distance_BTAR, distances)
        a_BATM = a_BATM * ops.cast(seen, dtype)[:, None]

        # The scores by sentences
        first_BTE = ops.matmul(a_BATM[:, 0], P_BME)
        passed_BTM = ops.einsum("bte,bme->btm", first_BTE, P_BME)
        score_BTE = ops.matmul(a_BATM[:, 1] + a_BATM[:, 2] * passed_BTM, P_BME)

        # The scores by conditions; entity 0 is padding
        weight_BTN = ops.matmul(state, self.kernel_DN)
        c_BTNE = ops.cast(conditions[..., 1:], dtype)
        score_BTE = score_BTE + ops.einsum("btn,btne->bte", weight_BTN, c_BTNE)
        return sum_by_candidate(score_BTE, self.entity_CK), score_BTE
