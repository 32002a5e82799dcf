"""Sentences read word after word by a GRU (Cho et al. 2014).

Shape suffixes:  S sentences   W words   D features
"""

import keras

from colloquy.layers.bag_of_words import STDDEV
from colloquy.layers.masking import mask_from_ids
from colloquy.layers.word_embedding import WordEmbedding


@keras.saving.register_keras_serializable("colloquy")
class SentenceGRU(keras.layers.Layer):
    """A sentence is the state of a GRU after its last word.

    Args:
        vocabulary_size: Words with an id, 1 to this.
        dimension: D, of word vectors and state.
        train_embedding: `False`: frozen random word vectors.

    Call arguments:
        ids: Word ids, int32 `(S, W)`, 0 = padding, at the end, which changes no state.

    Returns:
        Float `(S, D)`; an empty sentence gives zeros.
    """

    def __init__(self, vocabulary_size, dimension, train_embedding=True, **kwargs):
        super().__init__(**kwargs)
        self.dimension = dimension
        self.embedding = WordEmbedding(
            vocabulary_size + 1,
            dimension,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=STDDEV),
            trainable=train_embedding,
            name="word_embedding",
            dtype=self.dtype_policy,
        )
        self.gru = keras.layers.GRU(dimension, name="gru", dtype=self.dtype_policy)

    def build(self, ids_shape):
        self.embedding.build(ids_shape)
        self.gru.build((None, None, self.dimension))

    def call(self, ids):
        return self.gru(self.embedding(ids), mask=mask_from_ids(ids))

    def compute_output_shape(self, ids_shape):
        return (*ids_shape[:-1], self.dimension)
