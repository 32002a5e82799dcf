"""Corpora in memory: lists of conversations or questions, written as the files of a corpus."""

import contextlib
import json
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from colloquy.base.files import UserError
from colloquy.data.corpora.splits import ALL

SPLITS = ("train", "dev", "test")


@contextlib.contextmanager
def as_files(source: Sequence | Mapping, corpus: str) -> Iterator[pathlib.Path]:
    """Writes a corpus in memory into a temporary directory, and yields the directory.

    Each split is a file of JSON lines.

    Args:
        source: For `conversations`, a list of conversations, each a list of texts; train, dev and
            test are drawn from them. Or `{"train": list, "dev": list, ...}`. For `squad` only the
            latter, with questions as dicts, as Hugging Face's SQuAD has them.
        corpus: Name of the directory, which is the dataset's name if no setting gives another.
    """
    if isinstance(source, Mapping):
        if not source.keys() <= set(SPLITS):
            received = ", ".join(map(str, source))
            expected = f"expected lists for {' or '.join(SPLITS)}"
            raise UserError(f"source: {expected}. Received: {received}")
        splits = source
    else:
        # `data.corpora.splits` draws train, dev and test from these conversations.
        splits = {ALL: source}
    with tempfile.TemporaryDirectory() as parent:
        directory = pathlib.Path(parent) / corpus
        directory.mkdir()
        for split, rows in splits.items():
            with open(directory / f"{split}.jsonl", "w", encoding="utf-8") as file:
                try:
                    for row in rows:
                        file.write(json.dumps(row) + "\n")
                except (TypeError, ValueError) as error:
                    place = "source" if split == ALL else f"source, {split}"
                    expected = "expected a list of lists of texts, or of dicts of questions"
                    raise UserError(f"{place}: {expected}. {error}") from error
        try:
            yield directory
        except UserError as error:
            # The directory is gone when the user reads this.
            raise UserError(str(error).replace(str(directory), "source")) from error
