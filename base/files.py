"""The user's error, and files that appear whole or not at all, also if the machine loses its
power.
"""

import contextlib
import errno
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil

NOT_WRITABLE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG),
    *(errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG),
}
CHECKSUMS = "checksums.json"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class UserError(Exception):
    """An input is wrong; the message is one sentence: which file and line, what was expected, what
    was received.
    """

    def __init__(self, message):
        super().__init__(printable(message))


def printable(text):
    """Removes control characters, which a terminal may obey, from a text of a model or a file.

    >>> printable("two\\nlines\\x1b]0;title\\x07")
    'two\\nlines]0;title'
    """
    return CONTROL.sub("", text)


def check_output(path):
    """Refuses, by a `UserError`, a path of a file that cannot be written, before work begins; makes
    its directory.
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


def checksum(path):
    """The SHA-256 of a file, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums_of(directory, without=()):
    """`{name: [checksum]}` of the files of a directory and its subdirectories, without hidden ones
    and some others.
    """
    files = (
        file.relative_to(directory) for file in sorted(directory.rglob("[!.]*")) if file.is_file()
    )
    return {
        file.as_posix(): [checksum(directory / file)]
        for file in files
        if file.parts[0] not in without
    }


def seal(directory):
    """Writes `checksums.json`, the SHA-256 of all other files of a directory."""
    (directory / CHECKSUMS).write_text(json.dumps(checksums_of(directory, [CHECKSUMS]), indent=1))


def is_sealed(directory):
    """True if no file of a directory was changed, removed or added since it was sealed."""
    file = directory / CHECKSUMS
    return (
        file.is_file()
        and file.read_bytes() == json.dumps(checksums_of(directory, [CHECKSUMS]), indent=1).encode()
    )


def publish(temporary, path):
    """Moves a finished file or directory to its place on the same file system; both are on the disk
    afterwards.
    """
    temporary, path = pathlib.Path(temporary), pathlib.Path(path)
    for each in (*temporary.rglob("*"), temporary):
        _to_disk(each)
    os.replace(temporary, path)
    _to_disk(path.parent)


def _to_disk(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def writing(path):
    """Turns a full or read-only disk, and a name taken by another process, into a `UserError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def _beside(path):
    """Yields a path in a fresh directory beside `path`; what is made there becomes `path` if the
    block ends well.
    """
    _make(path.parent)
    # Named before it is made: an interrupt just after that finds it, too.
    directory = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        with writing(path):
            directory.mkdir(mode=0o700)
            made = directory / path.name
            yield made
            publish(made, path)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def atomic_directory(path):
    """Yields a fresh directory to write into; it becomes `path` if the block ends well, else it
    vanishes.

    A `UserError` if `path` exists and is not an empty directory, or cannot be written.
    """
    path = pathlib.Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"{path} must not exist yet, or be an empty directory")
    with _beside(path) as made:
        made.mkdir()
        yield made


@contextlib.contextmanager
def atomic_file(path, mode="w"):
    """Opens a file, `"w"` (UTF-8, `\\n`) or `"wb"`, that becomes `path` if the block ends well,
    else it vanishes.

    Makes its directory. A `UserError` if it cannot be written.
    """
    path = pathlib.Path(path)
    check_output(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with _beside(path) as made, open(made, mode, **text) as file:
        yield file
