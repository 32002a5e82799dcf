"""A table of word vectors whose gradient is the exact one.

Shape suffixes:  ... any axes   V rows of the table   D features
"""

import keras
from keras import ops


def look_up(table_VD, ids):
    """The rows `ids` of a trained table, with a dense gradient."""
    # A product with 1 makes the gradient dense. TensorFlow's optimizer removes it from the forward
    # pass.
    one = ops.ones((), dtype=table_VD.dtype)
    return ops.take(ops.multiply(table_VD, one), ids, axis=0)


def as_ids(ids):
    """Ids as int32. `keras.Sequential` casts its input to floats, ids too.

    Raises:
        ValueError: The floats have 16 bits, which would round large ids to others.
    """
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if dtype in ("float16", "bfloat16"):
        raise ValueError(
            "ids must be integers: in mixed precision, a Sequential model of ids begins with "
            f"keras.Input(shape, dtype='int32'). Received: {dtype}"
        )
    return ops.cast(ids, "int32")


@keras.saving.register_keras_serializable("colloquy")
class WordEmbedding(keras.layers.Embedding):
    """`keras.layers.Embedding` whose gradient is dense on every backend.

    On TensorFlow a lookup's gradient is a list of rows (`IndexedSlices`), one per occurrence of a
    word. Keras 3.15 squares these rows one by one for Adam's second moment and only then adds those
    of the same word: a sum of squares instead of the square of the sum, so a word that occurs twice
    in a batch gets a wrong step. A dense gradient has one row per word. It also lets Adam move
    words outside the batch, by their momentum, as the DAM release does.

    Arguments are those of `keras.layers.Embedding`. With `mask_zero=True` the vectors carry the
    mask of the ids: 0 is padding.

    >>> WordEmbedding(7, 3)(np.array([[1, 2]])).shape.as_list()
    [1, 2, 3]
    """

    def call(self, ids):
        return ops.cast(look_up(self.embeddings, as_ids(ids)), self.compute_dtype)


@keras.saving.register_keras_serializable("colloquy")
class ReversibleWordEmbedding(WordEmbedding):
    """A `WordEmbedding` that also scores words: tied output weights (Press and Wolf 2017).

    Call arguments:
        inputs: Ids, integer of any shape; with `scored`, features, float `(..., D)`.
        scored: Number of rows, the first ones, with whose vectors the features are multiplied; 0:
            look up ids.

    Returns:
        Float `(..., D)`; with `scored` logits, float `(..., scored)`.
    """

    def call(self, inputs, scored=0):
        if scored:
            # The table is sliced: the gradient of a slice of the logits would be as large as they.
            table_DV = ops.cast(ops.transpose(self.embeddings[:scored]), self.compute_dtype)
            return ops.matmul(ops.cast(inputs, self.compute_dtype), table_DV)
        return super().call(inputs)

    def compute_mask(self, inputs, mask=None):
        if keras.backend.is_float_dtype(inputs.dtype):
            # Features are scored.
            return mask
        return super().compute_mask(inputs, mask)

    def compute_output_spec(self, inputs, scored=0):
        if scored:
            shape = (*inputs.shape[:-1], scored)
        else:
            shape = (*inputs.shape, self.output_dim)
        return keras.KerasTensor(shape, self.compute_dtype)
