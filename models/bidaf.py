"""BiDAF: bidirectional attention flow for reading comprehension.

Seo, Kembhavi, Farhadi and Hajishirzi, "Bidirectional Attention Flow for Machine Comprehension",
ICLR 2017:

    1., 2.   characters and words of each token -> highway
    3.       LSTM: H of the context, U of the query
    4.       attention flow: G
    5.       two LSTMs: M
    6.       G and M -> logits of the start;  M -> LSTM: M2;  G and M2 -> logits of the end

Shape suffixes:
    B batch   N distinct tokens of a batch   L characters   T context words   J query words
    D features   d the paper's, units of an LSTM

Steps 1 and 2 are done once for each distinct token of a batch, however often it occurs.
"""

import keras
from keras import ops

from colloquy.layers.attention_flow import AttentionFlow
from colloquy.layers.bilstm import BiLSTM
from colloquy.layers.char_cnn import CharacterCNN, Highway
from colloquy.layers.dynamic_attention import DynamicBiLSTM
from colloquy.layers.masking import mask_from_ids, masked_logits, masked_softmax
from colloquy.layers.self_attention import SelfAttention
from colloquy.layers.word_embedding import WordEmbedding
from colloquy.models.bidaf_config import BiDAFConfig
from colloquy.models.bidaf_extensions import AnswerLogit, add_exact_match, learnt_vectors
from colloquy.models.configured import ConfiguredModel


@keras.saving.register_keras_serializable("colloquy")
class BiDAF(ConfiguredModel):
    """Scores every word of a context as the start and as the end of the answer to a query.

    Args:
        config: A `BiDAFConfig`.

    Call arguments: a dict of
        words: Word ids of the batch's distinct tokens, int32 `(N, )`; the first is padding, 0.
        characters: Their characters, int32 `(N, L)`, 0 = padding.
        context: The tokens of each context, int32 `(B, T)`: indices of `words`, 0 = padding.
        query: The tokens of each query, int32 `(B, J)`, likewise.

    Returns:
        Logits of start and end, float32 `(B, 2, T)`. `masked_logits` sets the logits of padding to
        the lowest value, so padding has probability 0. With `no_answer` the logit of a span is the
        sum of its start and its end, and the logit of no answer is 0.

    Give `model.fit` a generator of batches. It would divide arrays into batches along their first
    axis, but that of `words` and `characters` counts tokens, not examples. The targets here are the
    first and the last word of an answer, `(B, 2)`:

    >>> model = BiDAF(BiDAFConfig(vocabulary_size=7, characters=5, hidden=3, dropout=0.0))
    >>> model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    >>> inputs = {
    ...     "words": np.array([0, 3, 4, 5]),
    ...     "characters": np.array([[0, 0], [1, 2], [3, 0], [4, 5]]),
    ...     "context": np.array([[1, 2, 3]]),
    ...     "query": np.array([[2, 3]]),
    ... }
    >>> batches = ((inputs, np.array([[1, 2]])) for _ in range(6))
    >>> history = model.fit(batches, steps_per_epoch=2, epochs=3, shuffle=False, verbose=0).history
    >>> history["loss"][0] > history["loss"][-1]
    True
    """

    Config = BiDAFConfig

    def network(self, c):
        layers = _Layers(c)
        words_N = keras.Input((), dtype="int32", name="words")
        characters_NL = keras.Input((None,), dtype="int32", name="characters")
        context_BT = keras.Input((None,), dtype="int32", name="context")
        query_BJ = keras.Input((None,), dtype="int32", name="query")
        inputs = {
            "words": words_N,
            "characters": characters_NL,
            "context": context_BT,
            "query": query_BJ,
        }
        t_mask = mask_from_ids(context_BT)
        j_mask = mask_from_ids(query_BJ)

        # 1. and 2. Characters, words and highway; then the tokens of the context and of the query
        x_ND = _embed_tokens(c, layers, words_N, characters_NL)
        X = layers.drop_context(ops.take(x_ND, context_BT, axis=0))
        Q = layers.drop_query(ops.take(x_ND, query_BJ, axis=0))
        if c.exact_match:
            X, Q = add_exact_match(X, Q, words_N, context_BT, query_BJ, c.unknown_id)

        # 3. Contextual embedding: H (B, T, 2d), U (B, J, 2d)
        H = layers.contextual(X, t_mask)
        U = layers.contextual(Q, j_mask)

        # 4. and 5. Attention flow: G (B, T, 8d); modelling: M (B, T, 2d)
        if c.attention == "flow":
            G = layers.flow(H, U, t_mask, j_mask)
            M = layers.modelling_0(layers.drop_modelling_0(G), t_mask)
        else:
            G = H
            M = layers.modelling_0(layers.drop_modelling_0(H), U, t_mask, j_mask)
        if c.self_attention:
            M = layers.self_attention(M, t_mask)
        if c.modelling_layers == 2:
            M = layers.modelling_1(layers.drop_modelling_1(M), t_mask)

        # 6. Output: logits of start and end, (B, 2, T)
        return inputs, _span_logits(c, layers, G, M, t_mask)


def _embed_tokens(c, layers, words_N, characters_NL):
    """Sections 1 and 2: characters and words of each token, through the highway, `(N, D)`."""
    parts = []
    if c.use_characters:
        parts.append(layers.characters(characters_NL))
    if c.use_words:
        vector_ND = layers.words(words_N)
        if c.train_unknown:
            vector_ND = vector_ND + learnt_vectors(c, words_N)
        parts.append(vector_ND)
    return layers.highway_1(layers.highway_0(ops.concatenate(parts, axis=-1)))


def _span_logits(c, layers, G, M, t_mask):
    """Section 6: the logits of start and end, float32 `(B, 2, T)`.

    p1 = softmax(w1 [G; M]),  p2 = softmax(w2 [G; M2])
    """
    G_and_M = layers.drop_start_logit(ops.concatenate([G, M], axis=-1))
    start_BT = layers.start_logit(G_and_M)[..., 0]

    to_end = M
    if c.end_pointer == "official":
        to_end = _official_end_input(G, M, start_BT, t_mask)
    M2 = layers.end(layers.drop_end(to_end), t_mask)
    G_and_M2 = layers.drop_end_logit(ops.concatenate([G, M2], axis=-1))
    end_BT = layers.end_logit(G_and_M2)[..., 0]

    logits_B2T = ops.stack([start_BT, end_BT], axis=1)
    if c.no_answer:
        # The logit of a span is the sum of a start and an end, so each of them gets half.
        answer_B = layers.answer(G_and_M, G_and_M2, logits_B2T, t_mask)
        logits_B2T = ops.cast(logits_B2T, "float32") + answer_B[:, None, None] / 2
    return masked_logits(logits_B2T, t_mask[:, None, :])


def _official_end_input(G, M, start_BT, t_mask):
    """[G; M; a; M * a], `(B, T, 14d)`, where a is the mean of M weighted by p1."""
    p1_BT = masked_softmax(start_BT, t_mask)
    a = ops.einsum("bt,btd->bd", p1_BT, M)[:, None, :]
    a_at_each_word = a + ops.zeros_like(M)
    return ops.concatenate([G, M, a_at_each_word, M * a], axis=-1)


class _Layers:
    """The layers of a network.

    Each draws the random seeds of its weights and of its dropout when it is made. So the order in
    which they are made is part of what `seed` means, and stays: another order would start from
    other weights. It is not quite the order of the sections.
    """

    def __init__(self, c):
        # 1. and 2. Characters, words and highway
        self.words = WordEmbedding(
            c.vocabulary_size + 1, c.embedding_dim, trainable=False, name="word_embedding"
        )
        self.characters = CharacterCNN(
            c.characters,
            c.character_dim,
            c.character_filters,
            c.character_width,
            c.dropout,
            name="character_cnn",
        )
        self.highway_0 = Highway(name="highway_0")
        self.highway_1 = Highway(name="highway_1")

        # Dropout, each before the layer that it is named after
        self.drop_context = keras.layers.Dropout(c.dropout, name="dropout_0")
        self.drop_query = keras.layers.Dropout(c.dropout, name="dropout_1")
        self.drop_modelling_0 = keras.layers.Dropout(c.dropout, name="dropout_2")
        self.drop_modelling_1 = keras.layers.Dropout(c.dropout, name="dropout_3")
        self.drop_start_logit = keras.layers.Dropout(c.dropout, name="dropout_4")
        self.drop_end = keras.layers.Dropout(c.dropout, name="dropout_5")
        self.drop_end_logit = keras.layers.Dropout(c.dropout, name="dropout_6")

        # 3., 5. and 6. The LSTMs
        self.contextual = BiLSTM(c.hidden, name="contextual")
        self.end = BiLSTM(c.hidden, name="end")
        if c.attention == "flow":
            self.modelling_0 = BiLSTM(c.hidden, name="modelling_0")
        else:
            self.modelling_0 = DynamicBiLSTM(c.hidden, name="modelling_0")
        if c.modelling_layers == 2:
            self.modelling_1 = BiLSTM(c.hidden, name="modelling_1")

        # 6. Output
        self.start_logit = keras.layers.Dense(1, use_bias=False, name="start_logit")
        self.end_logit = keras.layers.Dense(1, use_bias=False, name="end_logit")
        if c.no_answer:
            self.answer = AnswerLogit()

        # 4. Attention flow, and self-attention between the modelling LSTMs
        if c.attention == "flow":
            self.flow = AttentionFlow(
                c.c2q, c.q2c, c.similarity_start, c.similarity, c.fusion, name="attention_flow"
            )
        if c.self_attention:
            self.self_attention = SelfAttention(name="self_attention")
