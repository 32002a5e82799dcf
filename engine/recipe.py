"""What a recipe is; the recipes are in `engine.recipes`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One row of `RECIPES`."""

    model: str
    """Key of `models.MODELS`."""
    corpus: str
    """The prepared dataset that it was made for."""
    flags: dict
    """Flags of train.py: epochs, batch_size, learning_rate; precision where `auto` may not be what was measured."""
    settings: dict
    """Fields of the model's config and of the task's `Training`, as `--set` takes them."""
    results: str = ""
    """Shell pattern of its records below results/measured; empty: none."""
    score: str = "not measured"
    """What those records say: score, seeds, time of training, hardware. A test compares it with them."""
