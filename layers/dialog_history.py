"""The memory of each turn of a dialog: the sentences before it, with speaker and distance in time.

A batch holds whole dialogs. Every turn of a dialog sees its own part of one list of encoded
sentences.

A *turn* is a sentence of the user that the bot answers. It is given by its index among the
sentences of its dialog.

Shape suffixes:  B dialogs   M sentences   T turns   R turn distances   D features
"""

import keras
from keras import ops

from colloquy.layers.word_embedding import look_up

SPEAKERS = 4
"""Padding, user, bot, knowledge."""


def history_mask(speakers, turns, including_turn=False):
    """Marks the sentences before each turn, boolean `(B, T, M)`.

    Args:
        speakers: Int `(B, M)`, 0 = padding.
        turns: Index of each turn's own sentence, int `(B, T)`.
        including_turn: Its own sentence counts too.

    >>> history_mask(np.array([[1, 2, 1, 0]]), np.array([[0, 2]])).numpy().tolist()
    [[[False, False, False, False], [True, True, False, False]]]
    """
    index_B1M = _indices(speakers)[:, None, :]
    turn_BT1 = turns[:, :, None]
    before = ops.less_equal if including_turn else ops.less
    is_before_BTM = before(index_B1M, turn_BT1)
    is_sentence_BM = speakers != 0
    return is_before_BTM & is_sentence_BM[:, None, :]


def causal_mask(speakers):
    """Marks, for each sentence, itself and the sentences before it, boolean `(B, M, M)`.

    Args:
        speakers: Int `(B, M)`, 0 = padding. Padding is never marked, but the sentences before it
            are marked for it, too.

    >>> causal_mask(np.array([[1, 2, 0]])).numpy().tolist()
    [[[True, False, False], [True, True, False], [True, True, False]]]
    """
    return history_mask(speakers, _indices(speakers), including_turn=True)


def _indices(x):
    """Numbers the places of each row, int of the shape of `x`: `[[7, 7, 7]] -> [[0, 1, 2]]`."""
    return ops.cumsum(ops.ones_like(x), axis=1) - 1


@keras.saving.register_keras_serializable("colloquy")
class SpeakerFeature(keras.layers.Layer):
    """Adds a learnt vector for the speaker to each sentence.

    It is the speaker word of Bordes et al. (2017), section 4.2. Sentences are float `(B, M, D)`,
    speakers int `(B, M)`. The implicit mask of the sentences is passed on.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, x_shape, speakers_shape):
        initializer = keras.initializers.RandomNormal(stddev=0.1)
        self.table = self.add_weight((SPEAKERS, x_shape[-1]), initializer, name="speakers")

    def call(self, x, speakers):
        return x + look_up(self.table, speakers)


@keras.saving.register_keras_serializable("colloquy")
class TimeFeature(keras.layers.Layer):
    """Learnt vectors for the number of turns since a sentence.

    They are the time word of Bordes et al. (2017), section 4.2. A sentence has another distance
    from each turn, so its time vector cannot be added to it once for all turns. Attention
    multiplies with the sum of both, and a product with a sum is a sum of products. So
    `layers.memory_attention` multiplies with the vectors of sentences and distances separately.

    Args:
        limit: R; longer distances count as `limit - 1`.
        dimension: D.

    Call arguments:
        times: Number of turns before each sentence, int `(B, M)`.
        turns: Any int `(B, T)`, for its shape: the t-th turn has t turns before it.

    Returns:
        The vectors, float `(R, D)`.
        The distances one-hot, float `(B, T, M, R)`. The distance of the turn itself and of anything
        after it is 0.
    """

    def __init__(self, limit, dimension, **kwargs):
        super().__init__(**kwargs)
        self.limit = limit
        self.dimension = dimension

    def build(self, times_shape, turns_shape):
        initializer = keras.initializers.RandomNormal(stddev=0.1)
        self.table = self.add_weight((self.limit, self.dimension), initializer, name="times")

    def call(self, times, turns):
        turns_before_BT1 = _indices(turns)[:, :, None]
        distance_BTM = turns_before_BT1 - times[:, None, :]
        distance_BTM = ops.clip(distance_BTM, 0, self.limit - 1)
        distance_BTMR = ops.one_hot(distance_BTM, self.limit, dtype=self.compute_dtype)
        return ops.cast(self.table, self.compute_dtype), distance_BTMR
