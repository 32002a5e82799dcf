"""What the memory networks for dialog have in common: their inputs, the memory's features, and the candidates' scores.

Shape suffixes:
    B dialogs   T turns   M sentences   W words   R distances in time   E entities   C candidates
    N words of all candidates   D features
"""

import dataclasses

import keras
from keras import ops

from layers.candidates import IdTable, MatchTypes
from layers.dialog_history import SpeakerFeature, TimeFeature, history_mask


@dataclasses.dataclass(frozen=True)
class WorldSizes:
    """What the prepared dataset decides; `train.py` fills it in."""

    vocabulary_size: int
    """Words with an id, 1 to this."""
    max_words: int
    """Words of the longest sentence or candidate."""
    candidates: tuple[int, int]
    """How many there are, and how many words all of them have: `(C, N)`."""
    entities: int = 0
    """E."""
    types: int = 0
    """Types of entities."""
    candidate_entities: tuple[int, int] = (0, 0)
    """Shape of the candidates' entities, `(C, K)`."""
    match_groups: tuple[int, int] = (0, 0)
    """See `layers.candidates.MatchTypes`, as for the next."""
    match_candidates: tuple[int, int] = (0, 0)

    def __post_init__(self):
        for field in ("candidates", "candidate_entities", "match_groups", "match_candidates"):
            object.__setattr__(self, field, tuple(getattr(self, field)))  # a list, when read from JSON


@dataclasses.dataclass(frozen=True)
class MemoryConfig(WorldSizes):
    """Fields of every memory network for dialog."""

    embedding_dim: int = 128
    """`d_model`."""
    speaker: bool = True
    """Memories know who spoke."""
    time: bool = True
    """Memories know how many turns ago they were."""
    time_limit: int = 32
    """Distances in time are told apart up to this."""
    match_types: bool = False
    """Candidates know the types of their words that occur in the conversation."""
    train_embedding: bool = True
    """`False` keeps the word vectors random, so that an unseen entity is like any other."""

    def __post_init__(self):
        super().__post_init__()
        for field in ("vocabulary_size", "max_words", "embedding_dim", "time_limit"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field} must be at least 1. Received: {field}={getattr(self, field)}")

    @property
    def reads(self):
        """The arrays of a batch that the model takes, see `tasks.dialog.batches.DialogSplit.collate`."""
        return ["words", "sentences", "speakers", "turns"] + ["times"] * self.time + ["mentions"] * self.match_types


def inputs_of(config):
    """The Keras inputs that a config reads: `{name: KerasTensor}`."""
    shapes = {"mentions": (None, config.entities)}
    dtypes = {"mentions": "uint8"}
    return {
        name: keras.Input(shapes.get(name, (None,)), dtype=dtypes.get(name, "int32"), name=name)
        for name in config.reads
    }


def encoded(encode, inputs):
    """The sentences of all dialogs, each distinct one encoded once.

    Args:
        encode: Layer from word ids `(S, W)` to vectors `(S, D)`.
        inputs: Of `inputs_of`.

    Returns:
        Float `(B, M, D)`.
    """
    words = inputs["typed_words" if "typed_words" in inputs else "words"]
    return ops.take(encode(words), inputs["sentences"], axis=0)


def memory_of(config, x, inputs):
    """Gives encoded sentences their features.

    Args:
        config: A `MemoryConfig`.
        x: Encoded sentences, `(B, M, D)`.
        inputs: Of `inputs_of`.

    Returns:
        What `layers.memory_attention.MemoryAttention` takes behind the query: memory, mask, and where the config has
        time, the vectors and distances of time.
    """
    memory = SpeakerFeature(name="speaker")(x, inputs["speakers"]) if config.speaker else x
    mask = history_mask(inputs["speakers"], inputs["turns"])
    if not config.time:
        return [memory, mask]
    return [memory, mask, *TimeFeature(config.time_limit, x.shape[-1], name="time")(inputs["times"], inputs["turns"])]


def logits_of(config, state, encode, inputs):
    """The score of every candidate for every turn: its vector times the state's, and what its types add.

    Args:
        config: A `MemoryConfig`.
        state: `(B, T, D)`.
        encode: `layers.bag_of_words.BagOfWords` for the candidates.
        inputs: Of `inputs_of`.

    Returns:
        Float32 logits `(B, T, C)`.
    """
    count, words = config.candidates
    words_N, rows_N = (IdTable((words,), name=f"candidate_{name}")(inputs["turns"]) for name in ("words", "rows"))
    candidates_CD = encode(words_N, rows=rows_N, count=count)
    logits = ops.einsum("btd,cd->btc", state, candidates_CD)
    if config.match_types:
        seen = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        match = MatchTypes(config.types, config.match_groups, config.match_candidates, name="match_types")
        logits = logits + match(state, inputs["mentions"], seen)
    return ops.cast(logits, "float32")
