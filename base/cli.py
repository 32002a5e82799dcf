"""Runs scripts: flags, and one sentence with exit code 1 for a wrong input.

A script imports this before anything that loads TensorFlow, whose runtime is configured here.
"""

import contextlib
import errno
import functools
import importlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any

from absl import app, flags

from colloquy.base import runtime
from colloquy.base.config import Config, make_config
from colloquy.base.files import UserError


def _prepare_standard_files():
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # A standard file may be closed, as by `2>&-`. Without a replacement, the next file that is
        # opened gets its number, and log lines are written into it.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
        # Characters that the terminal lacks, and invalid bytes, are replaced.
        # Tests and notebooks replace standard files by objects without `reconfigure`.
        with contextlib.suppress(AttributeError):
            getattr(sys, name).reconfigure(errors="replace")


def _show_error(error_class, error, trace):
    """Ends with one line at Ctrl-C during imports."""
    if issubclass(error_class, KeyboardInterrupt):
        print("interrupted", file=sys.stderr, flush=True)
        # A second Ctrl-C would interrupt Python's shutdown and print a traceback.
        os._exit(130)
    sys.__excepthook__(error_class, error, trace)


HELP = frozenset(["--help", "--helpshort", "-h", "-help"])

_prepare_standard_files()
runtime.prepare()
sys.excepthook = _show_error


def run(main: Callable[[], None]) -> None:
    """Runs a script's `main()` after its flags are parsed and the modules of --import imported.

    A `UserError` ends it with one line and exit code 1, Ctrl-C with one line and 130, a closed pipe
    silently with 1. `--help` shows the docstring of the script, and ends it with 0.
    """
    flags.DEFINE_multi_string(
        "import", [], "Module to import first, which registers models, corpora, ... of your own."
    )
    _show_in_help("import")
    documentation = getattr(main, "__globals__", {}).get("__doc__")
    parse_flags = functools.partial(_parse_flags, documentation=documentation)

    def guarded(_):
        try:
            _import_modules(flags.FLAGS["import"].value)
            main()
        except UserError as error:
            sys.exit(f"error: {error}")
        except OSError as error:
            _end_on_full_output(error)
            # Every function that takes a path raises this error for one that is too long, so it is
            # caught once, here.
            if error.errno != errno.ENAMETOOLONG:
                raise
            sys.exit(f"error: {error.filename}: {error.strerror}")
        except KeyboardInterrupt as error:
            # A second Ctrl-C would interrupt Python's shutdown and print a traceback.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print(str(error) or "interrupted", file=sys.stderr)
            sys.exit(130)

    try:
        try:
            app.run(guarded, flags_parser=parse_flags)
        finally:
            # Flush here, so that a closed pipe is caught below, also after --help.
            try:
                sys.stdout.flush()
            except OSError as error:
                _end_on_full_output(error)
                raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def refuse_flags_as_settings(settings: Iterable[str], flag_names: Iterable[str]) -> None:
    """Refuses, as a `UserError`, settings of --set with the name of a flag."""
    for name in flag_names:
        if name in settings:
            raise UserError(f"there is no setting {name!r}: it is a flag")


def _end_on_full_output(error):
    """Ends the program if an error is that of standard output on a full disk."""
    if error.errno == errno.ENOSPC and error.filename is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(f"error: standard output, or a file, cannot be written: {error.strerror}")


def _parse_flags(argv, documentation):
    if not HELP.isdisjoint(argv):
        _show_help(documentation, flags.FLAGS.main_module_help())
    if "--helpfull" in argv:
        _show_help(documentation, flags.FLAGS.get_help())
    try:
        rest = flags.FLAGS(argv)
    except flags.Error as error:
        missing = re.match(r"flag --(\w+)=None: ", str(error))
        if missing:
            sys.exit(f"error: --{missing[1]} is missing (--help lists all flags)")
        sys.exit(f"error: {error}")
    if len(rest) > 1:
        sys.exit(f"error: Only flags are taken (--help lists them). Received: {' '.join(rest[1:])}")
    for name in flags.FLAGS:
        value = flags.FLAGS[name].value
        # NaN is neither below nor above a bound, so absl accepts it.
        if value != value:
            sys.exit(f"error: flag --{name} expects a number. Received: nan")
    return rest


def _show_help(documentation, flags_help):
    """Ends the process with 0, where absl's own help ends it with 1, as a failure does."""
    print(documentation or "", "flags:", flags_help, sep="\n")
    sys.exit(0)


def _import_modules(names):
    """Imports modules of the user, also of the current directory."""
    if names and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in names:
        if "/" in name or not all(name.split(".")):
            raise UserError(
                f"--import expects the name of a module, such as my.module. Received: {name}"
            )
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name.partition(".")[0] and error.name != name:
                raise
            raise UserError(
                f"--import={name}: there is no such module in {os.getcwd()}, nor installed"
            ) from error


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
        _show_in_help(name)


def _show_in_help(name):
    """Has a script's --help show a flag that this file defines."""
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
    """Refuses flags that conflict with an option, as a `UserError`; `beside` ends the message."""
    for name in names:
        if flags.FLAGS[name].present:
            raise UserError(f"--{name} is not for {beside}")
