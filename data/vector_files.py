"""Files of word vectors: the text of word2vec and GloVe, and archives of NumPy."""

import pathlib
import re
from collections.abc import Container

import numpy as np

from colloquy.base.files import PathLike, UserError, in_one_line
from colloquy.data.text_files import read_lines

HEADER = re.compile("[0-9]{1,18} [0-9]{1,9}")
"""Line 1 of a file of word2vec: the numbers of words and of values."""


def read_vectors(path: PathLike, words: Container[str] | None = None) -> dict[str, np.ndarray]:
    """Reads word vectors, `{word: float32 vector}`, in the file's order.

    The file is text of word2vec (line 1: count and dimension) or GloVe: a word and its vector per
    line, separated by single spaces or tabs, UTF-8. Or it is `.npz` with the arrays `words` and
    `vectors`. The first vector of a word counts, as in gensim.

    Args:
        words: The words to read; `None`: all.
    """
    path = pathlib.Path(path)
    if path.suffix == ".zip":
        raise UserError(
            f"{path}: expected vectors as text, .gz or .npz. Received: .zip; "
            f"unpack it: unzip {path}"
        )
    file_vectors = _read_arrays(path) if path.suffix == ".npz" else _read_rows(path)
    vectors_by_word: dict[str, np.ndarray] = {}
    for word, values, place in file_vectors:
        if (words is None or word in words) and word not in vectors_by_word:
            vectors_by_word[word] = _parse_vector(values, place)
    return vectors_by_word


def _read_rows(path):
    """Yields the word, the values and the place of each line of a text file."""
    announced_words = 0
    dimension = 0
    num_words = 0
    for number, line in read_lines(path, None, fallback="utf-8"):
        line = line.replace("\t", " ").rstrip(" \r")
        if number == 1 and HEADER.fullmatch(line):
            announced_words, dimension = map(int, line.split(" "))
            continue
        if num_words == 0:
            word, *values = line.split(" ")
            dimension = dimension or len(values)
        else:
            # From the right: GloVe 840B has words with spaces.
            word, *values = line.rsplit(" ", dimension)
        num_words += 1
        place = f"{path}, line {number}"
        if not values or len(values) != dimension:
            expected = f"a word and {dimension or 'its'} values"
            raise UserError(f"{place}: expected {expected}. Received: {len(values)} values")
        yield word, values, place
    if num_words < announced_words:
        raise UserError(
            f"{path}: expected {announced_words:,} words, as line 1 says. "
            f"Received: {num_words:,}; the file may be incomplete"
        )


def _parse_vector(values, place):
    try:
        with np.errstate(over="ignore"):
            vector = np.array(values, np.float32)
        if not np.isfinite(vector).all():
            raise ValueError("a value that is not finite")
    except ValueError as error:
        reason = in_one_line(error, 200)
        raise UserError(f"{place}: expected a word and numbers. Received: {reason}") from error
    return vector


def _read_arrays(path):
    """Returns the word, the vector and the place of each row of an archive."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            words = arrays["words"]
            vectors = arrays["vectors"]
        is_list_of_texts = words.dtype.kind == "U" and words.ndim == 1
        if not is_list_of_texts or vectors.ndim != 2 or len(words) != len(vectors):
            raise ValueError(f"{words.dtype} {words.shape}, {vectors.shape}")
        words = words.tolist()
        # A word with half of a surrogate pair is no UTF-8: this raises a `UnicodeEncodeError`.
        "".join(words).encode()
    except Exception as error:  # a damaged archive can make its readers raise anything
        reason = in_one_line(f"{type(error).__name__}: {error}", 200)
        raise UserError(
            f"{path}: expected the arrays words and vectors, texts (n,) and numbers "
            f"(n, dimension). Received: {reason}"
        ) from error
    places = [f"{path}, row {row}" for row in range(len(words))]
    return zip(words, vectors, places, strict=True)
