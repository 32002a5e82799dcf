"""Three extensions of BiDAF; a setting of `BiDAFConfig` turns each on.

    exact_match     words of the context that are in the query, and the other way round
    train_unknown   vectors learnt for words that the file of word vectors lacks
    no_answer       the logit that a context has an answer

Shape suffixes:
    B batch   N distinct tokens of a batch   T context words   J query words   D features
"""

import keras
from keras import ops

from colloquy.layers.masking import masked_softmax, zero_padding
from colloquy.layers.word_embedding import WordEmbedding

ANSWER_UNITS = 80
"""Units of the hidden layer of `AnswerLogit`, as in Clark and Gardner."""
ANSWER_BIAS = -5.0
"""The answer logit at the start of training.

Without an answer logit, a trained network's `log sum exp` over the logits of all spans is above 5
in most contexts with an answer, and below 5 in most of the others. With -5 it is compared with 0,
the logit of no answer.
"""


# === exact_match (Chen et al. 2017, section 3.2) ===


def add_exact_match(x_context, x_query, words_N, context_BT, query_BJ, unknown_id):
    """Adds a feature to each word: 1 if the other text has it, else 0.

    Two words match if they are the same token, or tokens with the same known word id, as `The` and
    `the` are.

    Args:
        x_context: Features of the context's words, float `(B, T, D)`.
        x_query: Features of the query's words, float `(B, J, D)`.
        words_N: Word id of each token, int32.
        context_BT, query_BJ: Indices of tokens, int32, 0 = padding.
        unknown_id: Id of the unknown word.

    Returns:
        Features of the context's words, float `(B, T, D + 1)`.
        Features of the query's words, float `(B, J, D + 1)`.
    """
    token_BT1 = context_BT[:, :, None]
    token_B1J = query_BJ[:, None, :]
    word_BT1 = ops.take(words_N, token_BT1, axis=0)
    word_B1J = ops.take(words_N, token_B1J, axis=0)
    is_same_token = ops.equal(token_BT1, token_B1J)
    is_same_word = ops.equal(word_BT1, word_B1J) & (word_BT1 != unknown_id)
    is_real = (token_BT1 != 0) & (token_B1J != 0)
    matches_BTJ = (is_same_token | is_same_word) & is_real

    in_query_BT1 = ops.cast(ops.any(matches_BTJ, axis=2), x_context.dtype)[..., None]
    in_context_BJ1 = ops.cast(ops.any(matches_BTJ, axis=1), x_query.dtype)[..., None]
    x_context = ops.concatenate([x_context, in_query_BT1], axis=-1)
    return x_context, ops.concatenate([x_query, in_context_BJ1], axis=-1)


# === train_unknown ===


def learnt_vectors(c, words_N):
    """Vectors learnt for the unknown word and the last `trained_words` of the vocabulary, `(N, D)`.

    They are added to the frozen vectors of these words, and are 0 for all other words.
    """
    # The rows of the table: 0 for all other words, 1 for the unknown word, then the last words.
    # 7 words of which the last 2 are trained, unknown_id 2: words [1, 2, 6, 7] -> rows [0, 1, 2, 3]
    table = WordEmbedding(c.trained_words + 2, c.embedding_dim, "zeros", name="unknown_words")
    first_trained = c.vocabulary_size - c.trained_words + 1
    row_N = ops.where(words_N >= first_trained, 2 + words_N - first_trained, 0)
    row_N = ops.where(ops.equal(words_N, c.unknown_id), 1, row_N)
    return zero_padding(table(row_N), (row_N != 0)[:, None])


# === no_answer (Clark and Gardner 2018, section 3.2) ===


class AnswerLogit:
    """The logit that a context has an answer: it is added to the logits of all its spans.

    The logit of "this context has no answer" is 0.

        v1 = sum_t p1_t [g_t; m_t],  v2 = sum_t p2_t [g_t; m2_t],  z = w ReLU(W [v1; v2] + b) + c

    `p1` and `p2` are the probabilities of the words as start and as end of the answer.
    """

    def __init__(self):
        self.hidden = keras.layers.Dense(ANSWER_UNITS, "relu", name="answer_hidden")
        self.logit = keras.layers.Dense(
            1,
            kernel_initializer="zeros",
            bias_initializer=keras.initializers.Constant(ANSWER_BIAS),
            name="answer_logit",
        )

    def __call__(self, G_and_M, G_and_M2, logits_B2T, t_mask):
        """Computes z, float32 `(B,)`.

        Args:
            G_and_M, G_and_M2: The inputs of the logits of start and end, float `(B, T, D)`.
            logits_B2T: These logits: of the start at index 0 of the axis 2, of the end at index 1.
            t_mask: Boolean `(B, T)`, `True` = real.
        """
        p_B2T = masked_softmax(logits_B2T, t_mask[:, None, :])
        v1_BD = ops.einsum("bt,btd->bd", p_B2T[:, 0], G_and_M)
        v2_BD = ops.einsum("bt,btd->bd", p_B2T[:, 1], G_and_M2)
        hidden = self.hidden(ops.concatenate([v1_BD, v2_BD], axis=-1))
        return ops.cast(self.logit(hidden)[:, 0], "float32")
