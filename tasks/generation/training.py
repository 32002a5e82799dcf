"""Settings of a generation training."""

from typing import Annotated

from pydantic import Field

from colloquy.base.config import with_defaults
from colloquy.engine import task


class Training(with_defaults(task.Training, epochs=10.0, batch_size=64)):
    """Settings of a generation training."""

    decoder_rate: Annotated[float, Field(gt=0)] = 1.0
    """The decoder's learning rate as a multiple of that of the rest."""
    decay: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The learning rate decays linearly to this fraction of its initial value by the end of the
    training; 1: it stays constant.
    """
