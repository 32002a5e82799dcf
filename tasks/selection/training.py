"""Settings of a selection training, and the examples that it cuts or leaves out."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat

from colloquy.base.config import Positive, with_defaults
from colloquy.engine import training_settings
from colloquy.engine.limits import Limit


class Training(with_defaults(training_settings.Training, validations_per_epoch=10.0)):
    """Settings of a selection training; the defaults are the DAM release's."""

    negatives: Literal["file", "fresh"] = "file"
    """Negative responses: the file's, or drawn anew each epoch from the positive responses of other
    contexts.
    """
    negatives_per_positive: Positive = 1
    """Fresh negatives per positive; with `negatives=file` the file decides."""
    loss: Literal["pointwise", "softmax"] = "pointwise"
    """See `tasks.selection.scoring`."""
    decay_rate: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The learning rate is multiplied by this every `decay_steps` steps (staircase)."""
    decay_steps: Positive = 400
    """Steps between two changes of the learning rate."""
    loss_clip: NonNegativeFloat = 0.0
    """The pointwise loss of a candidate is cut at this, without gradient beyond; 0: not at all; the
    release: 10.
    """
    gradient_clip: NonNegativeFloat = 1.0
    """Gradients are clipped by value to [-this, this]; 0: not at all."""
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Decay per step of the moving averages of the weights that are evaluated and kept; 0: the
    weights themselves.
    """
    vector_center: bool = False
    """Subtracts the mean word vector from all before training (Mu and Viswanath 2018). Without it,
    word2vec vectors of a small corpus all point one way (mean cosine 0.49 in `ubuntu-irc`), and
    every match looks alike."""
    vector_norm: NonNegativeFloat = 0.0
    """Euclidean length of every word vector before training; 0: unchanged."""


def limits_of(split, config, training):
    """The contexts, turns and responses that a training cuts or leaves out, a list of `Limit`.

    Args:
        split: `SelectionSplit`.
        config: Config of the model.
        training: `Training`.
    """
    limits = [
        Limit(
            unit="contexts",
            is_exceeded=split.num_turns_of_context > config.max_turns,
            effect=f"have over {config.max_turns} turns, of which the last are read",
            remedy="--set max_turns=N reads more",
        )
    ]
    for unit, texts in (("turns", split.turns), ("responses", split.responses)):
        limits.append(
            Limit(
                unit=unit,
                is_exceeded=texts.lengths > config.max_words,
                effect=f"have over {config.max_words} words, of which the last are read",
                remedy="--set max_words=N reads more",
            )
        )
    if training.negatives == "fresh":
        limits.append(
            Limit(
                unit="contexts",
                is_exceeded=split.count_lines(1) == 0,
                effect="lack a correct response and are left out",
                remedy="--set negatives=file --set loss=pointwise reads them",
            )
        )
    elif training.loss == "softmax":
        lacks_label = (split.count_lines(1) == 0) | (split.count_lines(0) == 0)
        limits.append(
            Limit(
                unit="contexts",
                is_exceeded=lacks_label,
                effect="lack a correct or a wrong response and are left out",
                remedy="--set loss=pointwise reads them",
            )
        )
    return limits
