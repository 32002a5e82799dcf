"""The settings of DAM."""

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from colloquy.base.config import Config, Dropout, Layers, NonNegative, Positive


class LexicalMatchConfig(Config):
    """Settings of the TF-IDF cosine beside a DAM; see `layers.lexical_match.LexicalMatch`."""

    gain: Annotated[float, Field(gt=0)] = 16.0
    """Factor of the cosine of context and response. Their product is added to the logit, but not in
    training: beside it, the network would learn less."""
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

    # === The paper ===

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
    conv_filters: tuple[Positive, Positive] = (32, 16)
    """Channels of the two convolutions; (16, 16) for Douban."""
    variant: Literal["full", "first", "last", "self", "cross"] = "full"
    """Match matrices to use: `full`, all; `first` or `last`, of level 0 or L; `self` or `cross`, of
    that kind."""

    # === The authors' code, where it differs from the paper: `release_settings` ===

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
    """The rows of the match image are the response's words and its columns the utterance's, as in
    the release's `last_net` alone; else the other way round."""
    positional: bool = False
    """Add weighted sinusoids to the word vectors (the release's `is_positional`)."""

    # === Extensions, not in the paper ===

    embedding_dropout: Dropout = 0.0
    """Fraction of word-vector features dropped in training. The paper has none."""
    hashed_words: Annotated[int, Field(ge=0, le=2**24)] = 0
    """Number of ids after `vocabulary_size`. An unknown word has one of them, by its hash, so that
    `lexical` can compare it; the network reads it as `unknown_id`."""
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

    @staticmethod
    def release_settings(variant="full"):
        """Settings under which a variant computes what the original release's network computes."""
        return {
            "masking": "release",
            "scalar_bias": True,
            "match_divisor": math.sqrt(200.0),
            "response_rows": variant == "last",
        }
