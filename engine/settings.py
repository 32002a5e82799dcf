"""Settings given as `field=value`: they are parsed by the type of their field and checked against its limits."""

import ast
import dataclasses
import inspect
import itertools
import json
import math
import textwrap
import typing

import base.config
from base.files import UserError


def parse_assignments(assignments):
    """Settings out of what was given to --set.

    Raises:
        UserError: on one that is no `field=value`.

    >>> parse_assignments(["levels=2", "variant=cross"])
    {'levels': '2', 'variant': 'cross'}
    """
    settings = {}
    for assignment in assignments:
        field, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set expects field=value. Received: {assignment!r}")
        settings[field] = value
    return settings


def make_config(config_class, settings, flag="set"):
    """Builds a config dataclass from `field=value` settings.

    Args:
        config_class: A dataclass.
        settings: `{field: value}`; a string value is parsed by the type of the field's default.
        flag: Where they were given, for messages.

    Raises:
        UserError: on a field that does not exist (lists those that do) or a value of the wrong type.

    >>> from models.dam import DAMConfig
    >>> make_config(DAMConfig, {"vocabulary_size": 7, "levels": "2", "positional": "true"}).levels
    2
    """
    if issubclass(config_class, base.config.Config):
        return base.config.make_config(config_class, settings)
    fields = {field.name: field for field in dataclasses.fields(config_class)}
    values = {}
    for name, value in settings.items():
        if name not in fields:
            raise UserError(f"{config_class.__name__} has no field {name!r}; it has {', '.join(fields)}")
        values[name] = _parse(value, fields[name], flag) if isinstance(value, str) else value
    try:
        return config_class(**values)
    except ValueError as error:
        raise UserError(str(error)) from error


def expand_compatibility(entry, task, settings):
    """Replaces `compatibility=release` by the settings it stands for; others given beside it win."""
    settings = dict(settings)
    compatibility = settings.pop("compatibility", "paper")
    known = ["paper", "release"] if entry.release_settings else ["paper"]
    if compatibility not in known:
        raise UserError(f"--set compatibility= expects {' or '.join(known)}. Received: {compatibility!r}")
    if compatibility == "paper":
        return settings
    variant = settings.get("variant", entry.config.model_fields["variant"].default)
    return {**entry.release_settings(variant), **task.release_training, **settings}


def with_decided(settings, decided, path):
    """Settings with those that a dataset decides.

    Args:
        settings, decided: `{field: value}`.
        path: The dataset's.

    Raises:
        UserError: where a setting is not what the dataset decides.
    """
    for name, value in decided.items():
        if str(settings.get(name, value)) != str(value):
            raise UserError(f"--set {name}={settings[name]}: {path} decides {name}, it is {value}")
    return {**settings, **decided}


def model_config(entry, task, dataset, settings):
    """The config of a model for a dataset, with what the dataset decides filled in.

    Args:
        entry: A `models.ModelEntry`.
        task: A `engine.task.Task`.
        dataset: As of `task.open_dataset`.
        settings: `{field: value}`.

    Raises:
        UserError: on a field that does not exist, and where the dataset does not suit the settings or the model.
    """
    settings = task.model_settings(dataset, settings)
    lacking = set(task.optional_fields) - entry.config.model_fields.keys()
    config = make_config(entry.config, {name: value for name, value in settings.items() if name not in lacking})
    task.check_fits(config, dataset)
    return config


def check_sizes(config, sizes, path):
    """Refuses what was prepared with another vocabulary than the model's.

    Args:
        config: The model's config.
        sizes: `{field of the config: value}`, as found in `path`.
        path: A dataset or a run, for the message.

    Raises:
        UserError: where a size differs, or a config without its field meets one that is not zero.
    """
    for name, size in sizes.items():
        if size and not hasattr(config, name):
            raise UserError(f"{path} has {name} {size}, and {type(config).__name__} no such field: take another model")
        if getattr(config, name, 0) != size:
            raise UserError(
                f"{path}: the run has {name} {getattr(config, name)}, here it is {size}: "
                "they come from different preparations"
            )


def check_fields(config, **limits):
    """Checks the fields of a dataclass, to be called by its `__post_init__`.

    Args:
        config: The dataclass.
        **limits: Of each field an interval in mathematical notation, as `"[0, 1)"` or `"(0, inf)"`, or a tuple of the
            values that it may have.

    Raises:
        ValueError: where a value is outside of its limits.

    >>> @dataclasses.dataclass
    ... class Config:
    ...     rate: float = 0.5
    ...
    ...     def __post_init__(self):
    ...         check_fields(self, rate="[0, 1)")
    >>> Config(rate=1.0)
    Traceback (most recent call last):
    ValueError: rate must be in [0, 1). Received: rate=1.0
    """
    for name, limit in limits.items():
        value = getattr(config, name)
        if isinstance(limit, tuple):
            fits, text = value in limit, f"one of {limit}"
        else:
            fits, text = _within(value, limit)
        if not fits:
            raise ValueError(f"{name} must be {text}. Received: {name}={value!r}")


def describe_fields(config_class):
    """What `--set` says of a dataclass.

    Args:
        config_class: A dataclass whose fields have docstrings in the source.

    Returns:
        Of each field `(name, type, default, meaning)` as texts; the default is empty where there is none.
    """
    if issubclass(config_class, base.config.Config):
        return base.config.describe_fields(config_class)
    meanings = {}
    for parent in reversed(config_class.__mro__):
        if dataclasses.is_dataclass(parent):
            meanings |= _docstrings(parent)
    found = []
    for field in dataclasses.fields(config_class):
        default = "" if field.default is dataclasses.MISSING else str(field.default)
        kind = getattr(field.type, "__name__", str(field.type))
        found.append((field.name, kind, default, meanings.get(field.name, "")))
    return found


def _docstrings(config_class):
    """The string after each field in the source of a class, on one line."""
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(config_class))).body
    found = {}
    for field, after in itertools.pairwise(definition.body):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[field.target.id] = " ".join(str(after.value.value).split())
    return found


def _within(value, interval):
    """Whether a number is in an interval, and the interval in words."""
    low, high = (float(end) for end in interval[1:-1].split(","))
    open_below, open_above = interval[0] == "(", interval[-1] == ")"
    fits = (value > low if open_below else value >= low) and (value < high if open_above else value <= high)
    if math.isinf(high):
        return fits, f"{'above' if open_below else 'at least'} {low:g}"
    return fits, f"in {interval}"


def _parse(text, field, flag):
    if field.type is str or field.type == "str":
        return text
    try:
        if field.type is float:
            return float(text)
        value = json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
        if field.type is bool and not isinstance(value, bool):
            raise ValueError
        if field.type is int and (isinstance(value, bool) or not isinstance(value, int)):
            raise ValueError
        if typing.get_origin(field.type) is tuple and not isinstance(value, list):
            raise ValueError
    except (ValueError, TypeError) as error:
        kind = getattr(field.type, "__name__", field.type)
        raise UserError(f"--{flag} {field.name}= expects a value of type {kind}. Received: {text!r}") from error
    return tuple(value) if isinstance(value, list) else value
