"""Checks the files of a run, which may be a stranger's, before anything else reads them.

A file that `open_untrusted` has accepted is trusted from then on. Weights have further checks, in
`engine.untrusted_weights`.
"""

import hashlib
import os
import pathlib
import stat

from colloquy.base.files import CHECKSUMS, PathLike, UserError
from colloquy.data.json_files import parse_json, validated
from colloquy.engine.records import Example, RunRecord, SplitMetrics
from colloquy.engine.run_files import (
    BEST,
    CONFIG,
    DIRECTORIES,
    EXAMPLES,
    LAST,
    MAX_BYTES,
    METRICS,
)

OTHER_BYTES = 2**28
"""Largest size of a file that `checksums.json` names and `MAX_BYTES` does not."""
CONTENTS = {
    CHECKSUMS: dict[str, list[str]],
    CONFIG: RunRecord,
    EXAMPLES: list[Example],
    METRICS: dict[str, SplitMetrics],
}
"""The type of the JSON in each of these files."""


def open_untrusted(directory: PathLike) -> dict:
    """Checks the files of a run, and returns the contents of its `config.json`.

    Each file must be a regular file inside of the directory, have at most its largest size, and
    match its checksum. Links are refused, wherever they lead.

    Args:
        directory: The directory of the run.

    Raises:
        UserError: A file is missing, is not a regular file, is too large, does not match its
            checksum, or has other contents than `CONTENTS` says.
    """
    directory = pathlib.Path(directory)
    record = _read_json(directory, CONFIG)
    if record is None:
        raise UserError(f"{directory} is not a run directory: {CONFIG} is missing")
    checksums = read_checksums(directory)
    for name in (EXAMPLES, METRICS):
        _read_json(directory, name)

    _check_names(directory, checksums)
    names_in_directories = _list_directories(directory)
    names = [*checksums, *MAX_BYTES, *names_in_directories]
    for name in dict.fromkeys(names):  # each name once
        max_bytes = MAX_BYTES.get(name, OTHER_BYTES)
        if name in names_in_directories:  # pairs or an index of any size
            max_bytes = None
        expected = checksums.get(name, [])
        # A checksum of large weights takes long: `check_weights` compares it when they are loaded.
        if name in (BEST, LAST):
            expected = []
        check_file(directory / name, max_bytes, expected)
    return record


def read_checksums(directory: pathlib.Path) -> dict[str, list[str]]:
    """Reads `checksums.json`: `{name: SHA-256 sums}`, of which a file must have one."""
    return _read_json(directory, CHECKSUMS) or {}


def _check_names(directory, names):
    """Refuses names of files outside of the directory, or below a link."""
    for name in names:
        path = pathlib.PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name:
            raise UserError(f"{directory / CHECKSUMS} names {name!r:.80}, which is not in the run")
        # The last parent, ".", is the directory of the run: a link to a run is allowed.
        for parent in path.parents[:-1]:
            if os.path.islink(directory / parent):
                raise UserError(
                    f"{directory / CHECKSUMS} names {name!r:.80}, which is behind a link"
                )


def _list_directories(directory):
    """Lists everything in `DIRECTORIES` but real directories, as names like `index/x.npz`."""
    names = []
    for name in DIRECTORIES:
        if (directory / name).is_symlink():
            raise UserError(f"{directory / name} is a link, expected a directory")
        for file in (directory / name).rglob("*"):
            if file.is_symlink() or not file.is_dir():
                names.append(str(file.relative_to(directory)))
    return names


def check_file(file: pathlib.Path, max_bytes: int | None, checksums: list[str]) -> None:
    """Refuses a file that is not regular, is too large, or matches none of its checksums.

    Args:
        file: The file. It may be missing only if it has no checksums.
        max_bytes: Its largest size; `None`: any size is accepted.
        checksums: SHA-256; an empty list accepts any contents.
    """
    opened = _open_regular(file)
    if opened is None:
        if checksums:
            raise UserError(f"{file} is missing: {CHECKSUMS} names it")
        return
    with opened:
        size = os.fstat(opened.fileno()).st_size
        if max_bytes is not None and size > max_bytes:
            raise UserError(f"{file}: expected at most {max_bytes:,} bytes. Received: {size:,}")
        if checksums and hashlib.file_digest(opened, "sha256").hexdigest() not in checksums:
            raise UserError(
                f"{file} is damaged or was altered: {CHECKSUMS} does not name its SHA-256"
            )


def _open_regular(file):
    """Opens a regular file; returns `None` if it is missing, and refuses anything else.

    The file is opened before it is looked at, so nobody can replace it by a link in between.
    """
    try:
        # `O_NONBLOCK`: opening a pipe would otherwise wait until somebody writes into it.
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        # `os.path.islink` is False for a name that is too long; `Path.is_symlink` would raise.
        reason = "is a link" if os.path.islink(file) else f"cannot be opened ({error.strerror})"
        raise UserError(f"{file!s:.300} {reason}, expected a regular file") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UserError(f"{file} is not a regular file")
    return open(handle, "rb")


def _read_json(directory, name):
    """Reads one of the files of `CONTENTS` and checks its type; `None` if it is missing."""
    file = directory / name
    opened = _open_regular(file)
    if opened is None:
        return None
    max_bytes = MAX_BYTES[name]
    with opened:
        content = opened.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise UserError(f"{file}: expected at most {max_bytes:,} bytes")
    value = parse_json(file, content)
    validated(file, CONTENTS[name], value)
    return value
