"""Seq2seq with attention.

Cho et al., EMNLP 2014; Bahdanau et al., ICLR 2015; Luong et al., EMNLP 2015:

    source -> encoder: memory h, last state -> decoder, attending to h at every word -> logits of
    the next word

Shape suffixes:
    B batch   S source words   T target words   E features of a word   H units   V words
    R unpadded words of all targets
"""

from typing import Annotated, Literal

import keras
from pydantic import Field, model_validator

from colloquy.base.config import Config, Dropout, Layers, Positive
from colloquy.layers.gradients import Dense
from colloquy.layers.masking import mask_from_ids
from colloquy.layers.recurrent_decoder import RecurrentDecoder
from colloquy.layers.recurrent_encoder import RecurrentEncoder
from colloquy.layers.unpadding import UnpadInTraining
from colloquy.layers.word_embedding import ReversibleWordEmbedding
from colloquy.models.configured import ConfiguredModel

STARTS = {
    "uniform": keras.initializers.RandomUniform(-0.1, 0.1),
    "normal": keras.initializers.RandomNormal(stddev=1.0),
}


class Seq2SeqConfig(Config):
    """Settings of a seq2seq model."""

    vocabulary_size: Positive
    """V, words with an id, 1 to V. Id 0 is padding; id V + 1 begins every target."""
    embedding_dim: Positive = 256
    """Dimension of word vectors."""
    cell: Literal["gru", "lstm"] = "gru"
    """Cell of encoder and decoder."""
    hidden: Positive = 256
    """Dimension of the memory and of the decoder's state."""
    layers: Annotated[Layers, Field(ge=1)] = 1
    """Recurrent layers of the encoder, and of the decoder."""
    bidirectional: bool = True
    """The encoder reads in both directions."""
    merge: Literal["concat", "sum"] = "concat"
    """The two directions are joined by `concat`, half of `hidden` each, or `sum`, `hidden` each."""
    attention: Literal["none", "additive", "dot", "luong_dot", "general", "scaled_dot"] = "additive"
    """`none`: the decoder does not attend. `additive` (Bahdanau) and `dot`: it attends before each
    step, and the context is an input of its cell. `luong_dot`, `general` (both Luong) and
    `scaled_dot`: it attends after each step."""
    output: Literal["state", "all"] = "state"
    """Input of the next word's logits: the decoder's `state` (Luong's attentional vector with his
    attention), or `all`: the state, the word before and the context."""
    tied_output: bool = False
    """The logit of a word is its vector times a projection of the decoder's output."""
    embedding_start: Literal["uniform", "normal"] = "uniform"
    """Initial word vectors: `uniform` in [-.1, .1], or `normal`, of standard deviation 1."""
    dropout: Dropout = 0.2
    """Fraction dropped of word vectors, between layers and before the logits."""
    reverse: bool = False
    """Sources and targets change places: the model learns to write the utterance before a reply. It
    reranks replies by mutual information (Li et al. 2016). The network is the same."""

    @model_validator(mode="after")
    def _check_hidden(self):
        if self.bidirectional and self.merge == "concat" and self.hidden % 2:
            raise ValueError(
                f"hidden must be even to be halved by merge=concat. Received: hidden={self.hidden}"
            )
        return self


@keras.saving.register_keras_serializable("colloquy")
class Seq2Seq(ConfiguredModel):
    """Scores every word of a target by the source and the words before it.

    Args:
        config: A `Seq2SeqConfig`.

    Call arguments: a dict of
        source: Word ids, int32 `(B, S)`, 0 = padding, at the end.
        target_in: The target one step late, int32 `(B, T)`: `model.begin_id`, then all but its
            last word.

    Returns:
        Logits of the target's words, float `(B, T, V + 1)`, of the ids 0 to V; padding changes none
        of them. In training on TensorFlow, only the logits of the unpadded words, `(R, V + 1)`, see
        `layers.unpadding`.
    """

    Config = Seq2SeqConfig

    def network(self, c):
        # === Layers ===
        # Source and target words have the same vectors. Each model gets its own copy of the
        # initializer, and so its own random numbers.
        num_ids = c.vocabulary_size + 2  # padding, the words, the beginning of a target
        embedding = ReversibleWordEmbedding(
            num_ids,
            c.embedding_dim,
            embeddings_initializer=STARTS[c.embedding_start].clone(),
            name="word_embedding",
        )
        size = {"cell": c.cell, "units": c.hidden, "layers": c.layers, "dropout": c.dropout}
        encoder = RecurrentEncoder(
            **size, bidirectional=c.bidirectional, merge=c.merge, name="encoder"
        )
        decoder = RecurrentDecoder(**size, attention=c.attention, output=c.output, name="decoder")
        drop = keras.layers.Dropout(c.dropout, name="dropout")
        if c.tied_output:
            output_layer = Dense(c.embedding_dim, name="projection")
        else:
            output_layer = Dense(c.vocabulary_size + 1, name="logits")

        # === Encoder ===
        source_BS = keras.Input((None,), dtype="int32", name="source")
        target_BT = keras.Input((None,), dtype="int32", name="target_in")
        mask_BS = mask_from_ids(source_BS)
        memory_BSH, *states = encoder(drop(embedding(source_BS)), mask_BS)

        # === Decoder ===
        x_BTH = drop(decoder(drop(embedding(target_BT)), memory_BSH, mask_BS, states))
        x_BTH = UnpadInTraining(name="unpad")(x_BTH, mask_from_ids(target_BT))

        logits = _logits(c, embedding, output_layer, x_BTH)
        return {"source": source_BS, "target_in": target_BT}, logits

    # === Word by word, see models.decoding ===

    @property
    def begin_id(self):
        """The id that begins every target."""
        return self.config.vocabulary_size + 1

    def encode(self, source):
        """Reads sources, int32 `(B, S)`.

        Returns the decoder's first states and the cache of its steps, lists of `(B, ...)`.
        """
        embedding = self.get_layer("word_embedding")
        encoder = self.get_layer("encoder")
        decoder = self.get_layer("decoder")
        mask = mask_from_ids(source)
        memory, *states = encoder(embedding(source), mask)
        return states, decoder.encoder_cache(memory, mask, states)

    def step(self, words, states, cache):
        """Scores the next word of each target.

        Args:
            words: The ids of the words before it, int32 `(B,)`; at first `begin_id`.
            states: The states before `words`.
            cache: As from `encode`.

        Returns:
            Logits of the next word, float `(B, V + 1)`.
            The states after `words`.
            The attention weights `(B, S)`, or `None`.
        """
        embedding = self.get_layer("word_embedding")
        decoder = self.get_layer("decoder")
        x, states, weights = decoder.step(embedding(words), states, cache)
        output_layer = self.get_layer("projection" if self.config.tied_output else "logits")
        return _logits(self.config, embedding, output_layer, x), states, weights


def _logits(c, embedding, output_layer, x):
    """Logits of the ids 0 to V, from the output of the decoder."""
    if c.tied_output:
        return embedding(output_layer(x), scored=c.vocabulary_size + 1)
    return output_layer(x)
