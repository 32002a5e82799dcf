"""Runs scripts, which end with one sentence and exit code 1 for a wrong input.

A script imports this before anything that loads TensorFlow: the import prepares the process, see
the end of this file.
"""

import contextlib
import errno
import functools
import importlib
import math
import os
import re
import signal
import sys
from collections.abc import Callable

from absl import app, flags

from colloquy.base import runtime
from colloquy.base.files import UserError
from colloquy.base.script_flags import show_in_help

HELP = frozenset(["--help", "--helpshort", "-h", "-help"])


def run(main: Callable[[], None]) -> None:
    """Runs a script's `main()` after its flags are parsed and the modules of --import imported.

    A `UserError` ends it with one line and exit code 1, Ctrl-C with one line and 130, a closed pipe
    silently with 1. `--help` shows the docstring of the script, and ends it with 0.
    """
    flags.DEFINE_multi_string(
        "import", [], "Module to import first, which registers models, corpora, ... of your own."
    )
    show_in_help("import")
    # The docstring of the script's file.
    documentation = main.__globals__.get("__doc__")
    parse_flags = functools.partial(_parse_flags, documentation=documentation)

    def import_and_run(_):
        _import_modules(flags.FLAGS["import"].value)
        main()

    with _errors_as_sentences():
        app.run(import_and_run, flags_parser=parse_flags)


# === Errors ===


@contextlib.contextmanager
def _errors_as_sentences():
    """Ends the script with one line for a wrong input, Ctrl-C, or output that cannot be written."""
    try:
        try:
            yield
        finally:
            # Otherwise Python writes the rest while it shuts down, where nothing catches an error.
            sys.stdout.flush()
    except UserError as error:
        sys.exit(f"error: {error}")
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except OSError as error:
        # Every function that takes a path raises these errors, for a name that is too long or a
        # directory that this user may not enter, so they are caught once, here.
        if error.filename and error.errno in (errno.ENAMETOOLONG, errno.EACCES):
            sys.exit(f"error: {error.filename}: {error.strerror}")
        # An error of a file with a name has its own message.
        if error.errno == errno.ENOSPC and error.filename is None:
            _drop_output()
            sys.exit(f"error: standard output, or a file, cannot be written: {error.strerror}")
        raise
    except KeyboardInterrupt as error:
        # A second Ctrl-C would interrupt Python's shutdown and print a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(str(error) or "interrupted", file=sys.stderr)
        sys.exit(130)


def _drop_output():
    """Drops whatever is still written to standard output, also at Python's shutdown."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# === Flags ===


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
        flag = flags.FLAGS[name]
        value = flag.value
        # As from `--data=$DIR` where the shell has no such variable: the default would be taken.
        is_empty = value in ([], [""]) or (value == "" and flag.default != "")
        if flag.present and is_empty:
            sys.exit(f"error: flag --{name} expects a value. Received: nothing")
        # NaN is neither below nor above a bound, so absl accepts it.
        if isinstance(value, float) and math.isnan(value):
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
            # The module may be there and import another one that is missing: that is its own error.
            if not f"{name}.".startswith(f"{error.name}."):
                raise
            raise UserError(
                f"--import={name}: there is no such module in {os.getcwd()}, nor installed"
            ) from error


# === The process, when this file is imported ===


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
    """Ends with one line at Ctrl-C while the script imports modules, before `run`."""
    if issubclass(error_class, KeyboardInterrupt):
        print("interrupted", file=sys.stderr, flush=True)
        # A second Ctrl-C would interrupt Python's shutdown and print a traceback.
        os._exit(130)
    sys.__excepthook__(error_class, error, trace)


_prepare_standard_files()
runtime.prepare()
sys.excepthook = _show_error
