"""Layers 1 and 2 of BiDAF: a character convolution (Kim 2014) and highways.

Highways are those of Srivastava et al. 2015.

Shape suffixes:  N words   L characters   E features of a character   F filters   D features
"""

import keras
from keras import ops

from colloquy.layers.masking import mask_from_ids, zero_padding
from colloquy.layers.word_embedding import WordEmbedding


@keras.saving.register_keras_serializable("colloquy")
class CharacterCNN(keras.layers.Layer):
    """The strongest response of each filter to any window of a word's characters (BiDAF, layer 1).

        c_n = max_l relu(W [e_l; ..; e_{l + width - 1}] + b)

    A window counts if it starts inside the word; after the word's end it holds zeros. So a word has
    the same vector however far it is padded, and a word of one letter has one window.

    Args:
        characters: Characters with an id, 1 to this.
        dimension: E; 8 in BiDAF.
        filters: F; 100 in BiDAF.
        width: Characters per window; 5 in BiDAF.
        dropout: Fraction of character features dropped in training.

    Call arguments:
        ids: Character ids, int32 `(N, L)`, 0 = padding, at the end.

    Returns:
        Float `(N, F)`; zeros for a word without characters.
    """

    def __init__(self, characters, dimension=8, filters=100, width=5, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=2)
        policy = self.dtype_policy
        self.dimension = dimension
        self.filters = filters
        self.width = width
        start = keras.initializers.RandomNormal(stddev=0.5)
        self.embedding = WordEmbedding(
            characters + 1, dimension, start, name="character_embedding", dtype=policy
        )
        self.drop = keras.layers.Dropout(dropout, name="dropout", dtype=policy)
        self.convolution = keras.layers.Conv1D(
            filters, width, activation="relu", name="convolution", dtype=policy
        )

    def build(self, ids_shape):
        self.embedding.build(ids_shape)
        self.convolution.build((None, None, self.dimension))

    def call(self, ids):
        mask_NL1 = mask_from_ids(ids)[..., None]
        e_NLE = zero_padding(self.embedding(ids), mask_NL1)
        e_NLE = self.drop(e_NLE)
        # Every character starts a window.
        e_NLE = ops.pad(e_NLE, [[0, 0], [0, self.width - 1], [0, 0]])
        # Zeros do not change the maximum: after relu, 0 is the least.
        windows_NLF = zero_padding(self.convolution(e_NLE), mask_NL1)
        return ops.max(windows_NLF, axis=1)

    def compute_output_shape(self, ids_shape):
        return (ids_shape[0], self.filters)


@keras.saving.register_keras_serializable("colloquy")
class Highway(keras.layers.Layer):
    """Mixes each feature with its transform by a learnt gate (BiDAF, layer 2).

        y = t * relu(W x + b) + (1 - t) * x,    t = sigmoid(W_t x + b_t)

    From float `(..., D)` to the same shape and dtype.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, x_shape):
        D = x_shape[-1]
        self.transform = keras.layers.Dense(
            D, activation="relu", name="transform", dtype=self.dtype_policy
        )
        self.gate = keras.layers.Dense(
            D, activation="sigmoid", name="gate", dtype=self.dtype_policy
        )
        self.transform.build(x_shape)
        self.gate.build(x_shape)

    def call(self, x):
        t = self.gate(x)
        return t * self.transform(x) + (1 - t) * x

    def compute_output_shape(self, x_shape):
        return x_shape
