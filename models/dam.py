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

import keras
from keras import ops

from colloquy.layers.attentive_module import AttentiveModule
from colloquy.layers.cross_match import CrossMatch
from colloquy.layers.lexical_match import LexicalMatch
from colloquy.layers.masking import mask_from_ids, zero_padding
from colloquy.layers.match_aggregation import MatchAggregation
from colloquy.layers.positions import PositionalEncoding
from colloquy.layers.word_embedding import WordEmbedding
from colloquy.models.configured import ConfiguredModel
from colloquy.models.dam_config import DAMConfig


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

    Padding at the end (of words, turns, candidates) changes no logit, unless `masking="release"`.
    An empty turn between two others changes the logits.

    Attributes: symbolic tensors, for `keras.Model(model.input, ...)`.
        match_matrices: `{name: (B, N, T, K, J)}`, in the order of the image's channels.
        representations: `{"U": [(B, 1, T, K, D)], "R": [(B, N, 1, J, D)]}`, a tensor per level.
    """

    Config = DAMConfig

    def network(self, c):
        # === Layers ===
        matched_levels = _matched_levels(c)
        embed = _word_vectors(c)
        self_attention = []
        for l in range(max(matched_levels)):  # layer l makes level l + 1 of level l
            self_attention.append(
                AttentiveModule(c.masking, c.scalar_bias, name=f"self_attention_{l}")
            )
        cross_match = {}
        if c.variant != "self":
            for l in matched_levels:
                cross_match[l] = CrossMatch(c.masking, c.scalar_bias, name=f"cross_match_{l}")
        scale = 1.0 / (c.match_divisor or math.sqrt(c.embedding_dim))
        aggregate = MatchAggregation(
            c.max_turns, c.max_words, c.conv_filters, scale, c.masking, name="aggregation"
        )

        # === Representation (section 3.4) ===
        turns_BTK = keras.Input((None, None), dtype="int32", name="turns")
        responses_BNJ = keras.Input((None, None), dtype="int32", name="responses")
        inputs = {"turns": turns_BTK, "responses": responses_BNJ}
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
        matches = {}
        M_self = {l: _self_match(U[l], R[l]) for l in matched_levels}
        for l, match in cross_match.items():
            matches[f"M_cross {l}"] = match(U[l], R[l], M_self[l], u_mask, r_mask)
        if c.variant != "cross":
            for l in matched_levels:
                matches[f"M_self {l}"] = M_self[l]

        # === Aggregation (section 3.6) ===
        M = list(matches.values())  # C times (B, N, T, K, J)
        M_mask = u_mask[..., :, None] & r_mask[..., None, :]
        if c.response_rows:
            M = [ops.swapaxes(m, 3, 4) for m in M]
            M_mask = ops.swapaxes(M_mask, 3, 4)
        logits = aggregate(M, M_mask)

        # === An extension, not in the paper ===
        if c.lexical:
            inputs["context"] = keras.Input((None, None), dtype="int32", name="context")
            inputs["candidates"] = keras.Input((None, None), dtype="int32", name="candidates")
            match_words = _lexical_match(c)
            logits = logits + match_words(inputs["context"], inputs["candidates"])

        self.match_matrices = matches
        self.representations = {"U": U, "R": R}
        return inputs, logits


def _matched_levels(c):
    """The levels whose match matrices a variant uses."""
    if c.variant == "first":
        return [0]
    if c.variant == "last":
        return [c.levels]
    return list(range(c.levels + 1))


def _word_vectors(c):
    """Makes the layers from word ids to `U^0` or `R^0`; returns the function that calls them."""
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
            # Ids after the vocabulary are hashes of unknown words, which only `lexical` reads.
            known_ids = ops.where(ids > c.vocabulary_size, c.unknown_id, ids)
        x = embedding(known_ids)
        if c.positional:
            x = positions(x)
        x = dropout(x)
        if c.masking == "release":
            # In the release, dropout and positions also reach padding.
            return x
        return zero_padding(x, mask_from_ids(ids)[..., None])

    return embed


def _self_match(U, R):
    """M_self = U R^T, `(B, N, T, K, J)`, of U `(B, 1, T, K, D)` and R `(B, N, 1, J, D)`."""
    U_BTKD = ops.squeeze(U, 1)
    R_BNJD = ops.squeeze(R, 2)
    return ops.einsum("btkd,bnjd->bntkj", U_BTKD, R_BNJD)


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
