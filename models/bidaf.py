"""BiDAF: bidirectional attention flow for reading comprehension.

Seo, Kembhavi, Farhadi and Hajishirzi, "Bidirectional Attention Flow for Machine Comprehension",
ICLR 2017:

    characters, words -> highway -> LSTM -> attention flow G -> two LSTMs: M -> start
                                                                another LSTM -> end

Shape suffixes:
    B batch   N distinct tokens of a batch   L characters   T context words   J query words
    D features (the paper's d)

Each distinct token of a batch goes through characters, words and highway once, however often it
occurs.
"""

from typing import Annotated, Literal

import keras
from keras import ops
from pydantic import Field, model_validator

from colloquy.base.config import Config, Dropout, NonNegative, Positive
from colloquy.layers.attention_flow import AttentionFlow
from colloquy.layers.bilstm import BiLSTM
from colloquy.layers.char_cnn import CharacterCNN, Highway
from colloquy.layers.dynamic_attention import DynamicBiLSTM
from colloquy.layers.masking import mask_from_ids, masked_logits, masked_softmax, zero_padding
from colloquy.layers.self_attention import SelfAttention
from colloquy.layers.word_embedding import WordEmbedding
from colloquy.models.configured import ConfiguredModel

ANSWER_UNITS = 80
"""Units of the hidden layer that says whether a context has an answer, as in Clark and Gardner."""
ANSWER_BIAS = -5.0
"""The number added to a span's logit at the start of a training with `no_answer`.

In a network trained without it, `log sum exp` over all spans is above 5 in most contexts with the
answer and below 5 in most of the others.
"""


class BiDAFConfig(Config):
    """Settings of BiDAF; the defaults are the paper's (section 4)."""

    vocabulary_size: Positive
    """Words with a vector: ids 1 to this."""
    characters: Positive
    """Characters with an id, 1 to this."""
    trained_words: NonNegative = 0
    """Number of words, the last ones, that have no vector in the file of word vectors; see
    `train_unknown`."""
    unknown_id: NonNegative = 2
    """Id of the unknown word."""
    embedding_dim: Positive = 100
    """Features of a word vector. Word vectors are frozen, except by `train_unknown`."""
    train_unknown: bool = False
    """Train the vector of the unknown word and those of `trained_words`; `prepare.py
    --trained_words`."""
    hidden: Positive = 100
    """`d`, units of each LSTM in each direction."""
    character_dim: Positive = 8
    """Features of a character vector."""
    character_filters: Positive = 100
    """Filters of the character CNN: features of a word by its characters."""
    character_width: Positive = 5
    """Characters that a filter spans."""
    exact_match: bool = False
    """Add to the input of the first LSTM a feature of each word: whether the other text, context or
    query, has it too (Chen et al. 2017, section 3.2); not in the paper."""
    self_attention: bool = False
    """Between the two modelling LSTMs each context word attends to the others (Clark and Gardner
    2018); not in the paper."""
    no_answer: bool = False
    """Besides the spans, "this context has no answer" is an option with a logit of 0 (Clark and
    Gardner 2018, section 3.2); not in the paper. `_answer_logit`, added to all spans, says whether
    a context has an answer."""
    dropout: Dropout = 0.2
    """Fraction dropped before each LSTM, before the logits and on the character vectors."""
    end_pointer: Literal["paper", "official"] = "paper"
    """Input of the LSTM that finds the end. `paper`: `M`. `official`, as in the authors' code: `[G;
    M; a; M * a]`, `a` the mean of `M` weighted by the probabilities of the start."""
    use_characters: bool = True
    """`False`: no character CNN, an ablation of the paper."""
    use_words: bool = True
    """`False`: no word vectors, an ablation of the paper."""
    modelling_layers: Literal[1, 2] = 2
    """LSTMs that make `M` of `G`. The paper has two; many descriptions of it have one."""
    c2q: bool = True
    """`False`: the mean of `U` instead of context-to-query attention, an ablation of the paper."""
    q2c: bool = True
    """`False`: no query-to-context attention in `G`, an ablation of the paper."""
    similarity_start: Literal["glorot", "dot"] = "glorot"
    """Initial weights of eq. 1: `glorot`, or `dot`, a dot product; see `layers.attention_flow`."""
    similarity: Literal["trilinear", "mlp"] = "trilinear"
    """`trilinear`, eq. 1, or `mlp`, a perceptron with one hidden layer."""
    fusion: Literal["concat", "mlp"] = "concat"
    """`G` by concatenation, eq. 2, or by a perceptron on that, which the paper mentions."""
    length_penalty: Annotated[float, Field(ge=0)] = 0.0
    """Nats subtracted from the score of an answer for each word after its first, in the search for
    the best span; training does not use it. Not in the paper."""
    max_answer_words: Positive = 30
    """Words of the longest answer that is looked for; 0.03 % of SQuAD's are longer. Training does
    not use it."""
    attention: Literal["flow", "dynamic"] = "flow"
    """`flow`, or `dynamic`, an ablation of the paper: computed inside the first modelling LSTM from
    its state; `G` is then `H`."""

    @model_validator(mode="after")
    def _check_words(self):
        if self.train_unknown and not self.use_words:
            raise ValueError("train_unknown needs use_words=True. Received: use_words=False")
        if self.self_attention and self.modelling_layers == 1:
            raise ValueError(
                "self_attention is between two modelling LSTMs. Received: modelling_layers=1"
            )
        if not (self.use_characters or self.use_words):
            raise ValueError("use_characters and use_words must not both be False")
        return self


@keras.saving.register_keras_serializable("colloquy")
class BiDAF(ConfiguredModel):
    """Scores every word of a context as the start and as the end of the answer to a query.

    Args:
        config: A `BiDAFConfig`.

    Call arguments: a dict of
        words: Word ids of the batch's distinct tokens, int32 `(N, )`; the first is padding, 0.
        characters: Their characters, int32 `(N, L)`, 0 = padding.
        context: Numbers of tokens, int32 `(B, T)`, 0 = padding.
        query: Likewise, `(B, J)`.

    Returns:
        Logits of start and end, float32 `(B, 2, T)`. `masked_logits` sets the logits of padding to
        the lowest value, so padding has probability 0. With `no_answer` the logit of a span is the
        sum of its start and its end, and the logit of no answer is 0.

    `words` and `characters` belong to a whole batch, so `model.fit` takes batches from a generator:
    it would cut arrays along their first axis. The targets here are the first and the last word of
    an answer, `(B, 2)`:

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

        # 1. and 2. Characters, words and highway, once for each distinct token
        x_ND = _embed_tokens(c, layers, words_N, characters_NL)
        X = layers.drop_context(ops.take(x_ND, context_BT, axis=0))
        Q = layers.drop_query(ops.take(x_ND, query_BJ, axis=0))
        if c.exact_match:
            same_BTJ = _same_words(words_N, context_BT, query_BJ, c.unknown_id)
            X = _with_feature(X, ops.any(same_BTJ, axis=2))
            Q = _with_feature(Q, ops.any(same_BTJ, axis=1))

        # 3. Contextual embedding: H (B, T, 2d), U (B, J, 2d)
        H = layers.contextual(X, t_mask)
        U = layers.contextual(Q, j_mask)

        # 4. and 5. Attention flow: G (B, T, 8d); modelling: M (B, T, 2d)
        if c.attention == "dynamic":
            G = H
            M = layers.modelling_0(layers.drop_modelling_0(H), U, t_mask, j_mask)
        else:
            G = layers.flow(H, U, t_mask, j_mask)
            M = layers.modelling_0(layers.drop_modelling_0(G), t_mask)
        if c.self_attention:
            M = layers.self_attention(M, t_mask)
        if c.modelling_layers == 2:
            M = layers.modelling_1(layers.drop_modelling_1(M), t_mask)

        # 6. Output: logits of start and end, (B, 2, T)
        return inputs, _span_logits(c, layers, G, M, t_mask)


class _Layers:
    """The layers of a network, by the paper's names.

    Each draws the seeds of its weights and of its dropout when it is made. Their order is part of
    what `seed` means: another order starts from other weights.
    """

    def __init__(self, c):
        # 1. Characters and words
        width = c.embedding_dim
        self.words = WordEmbedding(
            c.vocabulary_size + 1, width, trainable=False, name="word_embedding"
        )
        self.characters = CharacterCNN(
            c.characters,
            c.character_dim,
            c.character_filters,
            c.character_width,
            c.dropout,
            name="character_cnn",
        )
        self.unknown_words = WordEmbedding(
            c.trained_words + 2, width, "zeros", name="unknown_words"
        )

        # 2. Highway
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

        # 3., 5. and 6. The LSTMs; that of the end makes M2 of M
        self.contextual = BiLSTM(c.hidden, name="contextual")
        self.end = BiLSTM(c.hidden, name="end")
        if c.attention == "dynamic":
            self.modelling_0 = DynamicBiLSTM(c.hidden, name="modelling_0")
        else:
            self.modelling_0 = BiLSTM(c.hidden, name="modelling_0")
        if c.modelling_layers == 2:
            self.modelling_1 = BiLSTM(c.hidden, name="modelling_1")

        # 6. Output
        self.start_logit = keras.layers.Dense(1, use_bias=False, name="start_logit")
        self.end_logit = keras.layers.Dense(1, use_bias=False, name="end_logit")
        if c.no_answer:
            self.answer_hidden = keras.layers.Dense(ANSWER_UNITS, "relu", name="answer_hidden")
            self.answer_logit = keras.layers.Dense(
                1,
                kernel_initializer="zeros",
                bias_initializer=keras.initializers.Constant(ANSWER_BIAS),
                name="answer_logit",
            )

        # 4. Attention flow, and self-attention between the modelling LSTMs
        if c.attention == "flow":
            self.flow = AttentionFlow(
                c.c2q, c.q2c, c.similarity_start, c.similarity, c.fusion, name="attention_flow"
            )
        if c.self_attention:
            self.self_attention = SelfAttention(name="self_attention")


def _embed_tokens(c, layers, words_N, characters_NL):
    """Sections 1 and 2: characters and words of each token, through the highway, `(N, D)`."""
    parts = []
    if c.use_characters:
        parts.append(layers.characters(characters_NL))
    if c.use_words:
        vector_ND = layers.words(words_N)
        if c.train_unknown:
            vector_ND = vector_ND + _learnt_vectors(c, layers.unknown_words, words_N)
        parts.append(vector_ND)
    return layers.highway_1(layers.highway_0(ops.concatenate(parts, axis=-1)))


def _learnt_vectors(c, table, words_N):
    """Vectors learnt for the unknown word and for the last `trained_words` words, `(N, D)`.

    They are added to the frozen vectors; those of all other words are 0. Row 1 of the table is the
    unknown word's, the next rows are those of the last words.
    """
    first_trained = c.vocabulary_size - c.trained_words + 1
    row_N = ops.where(words_N >= first_trained, words_N - first_trained + 2, 0)
    row_N = ops.where(ops.equal(words_N, c.unknown_id), 1, row_N)
    return zero_padding(table(row_N), mask_from_ids(row_N)[:, None])


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
        # A span's logit is the sum of a start and an end, so each gets half.
        answer_B = _answer_logit(layers, G_and_M, G_and_M2, logits_B2T, t_mask)
        logits_B2T = ops.cast(logits_B2T, "float32") + answer_B[:, None, None] / 2
    return masked_logits(logits_B2T, t_mask[:, None, :])


def _official_end_input(G, M, start_BT, t_mask):
    """[G; M; a; M * a], `(B, T, 14d)`, where a is the mean of M weighted by p1."""
    p1_BT = masked_softmax(start_BT, t_mask)
    a = ops.einsum("bt,btd->bd", p1_BT, M)[:, None, :]
    a_at_each_word = a + ops.zeros_like(M)
    return ops.concatenate([G, M, a_at_each_word, M * a], axis=-1)


def _answer_logit(layers, G_and_M, G_and_M2, logits_B2T, t_mask):
    """The logit that a context has an answer, float32 `(B,)` (Clark and Gardner 2018, 3.2).

    v1 = sum_t p1_t [g_t; m_t],  v2 = sum_t p2_t [g_t; m2_t],  z = w ReLU(W [v1; v2] + b) + c
    """
    p_B2T = masked_softmax(logits_B2T, t_mask[:, None, :])
    v1_BD = ops.einsum("bt,btd->bd", p_B2T[:, 0], G_and_M)
    v2_BD = ops.einsum("bt,btd->bd", p_B2T[:, 1], G_and_M2)
    hidden = layers.answer_hidden(ops.concatenate([v1_BD, v2_BD], axis=-1))
    return ops.cast(layers.answer_logit(hidden)[:, 0], "float32")


def best_spans(logits, max_length, count=1, length_penalty=0.0):
    """The spans with the highest sum of start and end logits, in O(L T).

    Without a penalty they are those with the highest `p1 p2`.

        score(t, t + l) = start_t + end_{t + l} - penalty * l,   0 <= l < L

    Args:
        logits: Float `(B, 2, T)`, `layers.masking.MASKED_LOGIT` at padding.
        max_length: L, words of the longest span.
        count: K; at most the number of spans there are.
        length_penalty: Nats per word after the first, as if longer answers were rarer; not in the
            paper.

    Returns:
        First and last words, int32 `(B, K)` each, and the scores, float32 `(B, K)`, the best first.
        Scores are sums of logits, so they can be compared between contexts; log probabilities give
        log `p1 p2`.

    >>> logits = np.array([[[0.0, 3.0, 0.0], [1.0, 1.0, 2.0]]])
    >>> first, last, score = best_spans(logits, max_length=2)
    >>> int(first[0, 0]), int(last[0, 0]), float(score[0, 0])
    (1, 2, 5.0)
    """
    start_BT = ops.cast(logits[:, 0], "float32")
    end_BT = ops.cast(logits[:, 1], "float32")
    T = ops.shape(start_BT)[1]
    L = max_length

    # The end logit of each span. `roll` wraps spans that pass the last word; they are masked below.
    ends_BTL = ops.stack([ops.roll(end_BT, -l, axis=1) for l in range(L)], axis=2)
    is_inside_TL = ops.arange(T)[:, None] + ops.arange(L) < T
    penalty_L = length_penalty * ops.arange(L, dtype="float32")
    score_BTL = start_BT[:, :, None] + ends_BTL - penalty_L
    score_BTL = masked_logits(score_BTL, is_inside_TL)

    score_BK, index_BK = ops.top_k(ops.reshape(score_BTL, (-1, T * L)), count)
    first_BK = index_BK // L
    last_BK = first_BK + index_BK % L
    return ops.cast(first_BK, "int32"), ops.cast(last_BK, "int32"), score_BK


def _same_words(words_N, context_BT, query_BJ, unknown):
    """True where a context word is a query word, bool `(B, T, J)`.

    They match if both are the same token, or the same known word.
    """
    context_BT1 = context_BT[:, :, None]
    query_B1J = query_BJ[:, None, :]
    t_word = ops.take(words_N, context_BT1, axis=0)
    j_word = ops.take(words_N, query_B1J, axis=0)
    is_same_token = ops.equal(context_BT1, query_B1J)
    is_same_word = ops.equal(t_word, j_word) & (t_word != unknown)
    is_real = (context_BT1 != 0) & (query_B1J != 0)
    return (is_same_token | is_same_word) & is_real


def _with_feature(x, flag):
    return ops.concatenate([x, ops.cast(flag, x.dtype)[..., None]], axis=-1)
