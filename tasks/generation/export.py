"""The SavedModel of a generation model: takes conversations as strings, returns replies.

Letters: B conversations   T turns of each   N turns of all, B * T   W words of a turn, ragged
S source words   K replies   L words of a reply
"""

import tensorflow as tf

from colloquy.data.graph_tokenizer import GraphTokenizer
from colloquy.data.graph_vocabulary import WordIds
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, UNK_ID
from colloquy.engine.endpoints import at_least_one_column, build_archive, ensure_shape
from colloquy.models.decoding import decode, put_new_replies_first
from colloquy.tasks.generation.data import MAX_SOURCE
from colloquy.tasks.generation.search import decoding_inputs, search_shape


class GenerationText:
    """Converts turns to the inputs of a search, as `tasks.generation.reader` does, and ids to text.

    Args:
        vocabulary: `data.vocabulary.Vocabulary`.
        source_config: `SourceConfig`; a tokenizer that cannot run inside a graph is a `UserError`.
    """

    def __init__(self, vocabulary, source_config):
        self.turns_of_source = source_config.turns
        self.split = GraphTokenizer(source_config.tokenizer, source_config.lower)
        self.ids_of_words = WordIds(vocabulary)
        self.tables = [self.ids_of_words.table, *self.split.tables]
        # The text of each id, from 0 on. Padding and `_EOS_` have none.
        texts = ["", *vocabulary.words]
        texts[EOS_ID] = ""
        self.texts = tf.constant(texts)

    def source(self, turns, reply_length):
        """Reads conversations.

        Args:
            turns: String `(B, T)`, the oldest turn first.
            reply_length: `L`, the longest reply of the search.

        Returns:
            The sources, int32 `(B, S)`, 0 = padding: the last turns with words, `_EOS_` after each.
            The earlier replies of the bot, int32 `(B, T, L)`; the rows of other turns are 0.
        """
        B, T = tf.unstack(tf.shape(turns, tf.int64))
        words_NW = self.split(tf.reshape(turns, [-1]))
        ids_NW = tf.ragged.map_flat_values(self.ids_of_words, words_NW)
        end_N1 = tf.fill([B * T, 1], EOS_ID)
        ids_NW = tf.concat([ids_NW, end_N1], axis=1)
        has_words_BT = tf.reshape(words_NW.row_lengths() > 0, (B, T))

        ids_BTW = tf.RaggedTensor.from_uniform_row_length(ids_NW, T, B)
        sources_BS = _join_last_turns(ids_BTW, has_words_BT, self.turns_of_source)

        ids_BTL = tf.reshape(_pad_replies(ids_NW, reply_length), (B, T, reply_length))
        replies_BTL = tf.where(_is_reply(has_words_BT)[..., None], ids_BTL, 0)
        return sources_BS, replies_BTL

    def replies(self, ids_BKL):
        """The texts of replies, string `(B, K)`."""
        return self.split.detokenize(tf.gather(self.texts, ids_BKL))


def _join_last_turns(ids_BTW, has_words_BT, count):
    """Joins the ids of the last `count` turns with words, int32 `(B, S)`.

    With `count` = 2, of a conversation whose turns 0, 2 and 3 have words:

        has_words   [1, 0, 1, 1, 0]
        remaining   [3, 2, 2, 1, 0]   turns with words from this one to the end
        is_read     [0, 0, 1, 1, 0]
    """
    remaining_BT = tf.cumsum(tf.cast(has_words_BT, tf.int32), axis=1, reverse=True)
    is_read_BT = has_words_BT & (remaining_BT <= count)
    ids_of_turns_read = tf.ragged.boolean_mask(ids_BTW, is_read_BT)
    ragged_ids_BS = ids_of_turns_read.merge_dims(1, 2)
    ids_BS = at_least_one_column(ragged_ids_BS[:, -MAX_SOURCE:].to_tensor())

    # A conversation without words is `_EOS_` alone: [0, 0, 0] -> [1, 0, 0].
    is_first_S = tf.range(tf.shape(ids_BS)[1]) == 0
    is_missing_BS = is_first_S & (ids_BS == PADDING_ID)
    return tf.where(is_missing_BS, EOS_ID, ids_BS)


def _is_reply(has_words_BT):
    """Whether a turn is an earlier reply of the bot.

    The last turn with words is the user's, and every second one before it the bot's. Turns without
    words count here, since a reply may be empty:

        has_words   [1, 1, 0, 1, 1, 0]
        distance    [4, 3, 2, 1, 0, -1]   to the last turn with words
        is_reply    [0, 1, 0, 1, 0, 0]    the distance is odd, and the turn has words
    """
    turn_T = tf.range(tf.shape(has_words_BT)[1])
    last_B1 = tf.reduce_max(tf.where(has_words_BT, turn_T, -1), axis=1, keepdims=True)
    distance_BT = last_B1 - turn_T
    return has_words_BT & (distance_BT % 2 == 1)


def _pad_replies(ids_NW, reply_length):
    """The turns as the search would write them, int32 `(N, L)`; longer turns are 0.

    A search stops at `L` words, without `_EOS_`. With `L` = 3, where 1 is `_EOS_`:

        [5, 1]            -> [5, 1, 0]
        [5, 6, 7, 1]      -> [5, 6, 7]
        [5, 6, 7, 8, 1]   -> [0, 0, 0]
    """
    ids_NL = ids_NW.to_tensor(shape=[None, reply_length])
    is_within_N = ids_NW.row_lengths() <= reply_length + 1
    return tf.where(is_within_N[:, None], ids_NL, 0)


def generation_archive(model, vocabulary, source_config, decoding):
    """The endpoint `reply`, also `serving_default`, of a `models.seq2seq.Seq2Seq`.

        turns       string (B, T)   what was said, the oldest turn first; "" at the end is padding,
                                    elsewhere a turn without words, which counts as one
     -> replies     string (B, K)   K is `beam` of the search; the best reply first
        scores      float32 (B, K)  their log probability, divided by the length penalty

    The search runs inside the graph. Sampling gives the same replies to the same request. A reply
    that the bot has given before comes last.

    Args:
        model: `models.seq2seq.Seq2Seq`.
        vocabulary: `data.vocabulary.Vocabulary` of its dataset.
        source_config: `SourceConfig` of its dataset.
        decoding: `Decoding`.
    """
    text = GenerationText(vocabulary, source_config)
    settings = decoding_inputs([decoding])
    shape = search_shape(decoding)

    def reply(turns):
        turns = ensure_shape(turns, "turns", "BT")
        sources_BS, earlier_replies_BTL = text.source(turns, shape.reply_length)
        B = tf.shape(sources_BS)[0]
        inputs = {"source": sources_BS}
        for name, value_11 in settings.items():
            inputs[name] = tf.repeat(value_11, B, axis=0)
        if decoding.sample:
            noise_shape = [B, shape.num_beams, shape.reply_length]
            inputs["noise"] = tf.random.stateless_uniform(noise_shape, seed=[1, 0])
        ids_BKL, scores_BK = decode(
            model,
            inputs,
            num_beams=shape.num_beams,
            reply_length=shape.reply_length,
            eos_id=EOS_ID,
            unk_id=UNK_ID,
            anti_lm=shape.anti_lm,
        )
        ids_BKL, scores_BK = put_new_replies_first(ids_BKL, scores_BK, earlier_replies_BTL)
        return {"replies": text.replies(ids_BKL), "scores": scores_BK}

    return build_archive("reply", reply, {"turns": "BT"}, tracked=[model, *text.tables])
