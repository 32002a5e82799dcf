"""DAM, the deep attention matching network.

Zhou et al., "Multi-Turn Response Selection for Chatbots with Deep Attention Matching Network", ACL
2018:

    turns, responses -> embedding -> L self-attention levels -> match matrices of every level ->
    3-D convolutions -> logits

One context is scored against N candidate responses at once, so it is encoded once however many
there are.

Shape suffixes:
    B batch   N candidates   T turns   K utterance words   J response words   D features
    C channels, one a match matrix
"""

import math
from typing import Annotated, Literal

import keras
from keras import ops
from pydantic import Field, model_validator

from colloquy.base.config import Config, Dropout, Layers, NonNegative, Positive
from colloquy.layers.attentive_module import AttentiveModule
from colloquy.layers.cross_match import CrossMatch
from colloquy.layers.lexical_match import LexicalMatch
from colloquy.layers.masking import mask_from_ids, zero_padding
from colloquy.layers.match_aggregation import MatchAggregation
from colloquy.layers.positions import PositionalEncoding
from colloquy.layers.word_embedding import WordEmbedding
from colloquy.models.configured import ConfiguredModel


class LexicalMatchConfig(Config):
    """Settings of the TF-IDF cosine beside a DAM; see `layers.lexical_match.LexicalMatch`."""

    gain: Annotated[float, Field(gt=0)] = 16.0
    """Factor of the cosine of context and response, which is added to the logit outside
    training."""
    power: Annotated[float, Field(ge=0)] = 1.0
    """Power of the inverse document frequencies: the higher, the more rare words count."""
    stems: bool = False
    """Compare sets of stems: words with one stem are one word, which counts once."""
    echo_gain: Annotated[float, Field(ge=0)] = 0.0
    """Factor of the term that lowers the score of a response that repeats a turn; 0: no such
    term."""
    turns: Positive = 20
    """Turns read, the last ones: more than the network reads, since they cost little."""
    words: Positive = 100
    """Words read of each turn and response."""


class DAMConfig(Config):
    """Settings of DAM; the defaults are the paper's (section 4.3) on Ubuntu V1."""

    vocabulary_size: Positive
    """Words with an id, 1 to this; the table has one row more, for padding."""
    embedding_dim: Positive = 200
    """`d`, of the word vectors and all layers."""
    max_turns: Positive = 9
    """Turns of the context that are read, the last ones."""
    max_words: Positive = 50
    """Words of an utterance that are read, the last ones."""
    levels: Layers = 5
    """`L`, self-attention layers; the release's `stack_num`."""
    variant: Literal["full", "first", "last", "self", "cross"] = "full"
    """Match matrices to use: `full`, all; `first` or `last`, of level 0 or L; `self` or `cross`, of
    that kind."""
    conv_filters: tuple[Positive, Positive] = (32, 16)
    """Channels of the two convolutions; (16, 16) for Douban."""
    positional: bool = False
    """Add weighted sinusoids to the word vectors (the release's `is_positional`)."""
    embedding_dropout: Dropout = 0.0
    """Fraction of word-vector features dropped in training. The paper has none."""
    masking: Literal["exact", "release"] = "exact"
    """`exact`: padding changes nothing, so a batch can be cut to its real size. `release`: the
    release's masks, under which padded words and empty turns count."""
    scalar_bias: bool = False
    """The biases of each feed-forward net are single numbers, as in the release; the paper's `b1`,
    `b2` are vectors."""
    match_divisor: Annotated[float, Field(ge=0)] = 0.0
    """Every match is divided by this; 0: by `sqrt(embedding_dim)`. The release always divides by
    `sqrt(200)`, which is the same at its 200 dimensions; the paper does not divide."""
    response_rows: bool = False
    """The match image has the response's words before the utterance's, as in the release's
    `last_net` alone."""
    hashed_words: Annotated[int, Field(ge=0, le=2**24)] = 0
    """Ids after `vocabulary_size`, of unknown words by their hash; they share the vector of
    `unknown_id`."""
    unknown_id: NonNegative = 0
    """Id of `_UNK_`; 0 without one."""
    lexical: LexicalMatchConfig | None = None
    """TF-IDF cosine added to the logits, an extension, not the paper's; `None`: nothing."""

    @model_validator(mode="after")
    def _check_hashed_words(self):
        if self.hashed_words and not 0 < self.unknown_id <= self.vocabulary_size:
            raise ValueError(
                f"hashed_words expect an unknown_id. Received: unknown_id={self.unknown_id}"
            )
        return self


def release_settings(variant="full"):
    """The settings under which a variant computes what the original release's network computes."""
    return {
        "masking": "release",
        "scalar_bias": True,
        "match_divisor": math.sqrt(200.0),
        "response_rows": variant == "last",
    }


@keras.saving.register_keras_serializable("colloquy")
class DAM(ConfiguredModel):
    """Scores candidate responses to a multi-turn context.

    Args:
        config: A `DAMConfig`.

    Call arguments: a dict of
        turns: Word ids `(B, T, K)`, int32, 0 = padding, oldest turn first; `T <= max_turns`, `K <=
            max_words`.
        responses: Word ids `(B, N, J)`, int32, `J <= max_words`.
        context, candidates: Only with `config.lexical`: as `turns` and `responses`, of any size.

    With `masking="release"` T, K and J must have their largest size.

    Returns:
        Logits, float32 `(B, N)`: the paper's `g(c, r)` is their sigmoid.

    Padding at the end (of words, turns, candidates) changes no logit, unless `masking="release"`;
    an empty turn between two others does.
    Symbolic, for `keras.Model(model.input, ...)`: `match_matrices`, `{name: (B, N, T, K, J)}` in
    the order of the image's channels, and `representations`, the lists `U`, `(B, 1, T, K, D)`, and
    `R`, `(B, N, 1, J, D)`, of all levels.
    """

    Config = DAMConfig

    @property
    def compares_stems(self):
        """True if the lexical match compares stems, which `set_document_weights` then takes."""
        return self.config.lexical is not None and self.config.lexical.stems

    def set_document_weights(self, idf, stems=None):
        """Sets the tables of the lexical match.

        Args:
            idf: Inverse document frequency of each word id, float `(ids,)`.
            stems: The id of each word's stem, int `(ids,)`, if the config asks for stems.
        """
        layer = self.get_layer("lexical_match")
        if stems is not None:
            layer.stem.assign(stems)
        layer.idf.assign(idf)

    def network(self, c):
        levels = {"first": [0], "last": [c.levels]}.get(c.variant, range(c.levels + 1))

        # === Layers ===
        embed = _word_vectors(c)
        kind = c.masking, c.scalar_bias
        self_attention = [
            AttentiveModule(*kind, name=f"self_attention_{l}") for l in range(max(levels))
        ]
        cross_match = {
            l: CrossMatch(*kind, name=f"cross_match_{l}") for l in levels if c.variant != "self"
        }
        scale = 1.0 / (c.match_divisor or math.sqrt(c.embedding_dim))
        aggregate = MatchAggregation(
            c.max_turns, c.max_words, c.conv_filters, scale, c.masking, name="aggregation"
        )

        # === Representation (section 3.4) ===
        names = ["turns", "responses"] + ["context", "candidates"] * bool(c.lexical)
        inputs = {name: keras.Input((None, None), dtype="int32", name=name) for name in names}
        turns_BTK, responses_BNJ, *whole = inputs.values()
        # Singleton axes, so that every turn meets every candidate by broadcasting.
        u_mask = mask_from_ids(turns_BTK)[:, None]  # (B, 1, T, K)
        r_mask = mask_from_ids(responses_BNJ)[:, :, None]  # (B, N, 1, J)
        U = [embed(turns_BTK)[:, None]]  # U^0: (B, 1, T, K, D)
        R = [embed(responses_BNJ)[:, :, None]]  # R^0: (B, N, 1, J, D)
        for attend in self_attention:
            # U^{l+1} = AttentiveModule(U^l, U^l, U^l), the same weights for R
            U.append(attend(U[-1], U[-1], U[-1], u_mask, u_mask))
            R.append(attend(R[-1], R[-1], R[-1], r_mask, r_mask))

        # === Matching (section 3.5) ===
        matches = _match_matrices(c.variant, levels, cross_match, U, R, u_mask, r_mask)

        # === Aggregation (section 3.6) ===
        M = list(matches.values())  # C times (B, N, T, K, J)
        M_mask = u_mask[..., :, None] & r_mask[..., None, :]
        if c.response_rows:
            M = [ops.swapaxes(m, 3, 4) for m in M]
            M_mask = ops.swapaxes(M_mask, 3, 4)
        logits = aggregate(M, M_mask)

        if whole:
            logits = logits + _lexical_match(c)(*whole)
        self.match_matrices = matches
        self.representations = {"U": U, "R": R}
        return inputs, logits


def _match_matrices(variant, levels, cross_match, U, R, u_mask, r_mask):
    """The match matrices of a variant, `{name: (B, N, T, K, J)}`, in the order of the channels.

    Args:
        levels: The levels to match.
        cross_match: `{level: CrossMatch}`.
        U, R: Representations of all levels, `(B, 1, T, K, D)` and `(B, N, 1, J, D)`.
        u_mask, r_mask: `(B, 1, T, K)` and `(B, N, 1, J)`.
    """
    M_self = {}
    for l in levels:
        # M_self^l = U^l R^l^T: (B, N, T, K, J)
        U_BTKD = ops.squeeze(U[l], 1)
        R_BNJD = ops.squeeze(R[l], 2)
        M_self[l] = ops.einsum("btkd,bnjd->bntkj", U_BTKD, R_BNJD)

    matches = {}
    for l, match in cross_match.items():
        matches[f"M_cross {l}"] = match(U[l], R[l], M_self[l], u_mask, r_mask)
    if variant != "cross":
        for l, M in M_self.items():
            matches[f"M_self {l}"] = M
    return matches


def _lexical_match(c):
    """The layer that adds a TF-IDF cosine to the logits, an extension."""
    return LexicalMatch(
        c.vocabulary_size + c.hashed_words,
        c.unknown_id,
        gain=c.lexical.gain,
        power=c.lexical.power,
        stems=c.lexical.stems,
        echo_gain=c.lexical.echo_gain,
        name="lexical_match",
    )


def _word_vectors(c):
    """The layers from word ids to `U^0` or `R^0`, as a function."""
    embedding = WordEmbedding(
        c.vocabulary_size + 1,
        c.embedding_dim,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=0.1),
        name="word_embedding",
    )
    positions = PositionalEncoding(c.max_words, name="positional")
    dropout = keras.layers.Dropout(c.embedding_dropout, name="embedding_dropout")

    def embed(ids):
        known_ids = ids
        if c.hashed_words:
            known_ids = ops.where(ids > c.vocabulary_size, c.unknown_id, ids)
        x = embedding(known_ids)
        if c.positional:
            x = positions(x)
        x = dropout(x)
        if c.masking == "release":
            return x
        return zero_padding(x, mask_from_ids(ids)[..., None])

    return embed
