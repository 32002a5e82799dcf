"""Settings of a dialog training."""

from typing import Annotated, Literal

from pydantic import Field

from colloquy.base.config import with_defaults
from colloquy.engine import training_settings

DEFAULTS = {
    "epochs": 20.0,
    "batch_size": 8,
    "learning_rate": 2e-3,
    "gradient_clip": 10.0,
    "validations_per_epoch": 0.5,
}
"""Values for any dialogs; the recipes of dialog bAbI have their own."""


class Training(with_defaults(training_settings.DecayingTraining, **DEFAULTS)):
    """Settings of a dialog training. `batch_size` counts dialogs, each with all its turns."""

    loss: Literal["softmax", "margin"] = "softmax"
    """`softmax`: cross-entropy over all candidates; `margin`: the ranking loss of Bordes et al."""
    margin: Annotated[float, Field(ge=0)] = 0.1
    """Least difference between the correct candidate's logit and any other's; only with
    `loss=margin`.
    """
