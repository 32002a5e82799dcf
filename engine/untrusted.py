"""Runs of strangers: everything that is checked of their files, before anything reads them.

What `open_untrusted` and `check_weights` have passed is trusted from then on.
"""

import hashlib
import math
import os
import pathlib
import stat
import zipfile
from concurrent import futures
from typing import Any

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
"""Largest size of another file that `checksums.json` names."""
WEIGHTS_PER_BYTE = 4
"""Most weights of a model per byte of their file; compressed half precision has about half a one.
"""
CONTENTS = {
    CHECKSUMS: dict[str, list[str]],
    CONFIG: RunRecord,
    EXAMPLES: list[Example],
    METRICS: dict[str, SplitMetrics],
}
"""Types of the contents of files."""


def open_untrusted(directory: PathLike) -> dict:
    """Checks the files of a run, and returns the contents of its `config.json`.

    Each file is a regular one inside of the directory, has a largest size, and matches its
    checksum. A link is refused, wherever it leads. Weights are large: `check_weights` compares
    their checksum when they are loaded.

    Args:
        directory: The directory of the run.

    Raises:
        UserError: A file is missing, something else, too large, altered or not of its form.
    """
    directory = pathlib.Path(directory)
    record = _read_json(directory, CONFIG)
    if record is None:
        raise UserError(f"{directory} is not a run directory: {CONFIG} is missing")
    checksums = _read_json(directory, CHECKSUMS) or {}
    for name in (EXAMPLES, METRICS):
        _read_json(directory, name)

    max_bytes = {**dict.fromkeys(checksums, OTHER_BYTES), **MAX_BYTES}
    for name in checksums:
        path = pathlib.PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name:
            raise UserError(f"{directory / CHECKSUMS} names {name!r:.80}, which is not in the run")
        if any(os.path.islink(directory / parent) for parent in path.parents[:-1]):
            raise UserError(f"{directory / CHECKSUMS} names {name!r:.80}, which is behind a link")
    for name in DIRECTORIES:
        if (directory / name).is_symlink():
            raise UserError(f"{directory / name} is a link, expected a directory")
        for file in (directory / name).rglob("*"):
            if file.is_symlink() or not file.is_dir():
                max_bytes[str(file.relative_to(directory))] = None
    for name, most in max_bytes.items():
        expected = None if name in (BEST, LAST) else checksums.get(name)
        _check_file(directory, name, most, expected)
    return record


def _check_file(directory, name, max_bytes, checksums):
    """Refuses a file that is not regular, too large, or matches none of its `checksums`, if any."""
    file = directory / name
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
    """Opens a regular file, without following a link or waiting for a pipe; `None` without one."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        # Unlike `Path.is_symlink`, `islink` raises for no name.
        reason = "is a link" if os.path.islink(file) else f"cannot be opened ({error.strerror})"
        raise UserError(f"{file!s:.300} {reason}, expected a regular file") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UserError(f"{file} is not a regular file")
    return open(handle, "rb")


def _read_json(directory, name):
    """Reads a JSON file, whose type is in `CONTENTS`; `None` without it."""
    file = directory / name
    opened = _open_regular(file)
    if opened is None:
        return None
    with opened:
        content = opened.read(MAX_BYTES[name] + 1)
    if len(content) > MAX_BYTES[name]:
        raise UserError(f"{file}: expected at most {MAX_BYTES[name]:,} bytes")
    value = parse_json(file, content)
    validated(file, CONTENTS[name], value)
    return value


# === Weights ===


def check_weights(directory: pathlib.Path, name: str) -> None:
    """Refuses weights that were altered, or whose arrays take more memory than their file can fill.

    Of a damaged file, h5py and zipfile raise anything.

    Args:
        directory: The directory of a run.
        name: `best.weights.h5` or `last.npz`.
    """
    if name == LAST:
        _check_file(directory, name, None, None)  # its arrays have checksums of their own
        _check_arrays(directory / name)
        return
    checksums = _read_json(directory, CHECKSUMS) or {}
    _check_file(directory, name, None, checksums.get(name))
    _check_datasets(directory / name)


def _check_arrays(file):
    """Refuses a `last.npz` with compressed arrays; a training stores them as they are."""
    with zipfile.ZipFile(file) as archive:
        num_bytes = sum(entry.file_size for entry in archive.infolist())
    if num_bytes > file.stat().st_size:
        raise UserError(f"{file}: expected arrays without compression, as train.py writes them")


def _check_datasets(file):
    """Refuses weights in HDF5 that are stored elsewhere, or are too many for their file."""
    import h5py

    names = []
    num_weights = 0
    with h5py.File(file, "r") as archive:
        archive.visit_links(names.append)
        for name in names:
            if not isinstance(archive.get(name, getlink=True), h5py.HardLink):
                raise UserError(f"{file}: {name:.80} is a link, expected weights")
            item = archive[name]
            if not isinstance(item, h5py.Dataset):
                continue
            if item.external or item.is_virtual:
                raise UserError(f"{file}: {name:.80} is stored in another file")
            if item.dtype.kind not in "biuf" or item.dtype.itemsize > 8:
                raise UserError(f"{file}: {name:.80} holds {item.dtype!s:.80}, expected numbers")
            # A whole chunk is unpacked, even for one weight of it.
            num_weights += max(item.size or 0, math.prod(item.chunks or ()))
    _check_count(file, f"{file}: arrays", num_weights)


def check_sizes(run: Any, file: pathlib.Path) -> None:
    """Refuses a config whose model would take more memory than a file of its weights can fill.

    Args:
        run: The `engine.run.Run`.
        file: `best.weights.h5` or `last.npz`.

    Raises:
        UserError: A size of the config, or all of them together, ask for more.
    """
    import keras  # takes seconds to load; opening a run need not wait

    sizes = {**run.config.to_json(), "hashed_words": 0}  # which have no weights of their own
    # An array of the signals of positions is computed when a model is built.
    sizes["signals"] = sizes.get("max_words", 0) * sizes.get("embedding_dim", 0)
    largest = max(file.stat().st_size, 2**20)
    for value in keras.tree.flatten(sizes):
        if isinstance(value, int) and value > largest:
            raise UserError(
                f"{run.path / CONFIG}: a model of size {value:,} does not fit {file.name}"
            )
    _check_count(file, f"{run.path / CONFIG}: a model", _count_weights(run.build_model))


def _check_count(file, what, num_weights):
    num_bytes = file.stat().st_size
    if num_weights > WEIGHTS_PER_BYTE * max(num_bytes, 2**20):
        raise UserError(
            f"{what} of {num_weights:,} weights does not fit {file.name}, which has "
            f"{num_bytes:,} bytes"
        )


def _count_weights(build_model):
    """Counts the weights of a model without making room for them.

    In a stateless scope, Keras puts new variables on a list of those to initialise later. Each
    thread has a list of its own, so it is gone when this thread ends.
    """

    def count():
        import keras

        with keras.StatelessScope(initialize_variables=False):
            model = build_model()
        return sum(math.prod(weight.shape) for weight in model.weights)

    with futures.ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(count).result()
