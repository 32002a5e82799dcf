"""BiDAF: Seo, Kembhavi, Farhadi and Hajishirzi, "Bidirectional Attention Flow for Machine Comprehension", ICLR 2017.

characters, words -> highway -> LSTM -> attention flow G -> two LSTMs: M -> start; another LSTM -> end

Shape suffixes:
    B batch   N distinct tokens of a batch   L characters   T context words   J query words   D features (the paper's d)

Each distinct token of a batch goes through characters, words and highway once, however often it occurs.
"""

from typing import Annotated, Literal

import keras
from keras import ops
from pydantic import Field, model_validator

from base.config import Config, Dropout, NonNegative, Positive
from layers.attention_flow import AttentionFlow
from layers.bilstm import BiLSTM
from layers.char_cnn import CharacterCNN
from layers.dynamic_attention import DynamicBiLSTM
from layers.highway import Highway
from layers.masking import mask_from_ids, masked_logits, masked_softmax, zero_padding
from layers.self_attention import SelfAttention
from layers.word_embedding import WordEmbedding


class BiDAFConfig(Config):
    """Settings of BiDAF; the defaults are the paper's (section 4)."""

    vocabulary_size: Positive
    """Words with a vector: ids 1 to this."""
    characters: Positive
    """Characters with an id, 1 to this."""
    trained_words: NonNegative = 0
    """Number of words, the last ones, that have no vector in the file of word vectors; see `train_unknown`."""
    unknown_id: NonNegative = 2
    """Id of the unknown word."""
    embedding_dim: Positive = 100
    """Features of a word vector. Word vectors are frozen, except by the next two settings."""
    train_unknown: bool = False
    """Train the vector of the unknown word and those of `trained_words`; `prepare.py --trained_words`."""
    tuned_words: NonNegative = 0
    """Number of words, the first ones (the most frequent in GloVe's files), whose vectors are trained (Chen et al.
    2017, section 3.2); not in the paper."""
    hidden: Positive = 100
    """`d`, units of each LSTM in each direction."""
    character_dim: Positive = 8
    """Features of a character vector."""
    character_filters: Positive = 100
    """Filters of the character CNN: features of a word by its characters."""
    character_width: Positive = 5
    """Characters that a filter spans."""
    exact_match: bool = False
    """Add to the input of the first LSTM a feature of each word: whether the other text, context or query, has it too
    (Chen et al. 2017, section 3.2); not in the paper."""
    self_attention: bool = False
    """Between the two modelling LSTMs each context word attends to the others (Clark and Gardner 2018); not in the
    paper."""
    dropout: Dropout = 0.2
    """Fraction dropped before each LSTM, before the logits and on the character vectors."""
    end_pointer: Literal["paper", "official"] = "paper"
    """Input of the LSTM that finds the end. `paper`: `M`. `official`, as in the authors' code: `[G; M; a; M * a]`, `a`
    the mean of `M` weighted by the probabilities of the start."""
    use_characters: bool = True
    """`False`: no character CNN, an ablation of the paper."""
    use_words: bool = True
    """`False`: no word vectors, an ablation of the paper."""
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
    """Nats subtracted from the score of an answer for each word after its first, in the search for the best span;
    training does not use it. Not in the paper."""
    attention: Literal["flow", "dynamic"] = "flow"
    """`flow`, or `dynamic`, an ablation of the paper: computed inside the first modelling LSTM from its state; `G` is
    then `H`."""

    @model_validator(mode="after")
    def _check_words(self):
        if (self.train_unknown or self.tuned_words) and not self.use_words:
            raise ValueError("train_unknown or tuned_words needs use_words=True. Received: use_words=False")
        if self.tuned_words > self.vocabulary_size:
            raise ValueError(
                f"tuned_words must be at most vocabulary_size={self.vocabulary_size}. "
                f"Received: tuned_words={self.tuned_words}"
            )
        if not (self.use_characters or self.use_words):
            raise ValueError("use_characters and use_words must not both be False")
        return self


@keras.saving.register_keras_serializable("colloquy")
class BiDAF(keras.Model):
    """Scores every word of a context as the start and as the end of the answer to a query.

    Args:
        config: A `BiDAFConfig`.

    Call arguments: a dict of
        words: Word ids of the batch's distinct tokens, int32 `(N, )`; the first is padding, 0.
        characters: Their characters, int32 `(N, L)`, 0 = padding.
        context: Numbers of tokens, int32 `(B, T)`, 0 = padding.
        query: Likewise, `(B, J)`.

    Returns:
        Logits of start and end, float32 `(B, 2, T)`; `masked_logits` makes those of padding, which changes no other.
    """

    def __init__(self, config, **kwargs):
        c = config

        # === Layers ===
        words = WordEmbedding(c.vocabulary_size + 1, c.embedding_dim, trainable=False, name="word_embedding")
        characters = CharacterCNN(
            c.characters, c.character_dim, c.character_filters, c.character_width, c.dropout, name="character_cnn"
        )
        unknown = WordEmbedding(c.trained_words + 2, c.embedding_dim, "zeros", name="unknown_words")
        tuned = WordEmbedding(c.tuned_words + 1, c.embedding_dim, "zeros", name="tuned_words")
        highway = [Highway(name=f"highway_{i}") for i in range(2)]
        drop = [keras.layers.Dropout(c.dropout, name=f"dropout_{i}") for i in range(7)]
        contextual, end_lstm = BiLSTM(c.hidden, name="contextual"), BiLSTM(c.hidden, name="end")
        first = DynamicBiLSTM if c.attention == "dynamic" else BiLSTM
        modelling = [first(c.hidden, name="modelling_0"), BiLSTM(c.hidden, name="modelling_1")]
        start_logit, end_logit = (
            keras.layers.Dense(1, use_bias=False, name=f"{name}_logit") for name in ("start", "end")
        )

        # === Layers 1 and 2: tokens ===
        words_N = keras.Input((), dtype="int32", name="words")
        characters_NL = keras.Input((None,), dtype="int32", name="characters")
        context_BT = keras.Input((None,), dtype="int32", name="context")
        query_BJ = keras.Input((None,), dtype="int32", name="query")
        parts = [characters(characters_NL)] * c.use_characters
        if c.use_words:
            vector_ND = words(words_N)  # a trained vector is what was given and what is learnt besides
            if c.train_unknown:
                vector_ND = vector_ND + _learnt(unknown, _place(c, words_N))
            if c.tuned_words:
                vector_ND = vector_ND + _learnt(tuned, words_N * ops.cast(words_N <= c.tuned_words, "int32"))
            parts.append(vector_ND)
        x_ND = ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        for layer in highway:
            x_ND = layer(x_ND)

        # === Layer 3: H (B, T, 2d), U (B, J, 2d) ===
        t_mask, j_mask = mask_from_ids(context_BT), mask_from_ids(query_BJ)
        X, Q = drop[0](ops.take(x_ND, context_BT, axis=0)), drop[1](ops.take(x_ND, query_BJ, axis=0))
        if c.exact_match:
            same_BTJ = _same_words(words_N, context_BT, query_BJ, c.unknown_id)
            X, Q = _with_feature(X, ops.any(same_BTJ, axis=2)), _with_feature(Q, ops.any(same_BTJ, axis=1))
        H, U = contextual(X, t_mask), contextual(Q, j_mask)

        # === Layer 4: G (B, T, 8d); layer 5: M (B, T, 2d) ===
        if c.attention == "dynamic":
            G = H
            M = modelling[0](drop[2](H), U, t_mask, j_mask)
        else:
            flow = AttentionFlow(c.c2q, c.q2c, c.similarity_start, c.similarity, c.fusion, name="attention_flow")
            G = flow(H, U, t_mask, j_mask)
            M = modelling[0](drop[2](G), t_mask)
        if c.self_attention:
            M = SelfAttention(name="self_attention")(M, t_mask)
        M = modelling[1](drop[3](M), t_mask)

        # === Layer 6: p1 = softmax(w1 [G; M]), p2 = softmax(w2 [G; M2]) ===
        start_BT = start_logit(drop[4](ops.concatenate([G, M], axis=-1)))[..., 0]
        to_end = M
        if c.end_pointer == "official":
            p1_BT = masked_softmax(start_BT, t_mask)
            a = ops.einsum("bt,btd->bd", p1_BT, M)[:, None, :]
            to_end = ops.concatenate([G, M, a + ops.zeros_like(M), M * a], axis=-1)
        M2 = end_lstm(drop[5](to_end), t_mask)
        end_BT = end_logit(drop[6](ops.concatenate([G, M2], axis=-1)))[..., 0]
        logits = masked_logits(ops.stack([start_BT, end_BT], axis=1), t_mask[:, None, :])

        inputs = {"words": words_N, "characters": characters_NL, "context": context_BT, "query": query_BJ}
        super().__init__(inputs, logits, **kwargs)
        self.config = config

    @keras.Model.jit_compile.setter
    def jit_compile(self, value):
        if value:  # XLA does not know the operation
            for layer in self.layers:
                if isinstance(layer, BiLSTM):
                    layer.one_operation = False
        keras.Model.jit_compile.fset(self, value)

    def get_config(self):
        return {"config": self.config.to_json(), "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(BiDAFConfig.of(config["config"]), name=config["name"])


def _same_words(words_N, context_BT, query_BJ, unknown):
    """Whether a context word is a query word, bool `(B, T, J)`: the same token, or the same known word."""
    context_BT1, query_B1J = context_BT[:, :, None], query_BJ[:, None, :]
    t_word, j_word = ops.take(words_N, context_BT1, axis=0), ops.take(words_N, query_B1J, axis=0)
    same = ops.logical_or(
        ops.equal(context_BT1, query_B1J), ops.logical_and(ops.equal(t_word, j_word), ops.not_equal(t_word, unknown))
    )
    return ops.logical_and(same, ops.logical_and(mask_from_ids(context_BT1), mask_from_ids(query_B1J)))


def _with_feature(x, flag):
    return ops.concatenate([x, ops.cast(flag, x.dtype)[..., None]], axis=-1)


def _learnt(table, place):
    """What a table adds to the vectors of words by their places in it, 0 where a word has none."""
    return zero_padding(table(place), mask_from_ids(place)[:, None])


def _place(c, words):
    """Where the trained part of a word's vector stands: 0 nowhere, 1 the unknown word, then the last words."""
    after = words - (c.vocabulary_size - c.trained_words)  # 1 is the first of the last words
    place = ops.where(after > 0, after + 1, ops.zeros_like(after))
    return ops.where(ops.equal(words, c.unknown_id), ops.ones_like(place), place)
