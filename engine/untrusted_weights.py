"""Checks the weights of a run, which may be a stranger's, before they are loaded.

Neither a file of weights nor the sizes in `config.json` may ask for more memory than weights of
the file's size can need.
"""

import math
import pathlib
import zipfile
from concurrent import futures
from typing import Any

from colloquy.base.files import UserError
from colloquy.engine.run_files import CONFIG, LAST
from colloquy.engine.untrusted import check_file, read_checksums

WEIGHTS_PER_BYTE = 4
"""Most weights per byte of their file. A published file, compressed half precision, has about 0.5.
"""
MIN_BYTES = 2**20
"""A smaller file counts as this large."""


def check_weights(directory: pathlib.Path, name: str) -> None:
    """Refuses weights that were altered, or whose arrays take more memory than their file can fill.

    Args:
        directory: The directory of a run.
        name: `best.weights.h5` or `last.npz`.

    Raises:
        UserError: The weights are refused.
        Exception: h5py and zipfile raise many kinds of errors for a damaged file.
    """
    file = directory / name
    if name == LAST:
        check_file(file, max_bytes=None, checksums=[])  # a zip file has checksums of its own
        _check_zip(file)
        return
    checksums = read_checksums(directory)
    check_file(file, max_bytes=None, checksums=checksums.get(name, []))
    _check_hdf5(file)


def _check_zip(file):
    """Refuses a `last.npz` with compressed arrays, which a training never writes."""
    with zipfile.ZipFile(file) as archive:
        num_bytes = sum(entry.file_size for entry in archive.infolist())
    if num_bytes > file.stat().st_size:
        raise UserError(f"{file}: expected arrays without compression, as train.py writes them")


def _check_hdf5(file):
    """Refuses a `best.weights.h5` with arrays in other files, or too large for their file."""
    import h5py

    names = []
    num_weights = 0
    with h5py.File(file, "r") as archive:
        archive.visit_links(names.append)
        for name in names:
            if not isinstance(archive.get(name, getlink=True), h5py.HardLink):
                raise UserError(f"{file}: {name:.80} is a link, expected weights")
            array = archive[name]
            if not isinstance(array, h5py.Dataset):
                continue
            if array.external or array.is_virtual:
                raise UserError(f"{file}: {name:.80} is stored in another file")
            if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
                raise UserError(f"{file}: {name:.80} holds {array.dtype!s:.80}, expected numbers")
            # Reading one weight unpacks its whole chunk, which may be larger than the array.
            num_weights += max(array.size or 0, math.prod(array.chunks or ()))
    _check_count(num_weights, file, f"{file}: arrays")


def check_sizes(run: Any, file: pathlib.Path) -> None:
    """Refuses a config whose model would take more memory than the weights in a file can fill.

    Args:
        run: The `engine.run.Run`.
        file: `best.weights.h5` or `last.npz`.

    Raises:
        UserError: A size in the config, or the number of weights of the model, is too large.
    """
    import keras  # takes seconds to load; opening a run need not wait

    # Building a model takes time and memory even without its weights. So a whole number in the
    # config that exceeds the bytes of the file is refused first: no real model has one.
    sizes = run.config.to_json()
    # Hashed words share the vector of the unknown word, so they add no weights.
    sizes["hashed_words"] = 0
    # Memory networks compute an array of this size when they are built.
    sizes["signals"] = sizes.get("max_words", 0) * sizes.get("embedding_dim", 0)
    largest = max(file.stat().st_size, MIN_BYTES)
    for size in keras.tree.flatten(sizes):
        if isinstance(size, int) and size > largest:
            raise UserError(
                f"{run.path / CONFIG}: a model of size {size:,} does not fit {file.name}"
            )
    _check_count(_count_weights(run.build_model), file, f"{run.path / CONFIG}: a model")


def _check_count(num_weights, file, subject):
    """Refuses more weights than a file can hold; the message begins with `subject`."""
    num_bytes = file.stat().st_size
    if num_weights > WEIGHTS_PER_BYTE * max(num_bytes, MIN_BYTES):
        raise UserError(
            f"{subject} of {num_weights:,} weights does not fit {file.name}, which has "
            f"{num_bytes:,} bytes"
        )


def _count_weights(build_model):
    """Counts the weights of a model without memory for them.

    Keras keeps the new variables of a stateless scope in a list, to initialise them later, which
    must never happen here. Each thread has its own list: the model is built in a new thread, with
    which the list ends.
    """

    def count():
        import keras

        with keras.StatelessScope(initialize_variables=False):
            model = build_model()
        return sum(math.prod(weight.shape) for weight in model.weights)

    with futures.ThreadPoolExecutor(max_workers=1) as new_thread:
        return new_thread.submit(count).result()
