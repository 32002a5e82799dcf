"""Prepared datasets: writing and reading, for all tasks.

    dataset.json         corpus, task, settings, statistics
    vocabulary.txt       line n is the word with id n
    word_embedding.pkl   float32 array `(words + 1, dimension)`, row 0 padding
    ...                  the examples, each task's own files

Each `tasks/<task>/prepare.py` has a class `Settings` and `prepare(corpus, source, out, settings)`,
which prepares the directory `source` of a corpus into the new directory `out` and prints a summary;
after an error nothing is left. Files are read without trust: a wrong or missing one is a
`UserError` of one sentence, here as in all readers.
"""

import contextlib
import dataclasses
import hashlib
import pathlib
import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from colloquy.base.config import Config
from colloquy.base.files import PathLike, UserError, checksum, in_one_line
from colloquy.data import pickles
from colloquy.data.corpora import CORPORA
from colloquy.data.json_files import read_json, write_json
from colloquy.data.vocabulary import SPECIALS, Vocabulary

METADATA = "dataset.json"
VOCABULARY = "vocabulary.txt"
VECTORS = "word_embedding.pkl"
SMALL_TEXT = 20_000
"""Training texts with fewer words keep every word by default."""


class CommonSettings(Config):
    """Settings of preparing a corpus that all tasks have; prepare.py makes a flag of each field."""

    name: str | None = None
    """Name of the corpus in tables; default: that of the source directory, for dialogs `babi`."""
    vocabulary_of: str | None = None
    """A run, such as pretrained/NAME, or a prepared dataset. Its vocabulary, tokenizer and word
    vectors are used, so that its model can score the new data or continue training on it."""


VOCABULARY_SETTINGS = (
    "min_count",
    "dimension",
    "window",
    "word2vec_epochs",
    "vectors",
    "hashed_words",
    "general_vectors",
    "word2vec_text",
    "tokenizer",
    "lower",
    "turns",
    "vocabulary_size",
    "trained_words",
)
"""Settings that are not allowed with `vocabulary_of`, which takes them from a run or dataset."""


def filled_min_count(min_count: int | None, counts: Mapping[str, int]) -> int:
    """`--min_count`, or its default for a training text with these `{word: count}`.

    The default is 2, but 1 for a text of fewer than `SMALL_TEXT` words.
    """
    if min_count:
        return min_count
    num_words = sum(counts.values())
    return 1 if num_words < SMALL_TEXT else 2


def write(
    directory: pathlib.Path,
    files: Mapping[str, Any],
    corpus: str,
    source: PathLike | None,
    settings: CommonSettings,
    statistics: object,
    *,
    name: str | None = None,
    **more: object,
) -> None:
    """Writes a prepared dataset into an empty directory.

    Args:
        files: `{name: content}`: a `Vocabulary`; a plain value if the name ends in `.pkl`; else
            lines of text.
        statistics: A JSON value, as `more`.
        name: Name of the corpus in tables; `None`: that of the settings, else of the source
            directory.
    """
    metadata = {
        "name": name or settings.name or pathlib.Path(source or corpus).resolve().name,
        "corpus": corpus,
        "task": CORPORA[corpus].task,
        **more,
        "settings": settings.to_json(),
        "statistics": statistics,
    }
    for file, content in files.items():
        if isinstance(content, Vocabulary):
            content.save(directory / file)
        elif file.endswith(".pkl"):
            with open(directory / file, "wb") as out:
                # Another protocol would change the `fingerprint` of the same dataset.
                pickle.dump(content, out, protocol=2)
        else:
            with open(directory / file, "w", encoding="utf-8", newline="\n") as out:
                for line in content:
                    out.write(f"{line}\n")
    write_json(directory / METADATA, metadata)


def fingerprint(path: PathLike) -> str:
    """Returns a digest of the examples of a prepared dataset.

    Metadata and word vectors do not count: a dataset that is prepared again has the same digest.
    """
    path = pathlib.Path(path)
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.name not in (METADATA, VECTORS):
            digest.update(file.relative_to(path).as_posix().encode())
            digest.update(bytes.fromhex(checksum(file)))
    return digest.hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A prepared dataset; each task adds fields."""

    path: pathlib.Path
    name: str
    """The corpus, as in `results/published.json` if it has published scores."""
    splits: dict
    """`{name: examples}`; an absent split has none."""

    def metadata(self) -> dict[str, Any]:
        """Metadata that a run keeps, ready for JSON."""
        return {"path": str(self.path.resolve()), "name": self.name}


@contextlib.contextmanager
def checked(file: PathLike, expected: str = "what prepare.py writes") -> Iterator[None]:
    """Turns errors caused by a value of a wrong type into a `UserError` that names its file."""
    try:
        yield
    except (LookupError, AttributeError) as error:
        reason = in_one_line(f"{type(error).__name__}: {error}", 200)
        raise UserError(f"{file}: expected {expected}. {reason}") from error
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UserError(f"{file}: expected {expected}. {in_one_line(error, 200)}") from error


def texts(values: Any) -> list[str]:
    """A list of texts; a `TypeError` if it is something else."""
    if type(values) is not list or not all(type(value) is str for value in values):
        raise TypeError("a list of texts is needed")
    return values


def check_splits(splits: Iterable[str]) -> None:
    """Refuses a split that no dataset has, as a `UserError`, before anything is loaded."""
    known = ("train", "dev", "dev-oov", "test", "test-oov")
    for split in splits:
        if split not in (*known, "references"):
            raise UserError(f"split: expected some of {', '.join(known)}. Received: {split}")


def read_metadata(path: PathLike, task: str) -> dict[str, Any]:
    """Reads the metadata of a prepared dataset of a task, a dict with at least `name`."""
    path = pathlib.Path(path)
    if not path.exists():
        raise UserError(f"{path} is not a directory; prepare.py makes one")
    file = path / METADATA
    metadata = read_json(file) if file.is_file() else {}
    # The raw corpus of chitchat has a file of this name with other content.
    if not isinstance(metadata, dict) or not {"task", "name"} <= metadata.keys():
        raise _not_prepared(path, task)
    if metadata["task"] != task:
        raise UserError(
            f"{path}: expected a dataset for models of {task}, which prepare.py makes of its "
            f"corpora. Received: one for {metadata['task']!r:.60}"
        )
    if not isinstance(metadata["name"], str):
        received = type(metadata["name"]).__name__
        raise UserError(f"{file}: expected name to be a text. Received: {received}")
    return metadata


def _not_prepared(path, task):
    """The error for a directory, or a file, of a raw corpus."""
    formats = [name for name, corpus in CORPORA.items() if task in corpus.tasks]
    command = f"prepare.py --corpus=FORMAT --task={task} --source={path} --out=build/{path.stem}"
    return UserError(
        f"{path}: expected a prepared dataset, with {METADATA}. Prepare it first: "
        f"python {command}, FORMAT that of its files: {', '.join(formats)}"
    )


def read_vocabulary(file: PathLike) -> Vocabulary:
    """Reads a vocabulary that prepare.py wrote, which begins with the specials."""
    vocabulary = Vocabulary.load(file)
    if vocabulary.words[: len(SPECIALS)] != SPECIALS:
        received = f"{vocabulary.words[:2]}"[:200]
        raise UserError(f"{file}: lines 1 and 2 must be {SPECIALS}. Received: {received}")
    return vocabulary


def read_embedding(file: PathLike, vocabulary: Vocabulary | None = None) -> np.ndarray:
    """Reads word vectors, a pickled array or lists of numbers.

    Returns:
        Float32 `(words + 1, dimension)`; row 0 is padding.

    Raises:
        UserError: It is something else, or has other rows than `vocabulary`, if that is given.
    """
    file = pathlib.Path(file)
    value = pickles.load(file)
    with checked(file, "rows of numbers"), np.errstate(over="ignore"):
        vectors = np.asarray(value)
        if vectors.dtype.kind not in "biuf":
            raise ValueError(f"Received: {vectors.dtype}")
        vectors = vectors.astype(np.float32)
    if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
        raise UserError(
            f"{file}: expected a finite array (vocabulary + 1, dimension). "
            f"Received: shape {vectors.shape}"
        )
    if vocabulary is not None and len(vectors) != len(vocabulary) + 1:
        expected = f"expected shape ({len(vocabulary) + 1}, dimension)"
        raise UserError(f"{file}: {expected}. Received: {vectors.shape}")
    return vectors
