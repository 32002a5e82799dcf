"""A table of word vectors whose gradient is the exact one.

Shape suffixes:  ... any axes   V rows of the table   D features
"""

import keras
from keras import ops


@keras.saving.register_keras_serializable("colloquy")
class WordEmbedding(keras.layers.Embedding):
    """`keras.layers.Embedding` with a dense gradient on every backend.

    On TensorFlow a lookup's gradient is a list of rows (`IndexedSlices`), one for each occurrence of
    a word. Keras 3.15 squares these rows one by one for Adam's second moment and only then adds
    those of the same word: a sum of squares where the square of the sum is meant, so a word that
    occurs twice in a batch is moved by another step than Adam's. A dense gradient has one row a
    word. It also lets Adam move words that the batch does not hold, by their momentum, as the DAM
    release does.

    Args:
        As of `keras.layers.Embedding`.

    Call arguments:
        ids: Integer tensor of any shape.

    Returns:
        Float `(..., D)`.

    >>> layer = WordEmbedding(7, 3)
    >>> layer(np.array([[1, 2]])).shape.as_list()
    [1, 2, 3]
    """

    def call(self, ids):
        # The product's gradient is dense; its forward pass is optimised away.
        table_VD = ops.multiply(self.embeddings, ops.ones((), dtype=self.embeddings.dtype))
        return ops.cast(ops.take(table_VD, ids, axis=0), self.compute_dtype)
