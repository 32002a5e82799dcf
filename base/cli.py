"""Runs scripts: flags, and one sentence with exit code 1 for a wrong input.

A script imports this before anything that loads TensorFlow, whose runtime is configured here.
"""

import contextlib
import errno
import os
import re
import signal
import sys

from absl import app, flags

from colloquy.base import runtime
from colloquy.base.config import make_config
from colloquy.base.files import UserError

for _name, _mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
    # closed, as by `2>&-`: else the next file takes its number, and log lines
    if getattr(sys, _name) is None:
        setattr(sys, _name, open(os.devnull, _mode, encoding="utf-8"))
    with contextlib.suppress(AttributeError):  # another object in its place
        # characters that the terminal lacks, bytes that are none
        getattr(sys, _name).reconfigure(errors="replace")
runtime.prepare()


def _show_error(kind, error, trace):
    """Ends by one line at Ctrl-C while a script still imports; a second one would interrupt
    Python's own exit.
    """
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr, flush=True)
        os._exit(130)
    sys.__excepthook__(kind, error, trace)


sys.excepthook = _show_error


def _parse_flags(argv):
    try:
        rest = flags.FLAGS(argv)
    except flags.Error as error:
        missing = re.match(r"flag --(\w+)=None: ", str(error))
        sys.exit(
            f"error: {f'--{missing[1]} is missing (--help lists all flags)' if missing else error}"
        )
    if len(rest) > 1:
        sys.exit(f"error: Only flags are taken (--help lists them). Received: {' '.join(rest[1:])}")
    # bounds let NaN pass
    if wrong := [name for name in flags.FLAGS if (value := flags.FLAGS[name].value) != value]:
        sys.exit(f"error: flag --{wrong[0]} expects a number. Received: nan")
    return rest


def run(main):
    """Runs a script's `main()` after its flags are parsed.

    A `UserError` ends it with one line and exit code 1, Ctrl-C with one line and 130, a closed pipe
    silently with 1.
    """

    def guarded(_):
        try:
            main()
        except UserError as error:
            sys.exit(f"error: {error}")
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:  # which whatever looks for a file raises
                raise
            sys.exit(f"error: {error.filename}: {error.strerror}")
        except KeyboardInterrupt as error:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would interrupt the exit
            print(str(error) or "interrupted", file=sys.stderr)
            sys.exit(130)

    try:
        try:
            app.run(guarded, flags_parser=_parse_flags)
        finally:
            sys.stdout.flush()  # --help, too
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def define_settings(config_class, names, defaults=False):
    """Defines a flag for some fields of a `base.config.Config`, with their `defaults` or `None`."""
    kinds = {int: flags.DEFINE_integer, float: flags.DEFINE_float, bool: flags.DEFINE_bool}
    for name in names:
        field = config_class.model_fields[name]
        define = kinds.get(field.annotation, flags.DEFINE_string)
        define(name, field.default if defaults else None, " ".join(field.description.split()))
        # so that --help shows it
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])


def given_settings(config_class, names):
    """`{name: value}` of those flags of `define_settings` that have a value; a wrong one is a
    `UserError`.
    """
    given = {name: flags.FLAGS[name].value for name in names if flags.FLAGS[name].value is not None}
    make_config(config_class, given, "--")
    return given


def refuse_flags(names, beside):
    """Refuses flags that conflict with an option, as a `UserError`; `beside` ends the message."""
    for name in names:
        if flags.FLAGS[name].present:
            raise UserError(f"--{name} is not for {beside}")
