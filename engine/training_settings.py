"""Settings of trainings. Each task has a subclass in `tasks/<task>/training.py`."""

from typing import Annotated, Literal

from pydantic import Field

from colloquy.base.config import Config, NonNegative, Positive


class Training(Config):
    """Settings that all trainings share."""

    epochs: Annotated[float, Field(gt=0, le=1e6)] = 2.0
    """Passes over the training examples."""
    batch_size: Positive = 256
    """Contexts, dialogs, pairs or questions per step."""
    learning_rate: Annotated[float, Field(ge=0)] = 1e-3
    """Initial learning rate."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Precision of computation; weights and losses stay float32. auto: bfloat16 on a GPU or
    a CPU with AMX if the model gains by it, else float32."""
    jit: Literal["auto", "on", "off"] = "auto"
    """XLA. auto: on with a GPU or JAX, else off, where XLA is slower."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed for every random number generator."""
    gradient_clip: Annotated[float, Field(ge=0)] = 5.0
    """Gradients are scaled down to this global norm; 0: not at all."""
    validations_per_epoch: Annotated[float, Field(ge=1e-6)] = 1.0
    """Validations on dev per pass over the training examples; 0.5 is every other epoch."""
    patience: NonNegative = 0
    """Early stopping: training ends after this many consecutive validations without improvement.
    0: never."""
    best_by: str = ""
    """Metric of dev that chooses the best validation, such as MAP or one of your own: the highest,
    of perplexity the lowest. Empty: the task's choice."""


class DecayingTraining(Training):
    """Settings of a training with linear decay of the learning rate and averaged weights, see
    `engine.optimizers.decaying`.
    """

    decay: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The learning rate decays linearly to this fraction of its initial value by the end of the
    training; 1: it stays constant.
    """
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Decay of the moving averages of all weights, which validation and evaluation use; 0: none are
    kept.
    """
