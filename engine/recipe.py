"""A recipe: settings by name, with what they reached. Each task has its own: `tasks/<task>/recipes.py`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One row of a task's `RECIPES`; `train.py --recipe=NAME` trains it.

    A flag given beside `--recipe` wins over the recipe's, and `--set` over its `settings`.
    """

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
