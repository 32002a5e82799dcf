"""What every script shares: one clear sentence and exit code 1 where the user's input is at fault."""

import contextlib
import os
import pathlib
import shutil
import sys
import tempfile

from absl import app, flags


class UserError(Exception):
    """The user's input is at fault; the message is one sentence: which file and line, what was expected, received."""


def _parse_flags(argv):
    try:
        rest = flags.FLAGS(argv)
    except flags.Error as error:
        raise UserError(str(error)) from error
    if len(rest) > 1:
        raise UserError(f"Only flags are taken (--help lists them). Received: {' '.join(rest[1:])}")
    return rest


def run(main):
    """Runs a script's `main()` after its flags are parsed; a `UserError` ends it with one line and exit code 1.

    Args:
        main: Function without arguments.
    """

    def fail(error):
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)

    def parse(argv):
        try:
            return _parse_flags(argv)
        except UserError as error:
            fail(error)

    def guarded(_):
        try:
            main()
        except UserError as error:
            fail(error)

    # Each size that occurs has a compiled operation of its own; of oneDNN's own 1,024 many were thrown out too early.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8192")
    app.run(guarded, flags_parser=parse)


def refuse_flags(names, beside):
    """Refuses flags that mean nothing beside another.

    Args:
        names: Of flags.
        beside: What they are not for, the end of the message.

    Raises:
        UserError: where one of them was given.
    """
    for name in names:
        if flags.FLAGS[name].present:
            raise UserError(f"--{name} is not for {beside}")


def check_output(path):
    """Refuses a path that no file can be written to, before work begins that would be lost.

    Args:
        path: A file to be; its directory is created where needed.

    Raises:
        UserError: where it is a directory, or its directory cannot be made or written to.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        raise UserError(f"{path} is a directory, expected a file")
    _make(path.parent)
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.parent} cannot be written to")


def _make(directory):
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{directory} cannot be made: {error.strerror}") from error


@contextlib.contextmanager
def atomic_directory(path):
    """Gives a fresh directory to write into: it becomes `path` when the block ends well and vanishes when it does not.

    Args:
        path: The directory to create. It must not exist, or be empty.

    Raises:
        UserError: where `path` exists and is not an empty directory.
    """
    path = pathlib.Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"{path} must not exist yet, or be an empty directory")
    _make(path.parent)
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextlib.contextmanager
def atomic_files(directory):
    """Gives a fresh directory to write files into: they move to `directory` when the block ends well.

    Args:
        directory: Made where needed; other files in it stay, those of the same names are replaced.
    """
    directory = pathlib.Path(directory)
    _make(directory)
    with tempfile.TemporaryDirectory(prefix=".", dir=directory) as staging:
        yield pathlib.Path(staging)
        for file in sorted(pathlib.Path(staging).iterdir()):
            os.replace(file, directory / file.name)


@contextlib.contextmanager
def atomic_file(path, mode="w"):
    """Opens a file to write that becomes `path` when the block ends well and vanishes when it does not.

    Args:
        path: The file to create or replace; its directory is created where needed.
        mode: `"w"` (UTF-8, `\\n`) or `"wb"`.

    Raises:
        UserError: see `check_output`.
    """
    path = pathlib.Path(path)
    check_output(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, mode, **text) as file:
            yield file
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise
