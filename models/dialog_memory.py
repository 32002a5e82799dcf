"""The common parts of the memory networks for dialog: inputs, history, the candidates' scores.

Shape suffixes:
    B dialogs   T turns   M sentences   W words   R turn distances   E entities   C candidates
    N words of all candidates   D features   S distinct sentences of the batch
"""

from typing import Any, Literal, NamedTuple

import keras
import numpy as np
from keras import ops

from colloquy.base.config import Config, Dropout, Layers, NonNegative, Positive
from colloquy.layers.bag_of_words import BagOfWords
from colloquy.layers.candidates import IdTable, MatchTypes
from colloquy.layers.dialog_history import SpeakerFeature, TimeFeature, history_mask
from colloquy.layers.ordered_words import OrderedWords
from colloquy.models.configured import ConfiguredModel

TwoSizes = tuple[NonNegative, NonNegative]
"""Two sizes; often the shape of a table."""


class MemoryConfig(Config):
    """Fields of every memory network for dialog."""

    # === What the dataset decides ===

    vocabulary_size: Positive
    """Words with an id, 1 to this."""
    max_words: Positive
    """Words of the longest sentence or candidate."""
    candidates: TwoSizes
    """Number of candidates, and of words in all of them: `(C, N)`."""
    entities: NonNegative = 0
    """Number of entities in the knowledge base, E."""
    types: NonNegative = 0
    """Number of entity types."""
    candidate_entities: TwoSizes = (0, 0)
    """Shape of the table of the candidates' entities: `(C, most entities of a candidate)`."""
    match_groups: TwoSizes = (0, 0)
    """`groups` of `layers.candidates.MatchTypes`, which `match_types` adds."""
    match_candidates: TwoSizes = (0, 0)
    """Its `candidates`."""

    # === The network and its training ===

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
                # `set_weights` takes the trained variables first, then the others: the tables.
                trained = [np.asarray(variable) for variable in layer.trainable_variables]
                layer.set_weights([*trained, *tables[layer.name]])

    def network(self, config):
        inputs = {}
        # The shapes of the arrays that are not `(B, M)` or alike. `EntityMEMMA` reads `entities`.
        shapes = {"entities": (None, None), "mentions": (None, config.entities)}
        for name in config.reads:
            dtype = "uint8" if name == "mentions" else "int32"
            inputs[name] = keras.Input(shapes.get(name, (None,)), dtype=dtype, name=name)
        logits, self.attention_weights = self.equations(config, inputs)
        return inputs, logits


def make_encoder(c, name, num_words, encoding="sum", positions="none", heads=1, scale=1.0):
    """Makes the layer from a sentence's words to its vector: a `BagOfWords` or `OrderedWords`.

    Args:
        c: A `MemoryConfig`.
        name: Name of the layer.
        num_words: Words with an id, 1 to this.
        encoding: As in `SumConfig`.
        positions: Sinusoids of the words' positions, see `layers.bag_of_words`; `position` does not
            read them.
        heads: Heads of `attention`.
        scale: Factor of the word vectors.
    """
    settings = {
        "vocabulary_size": num_words,
        "dimension": c.embedding_dim,
        "max_words": c.max_words,
        "positions": positions,
        "scale": scale,
        "name": name,
    }
    if encoding == "sum":
        return BagOfWords(trainable=c.train_embedding, **settings)
    return OrderedWords(encoding=encoding, heads=heads, trained=c.train_embedding, **settings)


def dropped(config, x):
    """`x` with `config.dropout`."""
    if not config.dropout:
        return x
    return keras.layers.Dropout(config.dropout)(x)


def stored_ids(inputs, name, size):
    """Ids stored in the model, int32 `(size,)`, which `DialogModel.set_tables` sets."""
    # `IdTable` ignores its input. But a functional model holds only layers that have one.
    return IdTable((size,), name=name)(inputs["turns"])


def encode_sentences(config, encode, inputs):
    """The sentences of all dialogs, `(B, M, D)`.

    `encode` is the layer of `make_encoder`. It encodes the S distinct sentences of the batch once.
    `inputs["sentences"]`, `(B, M)`, has the place of each sentence among them.
    """
    # `EntityMEMMA` reads `typed_words`, in which types replace values of the knowledge base.
    words_SW = inputs["typed_words"] if "typed_words" in inputs else inputs["words"]
    vectors_SD = encode(words_SW)
    return dropped(config, ops.take(vectors_SD, inputs["sentences"], axis=0))


class Memory(NamedTuple):
    """What a hop reads: the arguments of `layers.memory_attention` after the query, in order."""

    sentences_BMD: Any
    """Vectors of all sentences, with their speakers."""
    mask_BTM: Any
    """Boolean, `True` for the sentences before a turn."""
    times_RD: Any = None
    """Vectors of the distances in time, or `None`."""
    distances_BTMR: Any = None
    """The distance of each sentence from each turn, one-hot, or `None`."""


def read_history(config, encode, inputs):
    """Encodes the sentences of dialogs; returns the users', `(B, T, D)`, and the `Memory`."""
    x_BMD = encode_sentences(config, encode, inputs)
    speakers = inputs["speakers"]
    turns = inputs["turns"]
    user_BTD = ops.take_along_axis(x_BMD, turns[:, :, None], axis=1)

    memory_BMD = x_BMD
    if config.speaker:
        memory_BMD = SpeakerFeature(name="speaker")(x_BMD, speakers)
    memory = Memory(memory_BMD, history_mask(speakers, turns))
    if config.time:
        time = TimeFeature(config.time_limit, config.embedding_dim, name="time")
        times_RD, distances_BTMR = time(inputs["times"], turns)
        memory = memory._replace(times_RD=times_RD, distances_BTMR=distances_BTMR)
    return user_BTD, memory


def score_candidates(config, state, encode, inputs):
    """The logit of every candidate at every turn, float32 `(B, T, C)`.

    It is the candidate's vector, the sum of its words' by `encode`, times the state, `(B, T, D)`,
    plus the gain of its match types.
    """
    state = dropped(config, state)
    num_candidates, num_words = config.candidates
    # All candidates are encoded at once, see `layers.bag_of_words`: their words in one list, and
    # the candidate of each word.
    words_N = stored_ids(inputs, "candidate_words", num_words)
    candidate_N = stored_ids(inputs, "candidate_rows", num_words)
    candidates_CD = encode(words_N, rows=candidate_N, count=num_candidates)
    logits = ops.einsum("btd,cd->btc", state, candidates_CD)
    if config.match_types:
        seen = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        match = MatchTypes(
            config.types, config.match_groups, config.match_candidates, name="match_types"
        )
        logits = logits + match(state, inputs["mentions"], seen)
    return ops.cast(logits, "float32")
