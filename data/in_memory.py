"""Corpora in memory: lists of conversations or questions, written as the files of a corpus."""

import contextlib
import json
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from colloquy.base.files import UserError

SPLITS = ("train", "dev", "test")


@contextlib.contextmanager
def as_files(source: Sequence | Mapping, corpus: str) -> Iterator[pathlib.Path]:
    """Writes a corpus in memory into a temporary directory, a file of JSON lines per split.

    Args:
        source: A list of conversations, each a list of texts, of which dev and test are drawn; or
            `{"train": list, "dev": list, ...}` of conversations or of questions, each a dict as
            Hugging Face's SQuAD has them.
        corpus: Name of the directory, which tables show.
    """
    splits = source if isinstance(source, Mapping) else {"all": source}
    if not splits.keys() <= {"all", *SPLITS}:
        received = ", ".join(map(str, splits))
        raise UserError(f"source: expected lists for {', '.join(SPLITS)}. Received: {received}")
    with tempfile.TemporaryDirectory() as parent:
        directory = pathlib.Path(parent) / corpus
        directory.mkdir()
        for split, rows in splits.items():
            with open(directory / f"{split}.jsonl", "w", encoding="utf-8") as file:
                for row in rows:
                    try:
                        file.write(json.dumps(row) + "\n")
                    except (TypeError, ValueError) as error:
                        expected = "expected lists of texts, or dicts of questions"
                        raise UserError(f"source, {split}: {expected}. {error}") from error
        yield directory
