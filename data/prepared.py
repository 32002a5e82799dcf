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
import pathlib
import re

import numpy as np
import rich
from rich.table import Table

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data import pickles
from colloquy.data.corpora import CORPORA
from colloquy.data.text_files import in_one_line, read_json, write_json
from colloquy.data.vocabulary import SPECIALS, Vocabulary

METADATA, VOCABULARY, VECTORS = "dataset.json", "vocabulary.txt", "word_embedding.pkl"
SMALL_TEXT = 20_000
"""Training texts with fewer words keep every word by default."""


class CommonSettings(Config):
    """Settings of preparing a corpus that all tasks have; prepare.py makes a flag of each field."""

    name: str | None = None
    """Name of the corpus in tables; default: that of the source directory, for dialogs `babi`."""
    vocabulary_of: str | None = None
    """A run, such as pretrained/NAME, or a prepared dataset. Its vocabulary, tokenizer and word
    vectors are used, so that its model can score the new data or continue training on it."""


def filled_min_count(min_count, counts):
    """`--min_count`, or its default: 2, but 1 for a training text of fewer than `SMALL_TEXT` words,
    `{word: count}`.
    """
    return min_count or (1 if sum(counts.values()) < SMALL_TEXT else 2)


def write(directory, files, corpus, source, settings, statistics, *, name=None, **more):
    """Writes a prepared dataset into an empty directory; `statistics` and `more` are JSON values.

    `files` are `{name: content}`: a `Vocabulary`; a plain value if the name ends in `.pkl`; else
    lines of text. `name` is that of the corpus in tables; `None`: that of the settings, else of the
    source directory.
    """
    name = name or settings.name or pathlib.Path(source).resolve().name
    metadata = {"name": name, "corpus": corpus, "task": CORPORA[corpus].task, **more}
    metadata |= {"settings": settings.to_json(), "statistics": statistics}
    for file, content in files.items():
        if isinstance(content, Vocabulary):
            content.save(directory / file)
        elif file.endswith(".pkl"):
            with open(directory / file, "wb") as out:
                pickles.dump(content, out)
        else:
            with open(directory / file, "w", encoding="utf-8", newline="\n") as out:
                out.writelines(f"{line}\n" for line in content)
    write_json(directory / METADATA, metadata)


def print_summary(statistics):
    """Prints a table of a dataset's statistics, `{split: {name: number or text}}`; docs/data.md
    explains its rows.
    """
    table = Table("", *statistics)
    for name in next(iter(statistics.values())):
        values = (found[name] for found in statistics.values())
        label = re.sub("_(?=(95|mean|median|most)$)", ", ", name).replace("_", " ")
        label = label.replace(" 95", " 95th percentile").replace(" most", " maximum")
        table.add_row(label, *(v if isinstance(v, str) else f"{v:,}" for v in values))
    rich.print(table)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A prepared dataset; each task adds fields."""

    path: pathlib.Path
    name: str
    """The corpus, as in `results/published.json` if it has published scores."""
    splits: dict
    """`{name: examples}`; an absent split has none."""

    def metadata(self):
        """Metadata that a run keeps, ready for JSON."""
        return {"path": str(self.path.resolve()), "name": self.name}


@contextlib.contextmanager
def checked(file, expected="what prepare.py writes"):
    """Turns errors caused by a value of a wrong type into a `UserError` that names its file."""
    try:
        yield
    except (
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        reason = (
            f"{type(error).__name__}: {error}"
            if isinstance(error, LookupError | AttributeError)
            else error
        )
        raise UserError(f"{file}: expected {expected}. {in_one_line(reason)}") from error


def texts(values):
    """A list of texts; a `TypeError` if it is something else."""
    if type(values) is not list or not all(type(value) is str for value in values):
        raise TypeError("a list of texts is needed")
    return values


def read_metadata(path, task):
    """Reads the metadata of a prepared dataset of a task, a dict with at least `name`, the corpus."""
    path = pathlib.Path(path)
    if not path.is_dir():
        raise UserError(f"{path} is no directory; prepare.py makes one")
    metadata = read_json(path / METADATA)
    found = metadata.get("task") if isinstance(metadata, dict) else None
    if found != task:
        wrong = f"expected a dataset for models of {task}. Received: one for {found!r:.60}"
        raise UserError(f'{path / METADATA}: {wrong}; the file must say "task": "{task}"')
    if not isinstance(metadata.setdefault("name", path.resolve().name), str):
        raise UserError(
            f"{path / METADATA}: expected name to be a text. Received: {type(metadata['name']).__name__}"
        )
    return metadata


def read_vocabulary(file):
    """Reads a vocabulary that prepare.py wrote; a `UserError` if it does not begin with the
    specials.
    """
    vocabulary = Vocabulary.load(file)
    if vocabulary.words[: len(SPECIALS)] != SPECIALS:
        raise UserError(
            f"{file}: lines 1 and 2 must be {SPECIALS}. Received: {vocabulary.words[:2]}"[:300]
        )
    return vocabulary


def read_embedding(file, vocabulary):
    """Reads the word vectors of a vocabulary, float32 `(len(vocabulary) + 1, dimension)`; row 0 is
    padding.
    """
    vectors = read_vectors(file)
    if len(vectors) != len(vocabulary) + 1:
        raise UserError(
            f"{file}: expected shape ({len(vocabulary) + 1}, dimension). Received: {vectors.shape}"
        )
    return vectors


def read_vectors(file):
    """Reads word vectors, float32 `(words, dimension)`, from a pickle of an array or of lists of
    finite numbers.
    """
    file = pathlib.Path(file)
    value = pickles.load(file)
    with checked(file, "rows of numbers"), np.errstate(over="ignore"):
        if not isinstance(value, np.ndarray):
            if (
                4 * len(value) * len(value[0] if len(value) else ())
                > 4 * file.stat().st_size + 2**26
            ):
                raise ValueError("rows that are one and the same")
            value = np.asarray(value)
        if value.dtype.kind not in "biuf":
            raise ValueError(f"Received: {value.dtype}")
        vectors = np.asarray(value, np.float32)
    if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
        raise UserError(
            f"{file}: expected a finite array (vocabulary + 1, dimension). Received: shape {vectors.shape}"
        )
    return vectors
