"""Which recipe a training follows, and its settings."""

import difflib
from collections.abc import Mapping
from typing import Any

from colloquy.base.config import parse_value
from colloquy.base.files import UserError
from colloquy.models import MODELS
from colloquy.tasks import RECIPES


def choose_recipe(model: str | None, recipe: str | None, has_data: bool) -> tuple[str, str | None]:
    """Chooses the model to train, and the recipe to follow.

    Args:
        model: Key of `models.MODELS`; default: that of the recipe, or `dam`.
        recipe: Key of `tasks.RECIPES`; default: without data MODEL-chitchat or MODEL-sample.
        has_data: Whether the user names a dataset.

    Returns:
        The keys of the model and of the recipe; `None`: the defaults of the model.
    """
    if model is not None and model not in MODELS:
        raise UserError(f"model: expected one of {', '.join(MODELS)}. Received: {model}")
    if recipe is None:
        model = model or "dam"
        if not has_data:
            for name in (f"{model}-chitchat", f"{model}-sample"):
                if name in RECIPES:
                    return model, name
        return model, None

    if recipe not in RECIPES:
        similar = difflib.get_close_matches(recipe, RECIPES)
        hint = ", ".join(similar) or "colloquy.tasks.RECIPES lists them"
        raise UserError(f"recipe: {recipe} is not one. Did you mean: {hint}?")
    model_of_recipe = RECIPES[recipe].model
    if model not in (None, model_of_recipe):
        raise UserError(f"recipe {recipe} trains {model_of_recipe}. Received: model={model}")
    return model_of_recipe, recipe


def merge_settings(
    recipe: str | None, settings: Mapping[str, object]
) -> tuple[dict[str, Any], str | None]:
    """Merges the settings of a recipe with the user's, which win.

    Args:
        recipe: Key of `tasks.RECIPES`, or `None`.
        settings: `{field: value}`, as `--set` takes them.

    Returns:
        `{field: value}` of all settings.
        The name of the recipe with the user's changes, but for the seed; `None` without a recipe.
    """
    settings_of_recipe = RECIPES[recipe].settings() if recipe else {}
    changes = []
    for name, value in settings.items():
        parsed = parse_value(value) if isinstance(value, str) else value
        is_changed = name not in settings_of_recipe or settings_of_recipe[name] != parsed
        if is_changed and name != "seed":
            changes.append(f"{name}={value}")
    label = recipe
    if recipe and changes:
        label = f"{recipe} with {', '.join(changes)}"
    return {**settings_of_recipe, **settings}, label
