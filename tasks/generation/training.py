"""Settings of a generation training."""

from typing import Annotated

from pydantic import Field

from colloquy.base.config import with_defaults
from colloquy.engine import training_settings


class Training(with_defaults(training_settings.DecayingTraining, epochs=10.0, batch_size=64)):
    """Settings of a generation training."""

    decoder_rate: Annotated[float, Field(gt=0)] = 1.0
    """The decoder's learning rate as a multiple of that of the rest."""
