"""Prints the fields that `train.py --set` can change, with their values and meanings."""

from collections.abc import Mapping

from colloquy.base import backend
from colloquy.base.config_fields import describe_fields
from colloquy.models import MODELS
from colloquy.recipes import choose_recipe, merge_settings


def show_settings(model: str | None, recipe: str | None, settings: Mapping[str, object]) -> None:
    """Prints the fields of a model and of its training.

    A value is that of `settings`, else the recipe's, else the default.

    Args:
        model, recipe: See `colloquy.recipes.choose_recipe`.
        settings: `{field: value}` of the user.

    Raises:
        UserError: A name or a setting is wrong.
    """
    # As if there were data: without data, a recipe for the sample would be chosen.
    model, recipe = choose_recipe(model, recipe, has_data=True)
    merged, _ = merge_settings(recipe, settings)
    backend.import_keras()

    from colloquy.tasks import TASKS

    spec = MODELS[model]
    task = TASKS[spec.task]
    # Wrong settings are refused, and `compatibility` is replaced by the settings that it means.
    model_settings, training = task.split_settings(spec, merged)
    _print_fields("The model", spec.config, model_settings)
    _print_fields("Its training", task.Training, training.explicit_fields())
    if spec.release_settings:
        print("Both\n\n  --set compatibility=paper  (paper|release)")
        print("      release: the settings of the published code, where they differ.\n")


def _print_fields(title, config, settings):
    print(f"{title}, {config.__module__}.{config.__qualname__}\n")
    for name, type_name, default, meaning in describe_fields(config):
        value = settings.get(name, default)
        # A required field has the default "": its value comes from the dataset.
        if value == "":
            print(f"  {name}  ({type_name}, the dataset decides)")
        else:
            print(f"  --set {name}={value}  ({type_name})")
        print(f"      {meaning}\n" if meaning else "")
