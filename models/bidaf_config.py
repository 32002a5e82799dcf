"""The settings of BiDAF."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from colloquy.base.config import Config, Dropout, NonNegative, Positive


class BiDAFConfig(Config):
    """Settings of BiDAF; the defaults are the paper's (section 4)."""

    # === What the dataset decides ===

    vocabulary_size: Positive
    """Words with a vector: ids 1 to this."""
    characters: Positive
    """Characters with an id, 1 to this."""
    trained_words: NonNegative = 0
    """Number of words, the last ones of the vocabulary, that have no vector in the file of word
    vectors; `prepare.py --trained_words`. Only `train_unknown` uses it."""
    unknown_id: NonNegative = 2
    """Id of the unknown word."""

    # === The paper ===

    embedding_dim: Positive = 100
    """Features of a word vector. Word vectors are frozen, except by `train_unknown`."""
    character_dim: Positive = 8
    """Features of a character vector."""
    character_filters: Positive = 100
    """Filters of the character CNN: features of a word by its characters."""
    character_width: Positive = 5
    """Characters that a filter spans."""
    hidden: Positive = 100
    """`d`, units of each LSTM in each direction."""
    dropout: Dropout = 0.2
    """Fraction dropped before each LSTM, before the logits and on the character vectors."""

    # === Variants of the network: the paper's ablations, its code, other descriptions of it ===

    use_characters: bool = True
    """`False`: no character CNN, an ablation of the paper."""
    use_words: bool = True
    """`False`: no word vectors, an ablation of the paper."""
    c2q: bool = True
    """`False`: the mean of `U` instead of context-to-query attention, an ablation of the paper."""
    q2c: bool = True
    """`False`: no query-to-context attention in `G`, an ablation of the paper."""
    attention: Literal["flow", "dynamic"] = "flow"
    """`flow`, or `dynamic`, an ablation of the paper: computed inside the first modelling LSTM from
    its state; `G` is then `H`."""
    similarity: Literal["trilinear", "mlp"] = "trilinear"
    """`trilinear`, eq. 1, or `mlp`, a perceptron with one hidden layer."""
    similarity_start: Literal["glorot", "dot"] = "glorot"
    """Initial weights of eq. 1: `glorot`, or `dot`, a dot product; see `layers.attention_flow`."""
    fusion: Literal["concat", "mlp"] = "concat"
    """`G` by concatenation, eq. 2, or by a perceptron on that, which the paper mentions."""
    modelling_layers: Literal[1, 2] = 2
    """LSTMs that make `M` of `G`. The paper has two; many descriptions of it have one."""
    end_pointer: Literal["paper", "official"] = "paper"
    """Input of the LSTM that finds the end. `paper`: `M`. `official`, as in the authors' code: `[G;
    M; a; M * a]`, `a` the mean of `M` weighted by the probabilities of the start."""

    # === Extensions, not in the paper ===

    exact_match: bool = False
    """Add to the input of the first LSTM a feature of each word: whether the other text, context or
    query, has it too (Chen et al. 2017, section 3.2); not in the paper."""
    train_unknown: bool = False
    """Train the vectors of the unknown word and of the `trained_words`."""
    self_attention: bool = False
    """Between the two modelling LSTMs each context word attends to the others (Clark and Gardner
    2018); not in the paper."""
    no_answer: bool = False
    """Besides the spans, "this context has no answer" is an option, whose logit is 0 (Clark and
    Gardner 2018, section 3.2); not in the paper. A learnt number, the logit that the context has an
    answer, is added to the logits of all its spans."""

    # === The search for the answer, `models.best_spans` ===

    max_answer_words: Positive = 30
    """Words of the longest answer that is looked for; 0.03 % of SQuAD's are longer. Training does
    not use it."""
    length_penalty: Annotated[float, Field(ge=0)] = 0.0
    """Nats subtracted from the score of an answer for each word after its first, in the search for
    the best span; training does not use it. Not in the paper."""

    @model_validator(mode="after")
    def _check_together(self):
        if self.train_unknown and not self.use_words:
            raise ValueError("train_unknown needs use_words=True. Received: use_words=False")
        if self.self_attention and self.modelling_layers == 1:
            raise ValueError(
                "self_attention is between two modelling LSTMs. Received: modelling_layers=1"
            )
        if not (self.use_characters or self.use_words):
            raise ValueError("use_characters and use_words must not both be False")
        return self
