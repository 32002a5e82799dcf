"""What reading any prepared directory begins with."""

import json
import pathlib

import numpy as np

from base.files import UserError
from data import pickles

RENAMED = {"reading": "reading_comprehension"}
"""What tasks were called in older datasets."""


def task_of(path):
    """The task that a prepared dataset is for, or `None` where its directory does not say."""
    try:
        facts = json.loads((pathlib.Path(path) / "dataset.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    kind = facts.get("task") if isinstance(facts, dict) else None
    return RENAMED.get(kind, kind) if isinstance(kind, str) else None


def read_facts(path, file, task):
    """Reads the facts of a prepared dataset.

    Args:
        path: Its directory.
        file: Name of the JSON file in it.
        task: What they must say that it is for.

    Returns:
        A dict.

    Raises:
        UserError: where there is no directory, the file cannot be read, or it is of another task.
    """
    path = pathlib.Path(path)
    if not path.is_dir():
        raise UserError(f"{path} is no directory; prepare.py makes one")
    try:
        facts = json.loads((path / file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path / file}: expected what prepare.py writes. {error}") from error
    if not isinstance(facts, dict) or task_of(path) != task:
        raise UserError(f'{path / file}: expected an object with "task": "{task}"')
    return facts


def read_embedding(file, vocabulary):
    """Reads the word vectors of a prepared dataset.

    Args:
        file: A pickle.
        vocabulary: The `data.vocabulary.Vocabulary` whose words they are of.

    Returns:
        Float32 `(len(vocabulary) + 1, dimension)`; row 0 is padding.

    Raises:
        UserError: where the file cannot be read or has another shape.
    """
    vectors = read_vectors(file)
    if len(vectors) != len(vocabulary) + 1:
        raise UserError(f"{file}: expected shape ({len(vocabulary) + 1}, dimension). Received: {vectors.shape}")
    return vectors


def read_vectors(file):
    """Reads word vectors, float32 `(words, dimension)`, from a pickle.

    Raises:
        UserError: where the file cannot be read, or holds anything but an array of finite numbers.
    """
    try:
        vectors = np.asarray(pickles.load(file), dtype=np.float32)
    except (ValueError, TypeError) as error:
        raise UserError(f"{file}: expected rows of numbers. {error}") from error
    if vectors.ndim != 2 or not len(vectors) or not np.isfinite(vectors).all():
        raise UserError(f"{file}: expected a finite array (vocabulary + 1, dimension). Received: shape {vectors.shape}")
    return vectors
