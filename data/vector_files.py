"""Files of word vectors: text of word2vec or GloVe, or arrays."""

import math
import pathlib
import zipfile

import numpy as np

from base.files import UserError
from data.flat_arrays import read_header
from data.text_files import largest_content, read_lines


def read_vectors(path, words=None):
    """Reads word vectors: a text file of word2vec (line 1: count and dimension) or GloVe, or arrays.

    Args:
        path: Text: one word per line, then its vector, separated by single spaces, UTF-8. `.npz`: the arrays `words`
            and `vectors`.
        words: Only these are kept, so that a file larger than the memory can be read; `None`: all.

    Returns:
        `{word: float32 vector}`, in the file's order.

    Raises:
        UserError: where the file is missing, a line has fewer values than the first, the values of a word are no
            finite numbers, or arrays are other than that.
    """
    path = pathlib.Path(path)
    try:
        path.stat()
    except OSError as error:
        raise UserError(f"{path}: expected word vectors. Received: {error.strerror}") from error
    if path.suffix == ".npz":
        return _read_arrays(path, words)
    found, dimension = {}, None
    for number, line in read_lines(path, None, fallback="utf-8"):
        # From the right: GloVe 840B has words with spaces.
        word, *values = line.rstrip(" \r").rsplit(" ", dimension or -1)
        if number == 1 and len(values) == 1:
            continue
        dimension = dimension or len(values)
        if not values or len(values) != dimension:
            raise UserError(
                f"{path}, line {number}: expected a word and {dimension or 'its'} values. "
                f"Received: {len(values)} values"
            )
        if words is None or word in words:
            found[word] = _numbers(path, number, values)
    return found


def _read_arrays(path, words):
    try:
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as arrays:
            names, vectors = arrays["words"], arrays["vectors"].astype(np.float32)
        if names.dtype.kind != "U" or names.ndim != 1 or vectors.ndim != 2 or len(names) != len(vectors):
            raise ValueError(f"{names.dtype} {names.shape}, {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise ValueError("a value that is not finite")
        names = names.tolist()
        "".join(names).encode()  # no half of a surrogate pair
    except OSError as error:
        raise UserError(f"{path}: expected word vectors. Received: {error.strerror or error}") from error
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive can make its readers raise anything
        raise UserError(
            f"{path}: expected the arrays words and vectors, texts (n,) and finite numbers (n, dimension). "
            f"Received: {str(error)[:200]}"
        ) from error
    return {word: vector for word, vector in zip(names, vectors, strict=True) if words is None or word in words}


def _check_sizes(path):
    """Refuses an archive whose arrays are far larger than itself, before they are made.

    Raises:
        ValueError: where they are.
    """
    with zipfile.ZipFile(path) as archive:
        for name in ("words", "vectors"):
            member = archive.getinfo(f"{name}.npy")
            with archive.open(member) as file:
                shape, dtype = read_header(file)
            if max(math.prod(shape) * dtype.itemsize, 1) > min(member.file_size, largest_content(path)):
                raise ValueError(f"{name} of shape {shape!s:.60} in a file of {path.stat().st_size:,} bytes")


def _numbers(path, number, values):
    try:
        vector = np.array(values, np.float32)
        if np.isfinite(vector).all():
            return vector
        reason = "a value that is not finite"
    except ValueError as error:
        reason = error
    raise UserError(f"{path}, line {number}: expected a word and numbers. Received: {str(reason)[:100]}")
