"""The common parts of the memory networks for dialog: inputs, history, the candidates' scores.

Shape suffixes:
    B dialogs   T turns   M sentences   W words   R turn distances   E entities   C candidates
    N words of all candidates   D features
"""

from typing import Literal

import keras
import numpy as np
from keras import ops

from colloquy.base.config import Config, Dropout, Layers, NonNegative, Positive
from colloquy.layers.bag_of_words import BagOfWords
from colloquy.layers.candidates import IdTable, MatchTypes
from colloquy.layers.dialog_history import SpeakerFeature, TimeFeature, history_mask
from colloquy.layers.ordered_words import OrderedWords
from colloquy.models.configured import ConfiguredModel

Shape = tuple[NonNegative, NonNegative]


class MemoryConfig(Config):
    """Fields of every memory network for dialog.

    `train.py` takes the first eight from the prepared dataset.
    """

    vocabulary_size: Positive
    """Words with an id, 1 to this."""
    max_words: Positive
    """Words of the longest sentence or candidate."""
    candidates: Shape
    """Number of candidates, and of words in all of them: `(C, N)`."""
    entities: NonNegative = 0
    """Number of entities in the knowledge base, E."""
    types: NonNegative = 0
    """Number of entity types."""
    candidate_entities: Shape = (0, 0)
    """Shape of the candidates' entities, `(C, K)`."""
    match_groups: Shape = (0, 0)
    """Shape of the match groups' members, see `layers.candidates.MatchTypes`."""
    match_candidates: Shape = (0, 0)
    """Shape of the candidates' match groups, see `layers.candidates.MatchTypes`."""

    embedding_dim: Positive = 128
    """`d_model`, features of word vectors and states."""
    speaker: bool = True
    """Memories contain their speaker."""
    time: bool = True
    """Memories contain their distance in turns."""
    time_limit: Positive = 32
    """Turn distances with their own embedding; longer ones share the last."""
    match_types: bool = False
    """Candidates contain the types of their words that occur in the conversation."""
    train_embedding: bool = True
    """`False`: random word vectors, frozen, so that an unseen entity is like any other."""
    dropout: Dropout = 0.0
    """Fraction dropped of each sentence's vector and of each turn's state; not in the papers."""

    @property
    def reads(self):
        """The model's inputs, arrays of a batch: see `tasks.dialog.split.DialogSplit.collate`."""
        reads = ["words", "sentences", "speakers", "turns"]
        if self.time:
            reads.append("times")
        if self.match_types:
            reads.append("mentions")
        return reads


class HopConfig(MemoryConfig):
    """Fields of a memory network that reads its memory several times."""

    hops: Layers = 3
    """Times that the memory is read."""


class SumConfig(HopConfig):
    """Fields of a memory network whose sentences are sums over their words."""

    encoding: Literal["sum", "position", "attention"] = "sum"
    """A sentence's vector: the `sum` of its word vectors; or so that the order of words counts:
    `position`, a sum weighted by place (Sukhbaatar et al. 2015), or `attention` between its words.
    Candidates are sums."""


class DialogModel(ConfiguredModel):
    """Scores every candidate response at every turn of dialogs.

    Each model adds its `Config` and a static method `equations(config, inputs)`, from `{name:
    KerasTensor}` to logits `(B, T, C)` and the list of the hops' attention weights.

    Args:
        config: A `Config` of the model.

    Call arguments: the dict of arrays that `config.reads` names, see
        `tasks.dialog.split.DialogSplit.collate`.

    Returns:
        Logits, float32 `(B, T, C)`.

    `attention_weights` holds the symbolic weights of each hop, `(B, H, T, M)`, for
    `keras.Model(model.input, ...)`.
    """

    def set_tables(self, tables):
        """Sets the tables of candidates and entities; trained variables stay.

        Args:
            tables: `{layer: arrays}`. Layers that the model lacks are skipped.
        """
        for layer in self.layers:
            if layer.name in tables:
                trained = [np.asarray(variable) for variable in layer.trainable_variables]
                layer.set_weights([*trained, *tables[layer.name]])

    def network(self, config):
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in config.reads}
        if "mentions" in inputs:
            inputs["mentions"] = keras.Input(
                (None, config.entities), dtype="uint8", name="mentions"
            )
        if "entities" in inputs:
            inputs["entities"] = keras.Input((None, None), dtype="int32", name="entities")
        logits, self.attention_weights = self.equations(config, inputs)
        return inputs, logits


def encoded_words(config, name, encoding="sum", positions="none", words=None, heads=1, scale=1.0):
    """The layer from a sentence's words to its vector: a `BagOfWords` or `OrderedWords`.

    `positions` are the sinusoids of a sum and of `attention`. `words` is the number of words,
    `None`: those of the vocabulary. `scale` is a factor of the word vectors.
    """
    settings = {
        "vocabulary_size": words or config.vocabulary_size,
        "dimension": config.embedding_dim,
        "max_words": config.max_words,
        "positions": positions,
        "scale": scale,
        "name": name,
    }
    if encoding == "sum":
        return BagOfWords(trainable=config.train_embedding, **settings)
    return OrderedWords(encoding=encoding, heads=heads, trained=config.train_embedding, **settings)


def dropped(config, x):
    """`x` with `config.dropout`."""
    if not config.dropout:
        return x
    return keras.layers.Dropout(config.dropout)(x)


def encode_sentences(config, encode, inputs):
    """The sentences of all dialogs, `(B, M, D)`.

    `encode`, from word ids `(S, W)` to vectors `(S, D)`, encodes each distinct one once.
    """
    words = inputs["typed_words" if "typed_words" in inputs else "words"]
    vectors_SD = encode(words)
    return dropped(config, ops.take(vectors_SD, inputs["sentences"], axis=0))


def read_history(config, encode, inputs):
    """Encodes the sentences of dialogs.

    Returns:
        The users' sentences, `(B, T, D)`.
        The memory of each turn, the sentences before it with their features: a list of the
        arguments of `layers.memory_attention.MemoryAttention` after the query.
    """
    x_BMD = encode_sentences(config, encode, inputs)
    speakers = inputs["speakers"]
    turns = inputs["turns"]
    user_BTD = ops.take_along_axis(x_BMD, turns[:, :, None], axis=1)

    memory_BMD = x_BMD
    if config.speaker:
        memory_BMD = SpeakerFeature(name="speaker")(x_BMD, speakers)
    memory = [memory_BMD, history_mask(speakers, turns)]
    if config.time:
        time = TimeFeature(config.time_limit, config.embedding_dim, name="time")
        memory += time(inputs["times"], turns)
    return user_BTD, memory


def score_candidates(config, state, encode, inputs):
    """The logit of every candidate at every turn, float32 `(B, T, C)`.

    It is the candidate's vector, a sum by `encode`, times the state, `(B, T, D)`, plus the gain of
    its match types.
    """
    state = dropped(config, state)
    num_candidates, num_words = config.candidates
    words_N = IdTable((num_words,), name="candidate_words")(inputs["turns"])
    rows_N = IdTable((num_words,), name="candidate_rows")(inputs["turns"])
    candidates_CD = encode(words_N, rows=rows_N, count=num_candidates)
    logits = ops.einsum("btd,cd->btc", state, candidates_CD)
    if config.match_types:
        seen = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        match = MatchTypes(
            config.types, config.match_groups, config.match_candidates, name="match_types"
        )
        logits = logits + match(state, inputs["mentions"], seen)
    return ops.cast(logits, "float32")
