"""The SavedModel of a generation model: takes conversations as strings, returns replies.

Letters: B conversations   T turns   S source words   K replies   L words of a reply
"""

import tensorflow as tf

from colloquy.data.tokenizers import TOKENIZERS, GraphTokenizer
from colloquy.data.vocabulary import EOS_ID, UNK_ID, WordIds
from colloquy.engine.export import build_archive, ensure_shape
from colloquy.models.decoding import decode
from colloquy.tasks.generation.data import MAX_SOURCE
from colloquy.tasks.generation.search import columns


class GenerationText:
    """Makes a model's sources out of strings, as prepare.py does, and strings out of its replies.

    A tokenizer of `TokenizerConfig` that cannot run inside a graph is a `UserError`.
    """

    def __init__(self, vocabulary, text):
        self.split, self.turns = GraphTokenizer(text.tokenizer, text.lower), text.turns
        self.ids = WordIds(vocabulary)
        self.words = tf.constant(["", "", *vocabulary.words[1:]])  # padding and `_EOS_` are nothing
        self.join = TOKENIZERS[text.tokenizer].detokenize_in_graph

    def source(self, turns):
        """The ids of the last turns that are not empty, `_EOS_` after each; of none `_EOS_` alone.

        From string `(B, T)`, the oldest turn first, to int32 `(B, S)`, 0 = padding.
        """
        B, T = tf.unstack(tf.shape(turns, tf.int64))
        tokens = self.split(tf.reshape(turns, [-1]))
        ids = tf.ragged.map_flat_values(self.ids, tokens)
        ids = tf.concat([ids, tf.fill([B * T, 1], EOS_ID)], axis=1)
        real = tf.reshape(tokens.row_lengths() > 0, (B, T))
        last = tf.cumsum(tf.cast(real, tf.int32), axis=1, reverse=True) <= self.turns
        ids = tf.RaggedTensor.from_uniform_row_length(ids, T, B)
        joined = tf.ragged.boolean_mask(ids, real & last).merge_dims(1, 2)
        padded = joined[:, -MAX_SOURCE:].to_tensor()
        padded = tf.pad(padded, [[0, 0], [0, tf.maximum(1 - tf.shape(padded)[1], 0)]])
        begins = tf.where(padded[:, :1] == 0, EOS_ID, padded[:, :1])
        return tf.concat([begins, padded[:, 1:]], axis=1)


def generation_archive(model, vocabulary, text, decoding):
    """The endpoint `reply`, also `serving_default`, of a `models.seq2seq.Seq2Seq`.

        turns       string (B, T)   what was said, the oldest turn first; "" is no turn
     -> replies     string (B, K)   as many as `decoding.beam`, the best first
        scores      float32 (B, K)  their log probability, divided by the length penalty

    `vocabulary` and `text` are those of its dataset. The search runs inside the graph; sampling
    gives the same replies to the same request.
    """
    text = GenerationText(vocabulary, text)

    def reply(turns):
        source = text.source(ensure_shape(turns, "turns", "BT"))
        B, settings = tf.shape(source)[0], columns([decoding])
        inputs = {
            "source": source,
            **{name: tf.repeat(value, B, axis=0) for name, value in settings.items()},
        }
        if decoding.sample:
            inputs["noise"] = tf.random.stateless_uniform(
                [B, decoding.beam, decoding.max_length], [1, 0]
            )
        fixed = decoding.beam, decoding.max_length, EOS_ID, UNK_ID, decoding.against_empty > 0
        ids, scores = decode(model, inputs, *fixed)
        return {"replies": text.join(tf.gather(text.words, ids)), "scores": scores}

    return build_archive(
        {"reply": (reply, {"turns": "BT"})}, [model, text.ids.table, *text.split.tables]
    )
