"""The candidates, responses that a bot chooses from: tables of ids for them, and match types.

Shape suffixes:
    B dialogs   T turns   M sentences   E entities   Y types   D features
    C candidates   G groups of entities   L members of a group
    N items     K items of a candidate    X turns of all dialogs
"""

import keras
from keras import ops


def add_ids(layer, name, shape):
    """Adds a table of ids to `layer`: an int32 weight, not trained, zeros until it is set."""
    return layer.add_weight(shape, "zeros", name=name, dtype="int32", trainable=False)


@keras.saving.register_keras_serializable("colloquy")
class IdTable(keras.layers.Layer):
    """A table of ids stored in the model, int32, such as the words of its candidates.

    `DialogModel.set_tables` sets it. The layer is called with any input of the model and ignores
    it: a functional model holds only layers that are called with a tensor.
    """

    def __init__(self, shape, **kwargs):
        super().__init__(**kwargs)
        self.shape = tuple(shape)

    def build(self, x_shape):
        self.ids = add_ids(self, "ids", self.shape)

    def call(self, x):
        return ops.convert_to_tensor(self.ids)


def sum_by_candidate(values_BTN, index_CK):
    """Adds up the values of each candidate, float `(B, T, C)`.

    Args:
        values_BTN: At each turn, the values of N items, such as groups or entities.
        index_CK: The K items of each candidate, counted from 1; 0: none.

    >>> values_BTN = np.array([[[10.0, 20.0, 30.0]]])
    >>> sum_by_candidate(values_BTN, np.array([[2, 0], [1, 3]])).numpy().tolist()
    [[[20.0, 40.0]]]
    """
    B, T, N = ops.shape(values_BTN)
    C = ops.shape(index_CK)[0]

    # An item's values become a row, because taking whole rows is fast. Row 0, of no item, is zero.
    values_XN = ops.reshape(values_BTN, (B * T, N))
    rows_NX = ops.pad(ops.transpose(values_XN), [[1, 0], [0, 0]])
    rows_CKX = ops.take(rows_NX, index_CK, axis=0)
    sums_XC = ops.transpose(ops.sum(rows_CKX, axis=1))
    return ops.reshape(sums_XC, (B, T, C))


@keras.saving.register_keras_serializable("colloquy")
class MatchTypes(keras.layers.Layer):
    """The gain of a candidate's score from its words that occur in the conversation.

    A candidate's score is the product of a state and the candidate's vector. By Bordes et al. 2017,
    section 4.2, the learnt vector of type `t` is added to that vector if one of the candidate's
    words is a value of `t` in the knowledge base and occurred before. So the score gains the
    product of the state and the vector of `t`.

    The values of one type in a candidate form a group: "rome" and "paris" in "from rome to paris".
    Candidates with the same values share it. The gain is computed once for each group, and a
    candidate gets the sum of its groups' gains.

    Args:
        types: Y.
        groups: `(G, L)`, shape of the groups' members; see
            `tasks.dialog.tables.ModelTables.match_groups`.
        candidates: `(C, K)`, shape of the candidates' groups.

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
        self.type_YD = self.add_weight((self.types, state_shape[-1]), initializer, name="types")
        self.member_GL = add_ids(self, "members", self.groups)
        self.type_G = add_ids(self, "group_types", self.groups[:1])
        self.group_CK = add_ids(self, "candidate_groups", self.candidates)

    def call(self, state, mentions, seen):
        dtype = state.dtype
        count_BTE = ops.matmul(ops.cast(seen, dtype), ops.cast(mentions, dtype))
        is_present_BTE = ops.cast(ops.greater(count_BTE, 0), dtype)

        # A group is present if one of its members is. Members count from 1: 0 is padding, which is
        # never present.
        with_padding_BTE = ops.pad(is_present_BTE, [[0, 0], [0, 0], [1, 0]])
        members_BTGL = ops.take(with_padding_BTE, self.member_GL, axis=2)
        is_present_BTG = ops.max(members_BTGL, axis=3)

        gain_BTY = ops.einsum("btd,yd->bty", state, self.type_YD)
        gain_BTG = ops.take(gain_BTY, self.type_G, axis=2)
        return sum_by_candidate(is_present_BTG * gain_BTG, self.group_CK)
