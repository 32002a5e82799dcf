"""Flags of scripts: flags that are settings, and flags that are not for each other."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

from absl import flags

from colloquy.base.config import Config, make_config
from colloquy.base.files import UserError


def define_settings(
    config_class: type[Config], names: Iterable[str], defaults: bool = False
) -> None:
    """Defines a flag for some fields of a `base.config.Config`, with their `defaults` or `None`."""
    define_by_type: dict[Any, Callable] = {
        int: flags.DEFINE_integer,
        float: flags.DEFINE_float,
        bool: flags.DEFINE_bool,
    }
    for name in names:
        field = config_class.model_fields[name]
        define = define_by_type.get(field.annotation, flags.DEFINE_string)
        description = " ".join((field.description or "").split())
        define(name, field.default if defaults else None, description)
        show_in_help(name)


def show_in_help(name: str) -> None:
    """Has `--help` show a flag that the script itself does not define.

    absl shows only flags of the main module, which it knows by the name `sys.argv[0]`.
    """
    flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])


def given_settings(config_class: type[Config], names: Iterable[str]) -> dict[str, Any]:
    """Returns `{name: value}` of the flags of `define_settings` that have a value.

    Raises:
        UserError: A value is wrong.
    """
    values = {name: flags.FLAGS[name].value for name in names}
    settings = {name: value for name, value in values.items() if value is not None}
    make_config(config_class, settings, "--")
    return settings


def refuse_flags(names: Iterable[str], beside: str) -> None:
    """Refuses flags that were given beside something that they are not for.

    Args:
        names: The flags.
        beside: What they are not for; ends the message "--NAME is not for ...".
    """
    for name in names:
        if flags.FLAGS[name].present:
            raise UserError(f"--{name} is not for {beside}")


def refuse_flags_as_settings(settings: Iterable[str], flag_names: Iterable[str]) -> None:
    """Refuses, as a `UserError`, settings of --set with the name of a flag."""
    for name in flag_names:
        if name in settings:
            raise UserError(f"there is no setting {name!r}: it is a flag")
