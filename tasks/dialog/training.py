"""Settings of a dialog training."""

from typing import Annotated, Literal

from pydantic import Field

from colloquy.base.config import with_defaults
from colloquy.engine import task

DEFAULTS = {
    "epochs": 20.0,
    "batch_size": 8,
    "learning_rate": 2e-3,
    "gradient_clip": 10.0,
    "validations_per_epoch": 0.5,
}


class Training(with_defaults(task.Training, **DEFAULTS)):
    """Settings of a dialog training; a batch has dialogs with all their turns."""

    loss: Literal["softmax", "margin"] = "softmax"
    """`softmax` over all candidates, or the `margin` ranking loss of Bordes et al."""
    margin: Annotated[float, Field(ge=0)] = 0.1
    """Margin of the correct candidate's score over any other, for the margin loss."""
    decay: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The learning rate decays linearly to this fraction of the initial one over the epochs; 1: not
    at all.
    """
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Momentum of the moving averages of the weights, which scoring uses; 0: none."""
