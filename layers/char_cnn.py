"""Word vectors made of their characters by a convolution (Kim 2014), BiDAF's layer 1.

Shape suffixes:  N words   L characters   E features of a character   F filters
"""

import keras
from keras import ops

from layers.masking import mask_from_ids, zero_padding
from layers.word_embedding import WordEmbedding


@keras.saving.register_keras_serializable("colloquy")
class CharacterCNN(keras.layers.Layer):
    """The strongest response of each filter to any window of a word's characters.

        c_n = max_l relu(W [e_l; ..; e_{l + width - 1}] + b)

    A window counts if it starts inside the word; what it holds after the word's end is zeros. So a word has the same
    vector however far it is padded, and a word of one letter has one window.

    Args:
        characters: Characters with an id, 1 to this.
        dimension: E; 8 in BiDAF.
        filters: F; 100 in BiDAF.
        width: Characters a window; 5 in BiDAF.
        dropout: Fraction of character features dropped in training.

    Call arguments:
        ids: Character ids, int32 `(N, L)`, 0 = padding, at the end.

    Returns:
        Float `(N, F)`; zeros for a word without characters.
    """

    def __init__(self, characters, dimension=8, filters=100, width=5, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.characters, self.dimension, self.filters, self.width = characters, dimension, filters, width
        self.dropout = dropout
        self.embedding = WordEmbedding(
            characters + 1,
            dimension,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=0.5),
            name="character_embedding",
            dtype=self.dtype_policy,
        )
        self.drop = keras.layers.Dropout(dropout, name="dropout", dtype=self.dtype_policy)
        self.convolution = keras.layers.Conv1D(
            filters, width, padding="valid", activation="relu", name="convolution", dtype=self.dtype_policy
        )

    def build(self, ids_shape):
        self.embedding.build(ids_shape)
        self.convolution.build((None, None, self.dimension))

    def call(self, ids, training=None):
        mask = mask_from_ids(ids)
        e_NLE = self.drop(zero_padding(self.embedding(ids), mask[..., None]), training=training)
        e_NLE = ops.pad(e_NLE, [[0, 0], [0, self.width - 1], [0, 0]])  # every character starts a window
        return ops.max(zero_padding(self.convolution(e_NLE), mask[..., None]), axis=1)  # relu: 0 is the least

    def compute_output_shape(self, ids_shape):
        return (ids_shape[0], self.filters)

    def get_config(self):
        names = ("characters", "dimension", "filters", "width", "dropout")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
