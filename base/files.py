"""The user's error, and files that appear whole or not at all, also after a loss of power."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from typing import Any

PathLike = str | os.PathLike
"""The path of a file or a directory."""

NOT_WRITABLE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.EFBIG,
    errno.EACCES,
    errno.EPERM,
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.ENAMETOOLONG,
}
CHECKSUMS = "checksums.json"
# The names that `_temporary_beside` gives.
UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{16}")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class UserError(Exception):
    """An input is wrong.

    The message is one sentence: which file and line, what was expected, what was received.
    """

    def __init__(self, message: object) -> None:
        super().__init__(" ".join(printable(str(message)).splitlines()))


def in_one_line(value: object, length: int = 80) -> str:
    """A value of a file or of a user, or the message of another error, as part of a sentence.

    >>> in_one_line("two\\nlines", length=7)
    'two lin'
    """
    return " ".join(str(value).split())[:length]


def printable(text: str) -> str:
    """Removes control characters, which a terminal may obey, from a text of a model or a file.

    >>> printable("two\\nlines\\x1b]0;title\\x07")
    'two\\nlines]0;title'
    """
    return CONTROL.sub("", text)


# === Checksums ===


def checksum(path: PathLike) -> str:
    """Returns the SHA-256 of a file, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums_of(directory: pathlib.Path, without: Iterable[str] = ()) -> dict[str, list[str]]:
    """Returns `{name: [checksum]}` of the files of a directory and its subdirectories.

    Hidden files are left out, and files and subdirectories whose names are in `without`.
    """
    checksums = {}
    for path in sorted(directory.rglob("[!.]*")):
        name = path.relative_to(directory)
        if path.is_file() and name.parts[0] not in without:
            checksums[name.as_posix()] = [checksum(path)]
    return checksums


def seal(directory: pathlib.Path, without: Iterable[str] = ()) -> None:
    """Writes `checksums.json`: `checksums_of` the other files of a directory."""
    checksums = checksums_of(directory, without=[CHECKSUMS, *without])
    (directory / CHECKSUMS).write_text(json.dumps(checksums, indent=1))


# === Writing ===


def check_output(path: PathLike) -> None:
    """Refuses a file that cannot be written, before work begins, and makes its directory.

    Raises:
        UserError: The path is a directory, or its directory cannot be made or written to.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        raise UserError(f"{path} is a directory, expected a file")
    _make_directory(path.parent)
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.parent} cannot be written to")


def refuse_existing(path: PathLike) -> None:
    """Refuses to replace a file that holds something, or anything else, as a `UserError`."""
    path = pathlib.Path(path)
    if path.exists() and not (path.is_file() and path.stat().st_size == 0):
        raise UserError(f"{path} exists: give the name of a new file")


@contextlib.contextmanager
def writing(path: PathLike) -> Iterator[None]:
    """Turns a full or read-only disk, and a name taken by another process, into a `UserError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def atomic_directory(path: PathLike) -> Iterator[pathlib.Path]:
    """Yields a fresh directory, which becomes `path` if the block succeeds and vanishes otherwise.

    The directory of a process that was killed is removed by the next one that writes `path`.

    Raises:
        UserError: `path` exists and is not an empty directory, or cannot be written.
    """
    path = pathlib.Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"{path} must not exist yet, or be an empty directory")
    # No directory can be moved to one of these places. Without this check, that would be noticed
    # after all the work.
    if path.is_symlink() or path.is_mount() or not path.name:
        raise UserError(f"{path} is a link, a mount point or `.`: give another directory")
    _make_directory(path.parent)
    with _without_unfinished(path), _temporary_beside(path) as temporary:
        temporary.mkdir()
        yield temporary


@contextlib.contextmanager
def atomic_file(path: PathLike, mode: str = "w") -> Iterator[Any]:
    r"""Yields an open file, which becomes `path` if the block succeeds and vanishes otherwise.

    Args:
        path: The file to write. Its directory is made.
        mode: `"w"`, UTF-8 with `\n`; or `"wb"`.

    Raises:
        UserError: The file cannot be written, or something that is not a file has its name.
    """
    path = pathlib.Path(path)
    check_output(path)
    # Moving the finished file to the path of a device, such as /dev/null, would replace the device.
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a regular file")
    encoding = None if "b" in mode else "utf-8"
    newline = None if "b" in mode else "\n"
    with (
        _temporary_beside(path) as temporary,
        open(temporary, mode, encoding=encoding, newline=newline) as file,
    ):
        yield file


@contextlib.contextmanager
def _temporary_beside(path):
    """Yields a path beside `path`, which is moved there if the block succeeds.

    All of it is on the disk before it is moved, so it survives a loss of power.
    """
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        with writing(path):
            yield temporary
            for part in [*temporary.rglob("*"), temporary]:
                _flush_to_disk(part)
            os.replace(temporary, path)
            _flush_to_disk(path.parent)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _without_unfinished(path):
    """Removes the directories that killed processes were writing as `path`.

    During the block this process shares a lock of the parent directory. Whoever has it alone knows
    that nobody is writing there.
    """
    with writing(path):
        handle = os.open(path.parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # others are writing, or the file system has no locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for file in list(path.parent.iterdir()):
                if unfinished_name(file) == path.name and not file.is_symlink() and file.is_dir():
                    shutil.rmtree(file, ignore_errors=True)
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def unfinished_name(file: pathlib.Path) -> str | None:
    """The name of the file that a killed process was writing as `file`; `None` for others.

    >>> unfinished_name(pathlib.Path("run/.config.json.0123456789abcdef"))
    'config.json'
    """
    match = UNFINISHED.fullmatch(file.name)
    return match[1] if match else None


def _make_directory(directory):
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{directory} cannot be made: {error.strerror}") from error


def _flush_to_disk(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
