"""Settings of a model and of a training, decided by a task, a dataset and a run."""

from collections.abc import Mapping
from typing import Any

from colloquy.base.config import make_config
from colloquy.base.files import PathLike, UserError
from colloquy.data.prepared import VOCABULARY

ON_BY_DEFAULT = ("shared_embedding", "train_embedding")
"""Former settings that changed nothing if they were on. The others changed nothing if off."""


def without_former_settings(settings: Mapping[str, Any], config_class: Any) -> dict[str, Any]:
    """Drops the settings of a run that this version no longer has, if they changed nothing.

    Others stay, and are refused when the config is built.
    """
    kept = {}
    for name, value in settings.items():
        changed_nothing = bool(value) == (name in ON_BY_DEFAULT)
        if name in config_class.model_fields or not changed_nothing:
            kept[name] = value
    return kept


def build_config(task: Any, spec: Any, dataset: Any, model_settings: Mapping[str, Any]) -> Any:
    """Builds the config of a model for a dataset.

    Args:
        task: The `engine.task.Task` of the model.
        spec: A row of `models.MODELS`.
        dataset: A dataset of the task.
        model_settings: `{field: value}`, as `Task.split_settings` returns them.

    Raises:
        UserError: A setting contradicts the dataset, or the model does not fit it.
    """
    required_fields = task.required_fields(dataset)
    decided_fields = {**required_fields, **task.optional_fields(dataset)}
    settings = dict(model_settings)
    for name, value in decided_fields.items():
        # Values of `--set` are texts.
        if str(settings.get(name, value)) != str(value):
            raise UserError(
                f"{name}={settings[name]}: {dataset.path} decides {name}, it is {value}"
            )
        if name in spec.config.model_fields:
            settings[name] = value
    config = make_config(spec.config, settings)
    check_fields(config, required_fields, dataset.path)
    return config


def check_fits(task: Any, run: Any, dataset: Any) -> None:
    """Refuses, as a `UserError`, a dataset with other words or numbers than those of a run."""
    check_fields(run.config, task.required_fields(dataset), dataset.path)
    task.check_numbers(run, dataset)
    if dataset.vocabulary is None or not (run.path / VOCABULARY).is_file():
        return
    if dataset.vocabulary.words != run.vocabulary.words:
        raise UserError(
            f"{dataset.path} has other words than {run.path}: they come from different preparations"
        )


def load_training(task: Any, run: Any, epochs: float) -> Any:
    """Returns the settings that a run was trained with, with another number of epochs."""
    settings = without_former_settings(run.record["training"], task.Training)
    return make_config(task.Training, {**settings, "epochs": epochs}, where=f"{run.path}: ")


def check_fields(config: Any, fields: Mapping[str, Any], path: PathLike) -> None:
    """Refuses a dataset or run, as a `UserError`, if it does not fit a model's config.

    Args:
        fields: `{field: value}` that the dataset or run decides.
        path: Its path.
    """
    for name, value in fields.items():
        if value and not hasattr(config, name):
            raise UserError(
                f"{path} has {name} {value}, {type(config).__name__} has no such field: "
                "use another model"
            )
        expected = getattr(config, name, 0)
        if value != expected:
            raise UserError(
                f"{path}: the run has {name} {expected}, here it is {value}: "
                "they come from different preparations"
            )
