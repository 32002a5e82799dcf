"""The list of responses that a bot chooses from, and their match types.

Shape suffixes:
    B dialogs   T turns   M sentences   E entities   Y types   G groups   C candidates
    W words     D features
"""

import keras
from keras import ops


def add_ids(layer, name, shape):
    """Adds a table of ids to `layer`: an int32 weight, not trained, zeros until it is set."""
    return layer.add_weight(
        name=name, shape=shape, dtype="int32", initializer="zeros", trainable=False
    )


@keras.saving.register_keras_serializable("colloquy")
class IdTable(keras.layers.Layer):
    """A table of ids stored in the model, int32, such as the words of its candidates.

    It is set by `model.set_weights`. It is called with any tensor, which only makes it part of a
    functional model.
    """

    def __init__(self, shape, **kwargs):
        super().__init__(**kwargs)
        self.shape = tuple(shape)

    def build(self, x_shape):
        self.ids = add_ids(self, "ids", self.shape)

    def call(self, x):
        return ops.convert_to_tensor(self.ids)


def sum_of_rows(values_BTN, numbers_CK):
    """For each candidate the sum of the values of its numbers, float `(B, T, C)`.

    Numbers count from 1; 0 adds nothing.
    """
    B, T, N = ops.shape(values_BTN)
    # Transposed, the values of one number are a row, and gathering whole rows is fast.
    rows_NX = ops.pad(ops.transpose(ops.reshape(values_BTN, (B * T, N))), [[1, 0], [0, 0]])
    sums_CX = ops.sum(ops.take(rows_NX, numbers_CK, axis=0), axis=1)
    return ops.reshape(ops.transpose(sums_CX), (B, T, ops.shape(numbers_CK)[0]))


@keras.saving.register_keras_serializable("colloquy")
class MatchTypes(keras.layers.Layer):
    """The gain of a candidate's score from its words that occur in the conversation.

    Bordes et al. 2017, section 4.2. The learnt vector of type `t` is added to a candidate's own if
    one of its words is a value of `t` in the knowledge base and was said or known before. No array
    `(B, T, C, Y)` is formed.

    Args:
        types: Y.
        groups: `(G, members)`, shape of the groups' members; see
            `tasks.dialog.tables.ModelTables.match_groups`.
        candidates: `(C, groups per candidate)`.

    Call arguments:
        state: Float `(B, T, D)`, which the candidates are multiplied with.
        mentions: Sentence m mentions entity e, `(B, M, E)`, 0 or 1.
        seen: Sentences that count for a turn, its own included, boolean `(B, T, M)`.

    Returns:
        The gain of the logits, float `(B, T, C)`.
    """

    def __init__(self, types, groups, candidates, **kwargs):
        super().__init__(**kwargs)
        self.types = types
        self.groups = tuple(groups)
        self.candidates = tuple(candidates)

    def build(self, state_shape, *_):
        initializer = keras.initializers.RandomNormal(stddev=0.1)
        self.type_YD = self.add_weight(
            name="types", shape=(self.types, state_shape[-1]), initializer=initializer
        )
        self.member_GN = add_ids(self, "members", self.groups)
        self.type_G = add_ids(self, "group_types", self.groups[:1])
        self.group_CK = add_ids(self, "candidate_groups", self.candidates)

    def call(self, state, mentions, seen):
        dtype = state.dtype
        count_BTE = ops.matmul(ops.cast(seen, dtype), ops.cast(mentions, dtype))
        present_BTE = ops.cast(ops.greater(count_BTE, 0), dtype)

        # A group is present if one of its members is; member 0 is padding.
        padded_BTE = ops.pad(present_BTE, [[0, 0], [0, 0], [1, 0]])
        present_BTG = ops.max(ops.take(padded_BTE, self.member_GN, axis=2), axis=3)

        gain_BTY = ops.einsum("btd,yd->bty", state, self.type_YD)
        gain_BTG = ops.take(gain_BTY, self.type_G, axis=2)
        return sum_of_rows(present_BTG * gain_BTG, self.group_CK)
