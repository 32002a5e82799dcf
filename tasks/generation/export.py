"""The SavedModel of a generation model: takes conversations as strings, returns replies.

Letters: B conversations   T turns   S source words   K replies   L words of a reply
"""

import tensorflow as tf

from colloquy.data.graph_tokenizer import GraphTokenizer
from colloquy.data.graph_vocabulary import WordIds
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, UNK_ID
from colloquy.engine.endpoints import (
    at_least_one_column,
    build_archive,
    ensure_shape,
)
from colloquy.models.decoding import decode, put_new_replies_first
from colloquy.tasks.generation.data import MAX_SOURCE
from colloquy.tasks.generation.search import decoding_inputs, search_shape


class GenerationText:
    """Makes a model's sources from strings, as prepare.py does, and strings from its replies.

    Args:
        vocabulary: `data.vocabulary.Vocabulary`.
        text: `SourceConfig`; a tokenizer that cannot run inside a graph is a `UserError`.
    """

    def __init__(self, vocabulary, text):
        self.turns = text.turns
        self.split = GraphTokenizer(text.tokenizer, text.lower)
        self.ids = WordIds(vocabulary)
        self.words = tf.constant(["", "", *vocabulary.words[1:]])  # padding and `_EOS_` are nothing
        self.join = self.split.detokenize

    def source(self, turns, reply_length):
        """The ids of the last turns that are not empty, `_EOS_` after each; of none `_EOS_` alone.

        Args:
            turns: String `(B, T)`, the oldest turn first.
            reply_length: `L`, the longest reply of the search.

        Returns:
            Int32 `(B, S)`, 0 = padding, and the ids of the replies before, int32 `(B, T, L)`: of
            every second turn before the last one with words, with `_EOS_` at the end.
        """
        B, T = tf.unstack(tf.shape(turns, tf.int64))
        flat_turns = tf.reshape(turns, [-1])
        tokens = self.split(flat_turns)
        ids = tf.ragged.map_flat_values(self.ids, tokens)
        ends = tf.fill([B * T, 1], EOS_ID)
        ids = tf.concat([ids, ends], axis=1)

        has_words_BT = tf.reshape(tokens.row_lengths() > 0, (B, T))
        is_counted_BT = tf.cast(has_words_BT, tf.int32)
        turns_from_here_BT = tf.cumsum(is_counted_BT, axis=1, reverse=True)
        # The last turn with words has place 1. A turn before it counts even if it has no words.
        is_inside_BT = tf.cast(turns_from_here_BT > 0, tf.int32)
        place_BT = tf.cumsum(is_inside_BT, axis=1, reverse=True)
        is_said_BT = has_words_BT & (place_BT % 2 == 0)
        ids = tf.RaggedTensor.from_uniform_row_length(ids, T, B)
        said_BTL = self._said(ids, is_said_BT, reply_length)

        # The last turns with words are joined.
        is_read_BT = has_words_BT & (turns_from_here_BT <= self.turns)
        read = tf.ragged.boolean_mask(ids, is_read_BT)
        joined = read.merge_dims(1, 2)

        # A source without turns is `_EOS_`.
        ids_BS = at_least_one_column(joined[:, -MAX_SOURCE:].to_tensor())
        first_B1 = ids_BS[:, :1]
        first_B1 = tf.where(first_B1 == PADDING_ID, EOS_ID, first_B1)
        return tf.concat([first_B1, ids_BS[:, 1:]], axis=1), said_BTL

    def _said(self, ids, is_said_BT, reply_length):
        """The turns that are replies, int32 `(B, T, L)`; zeros for other and for longer turns."""
        # A reply of just the longest length has no `_EOS_`, which `to_tensor` cuts off.
        is_short_BT = ids.row_lengths(axis=2).to_tensor() <= reply_length + 1
        B, T = tf.unstack(tf.shape(is_said_BT))
        ids_BTL = ids.to_tensor(shape=[None, None, reply_length])
        is_compared_BT = is_said_BT & tf.reshape(is_short_BT, (B, T))
        return tf.where(is_compared_BT[..., None], tf.reshape(ids_BTL, (B, T, reply_length)), 0)


def generation_archive(model, vocabulary, text, decoding):
    """The endpoint `reply`, also `serving_default`, of a `models.seq2seq.Seq2Seq`.

        turns       string (B, T)   what was said, the oldest turn first; "" at the end is padding,
                                    elsewhere a turn without words, which counts as one
     -> replies     string (B, K)   as many as `decoding.beam`, the best first
        scores      float32 (B, K)  their log probability, divided by the length penalty

    The search runs inside the graph. Sampling gives the same replies to the same request. Every
    second turn before the last one with words is a reply of the model, which is not given again
    while the search has another.

    Args:
        model: `models.seq2seq.Seq2Seq`.
        vocabulary: `data.vocabulary.Vocabulary` of its dataset.
        text: `SourceConfig` of its dataset.
        decoding: `Decoding`.
    """
    text = GenerationText(vocabulary, text)
    fields = decoding_inputs([decoding])
    shape = search_shape(decoding)

    def reply(turns):
        turns = ensure_shape(turns, "turns", "BT")
        source, said_BTL = text.source(turns, shape.reply_length)
        inputs = {"source": source}
        B = tf.shape(source)[0]
        for name, value in fields.items():
            inputs[name] = tf.repeat(value, B, axis=0)
        if decoding.sample:
            noise_shape = [B, shape.num_beams, shape.reply_length]
            inputs["noise"] = tf.random.stateless_uniform(noise_shape, seed=[1, 0])
        ids, scores = decode(
            model, inputs, shape.num_beams, shape.reply_length, EOS_ID, UNK_ID, shape.anti_lm
        )
        ids, scores = put_new_replies_first(ids, scores, said_BTL)
        return {"replies": text.join(tf.gather(text.words, ids)), "scores": scores}

    tables = [text.ids.table, *text.split.tables]
    return build_archive("reply", reply, {"turns": "BT"}, tracked=[model, *tables])
