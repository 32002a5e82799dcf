"""The models. Each names its config, its task (see `tasks`) and its paper."""

import dataclasses
from collections.abc import Callable

from models.dam import DAM, DAMConfig, release_settings


@dataclasses.dataclass(frozen=True)
class ModelEntry:
    """One row of `MODELS`."""

    build: Callable
    """Takes a config, gives a `keras.Model` that returns logits."""
    config: type
    """Frozen dataclass; `--set field=value` reaches its fields."""
    task: str
    """Key of `tasks.TASKS`."""
    release_settings: Callable | None = None
    """What `--set compatibility=release` stands for: takes a variant, returns settings."""


MODELS = {
    "dam": ModelEntry(DAM, DAMConfig, task="selection", release_settings=release_settings),
}
