"""The SavedModel of a generation model: what was said as strings in, replies out.

Letters: B conversations   T turns   S source words   K replies   L words of a reply
"""

import keras
import tensorflow as tf

from data.tokenizers import TOKENIZERS, GraphTokenizer
from data.vocabulary import EOS_ID, UNK_ID, word_table
from engine.export import of_shape, without_cudnn
from models.decoding import decode
from tasks.generation.data import MAX_SOURCE


class GenerationText:
    """Makes a model's sources out of strings, as prepare.py does, and strings out of its replies.

    Args:
        vocabulary: A `data.vocabulary.Vocabulary`.
        tokenizer: Key of `data.tokenizers.TOKENIZERS`.
        lower: Whether texts are made lower case.
        turns: How many of the last turns a source has.

    Raises:
        UserError: where the tokenizer works outside of a graph alone.
    """

    def __init__(self, vocabulary, tokenizer, lower, turns):
        self.split, self.turns = GraphTokenizer(tokenizer, lower), turns
        self.ids = word_table(vocabulary)
        self.words = tf.constant(["", "", *vocabulary.words[1:]])  # padding and `_EOS_` are nothing
        self.join = TOKENIZERS[tokenizer].detokenize_in_graph

    def source(self, turns):
        """The ids of the last turns that are not empty, `_EOS_` after each; of none it is `_EOS_` alone.

        Args:
            turns: string `(B, T)`, the oldest first.

        Returns:
            int32 `(B, S)`, 0 = padding.
        """
        B, T = tf.unstack(tf.shape(turns))
        flat = tf.reshape(turns, [-1])
        tokens = self.split(flat)
        ids = tf.ragged.map_flat_values(self.ids.lookup, tokens)
        real = tf.reshape(tokens.row_lengths() > 0, (B, T))
        last = tf.cumsum(tf.cast(real, tf.int32), axis=1, reverse=True) <= self.turns
        kept = tf.reshape(tf.logical_and(real, last), [-1])
        ends = tf.fill([tf.size(flat), 1], EOS_ID)
        ids = tf.ragged.boolean_mask(tf.concat([ids, ends], axis=1), kept)
        B = tf.cast(B, tf.int64)
        row = tf.boolean_mask(tf.repeat(tf.range(B), T), kept)
        joined = tf.RaggedTensor.from_value_rowids(ids, row, B).merge_dims(1, 2)
        joined = tf.cast(joined, tf.int32)[:, -MAX_SOURCE:]
        padded = joined.to_tensor(shape=(None, None))
        padded = tf.pad(padded, [[0, 0], [0, tf.maximum(1 - tf.shape(padded)[1], 0)]])
        begins = tf.where(padded[:, :1] == 0, EOS_ID, padded[:, :1])
        return tf.concat([begins, padded[:, 1:]], axis=1)

    def texts(self, ids):
        """Replies as a reader expects them.

        Args:
            ids: int32 `(B, K, L)`.

        Returns:
            string `(B, K)`.
        """
        return self.join(tf.gather(self.words, ids))


def generation_archive(model, vocabulary, text_settings, decoding, seed=1):
    """The endpoint `reply`, also `serving_default`, of a generation model.

        turns       string (B, T)   what was said, the oldest turn first; "" is no turn
     -> replies     string (B, K)   as many as `decoding.beam`, the best first
        scores      float32 (B, K)  their log probability, by the length penalty where there is one

    Args:
        model: A `models.seq2seq.Seq2Seq`.
        vocabulary: The `data.vocabulary.Vocabulary` that its ids come from.
        text_settings: `tokenizer`, `lower` and `turns` of its dataset.
        decoding: A `models.decoding.Decoding`; the search runs inside the graph.
        seed: Of sampling: the same request gets the same replies.

    Returns:
        A `keras.export.ExportArchive`.

    Raises:
        UserError: as of `GenerationText`.
    """
    text = GenerationText(vocabulary, **text_settings)
    without_cudnn(model)

    def reply(turns):
        source = text.source(of_shape(turns, "turns", "BT"))
        shape = tf.stack([tf.shape(source)[0], decoding.beam, decoding.max_length])
        noise = tf.random.stateless_uniform(shape, [seed, 0]) if decoding.sample else None
        ids, scores = decode(model, source, decoding, EOS_ID, UNK_ID, noise)
        return {"replies": text.texts(ids), "scores": scores}

    archive = keras.export.ExportArchive()
    archive.track(model)
    for table in (text.ids, *text.split.tables):
        archive.track(table)
    archive.add_endpoint("reply", reply, [tf.TensorSpec((None, None), tf.string, name="turns")])
    return archive
