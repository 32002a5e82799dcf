"""The ids of words inside a TensorFlow graph, for exported models."""

from typing import Any

from colloquy.data.vocabulary import HASHED_BYTES, POWERS, PRIME, Vocabulary


class WordIds:
    """`Vocabulary.encode` inside a TensorFlow graph; an exported model must track `table`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        import tensorflow as tf

        self.vocabulary = vocabulary
        words = list(vocabulary.ids)
        ids = list(vocabulary.ids.values())
        initializer = tf.lookup.KeyValueTensorInitializer(
            keys=tf.constant(words, tf.string), values=tf.constant(ids, tf.int32)
        )
        self.table = tf.lookup.StaticHashTable(initializer, default_value=vocabulary.unk_id)

    def __call__(self, words: Any) -> Any:
        """The ids of words, string of any shape, `(n,)` if some are hashed: int32."""
        import tensorflow as tf

        ids = self.table.lookup(words)
        if not self.vocabulary.hashed:
            return ids
        hashed_ids = len(self.vocabulary) + 1 + _hash(words) % self.vocabulary.hashed
        return tf.where(ids == self.vocabulary.unk_id, tf.cast(hashed_ids, tf.int32), ids)


def _hash(words_N):
    """`hash_of` for each word, int64 `(N,)`."""
    import tensorflow as tf

    # Shorter words are padded with zeros, which add nothing.
    bytes_NH = tf.io.decode_raw(words_N, tf.uint8, fixed_length=HASHED_BYTES)
    powers_H = tf.constant(POWERS, tf.int64)
    return tf.reduce_sum(tf.cast(bytes_NH, tf.int64) * powers_H, axis=-1) % PRIME
