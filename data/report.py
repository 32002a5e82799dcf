"""The report of preparing a corpus: what was read, what was left out and why, what a model sees.

Then a table of the dataset's statistics.
"""

import collections
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from colloquy.base.files import PathLike, in_one_line

SHOWN_FILES = 5
"""Files that a report names; of others it gives the number."""
SHOWN_NAMES = 5
"""Names that a note shows; of others it gives the number."""
SHOWN_WORDS = 30
"""Words of an example that a report shows."""


Example = tuple[str, str]
"""The source and the target, as a model reads them."""


@dataclasses.dataclass
class Report:
    """Collects what a reader of a corpus has to say; `prepare.py` prints it."""

    files: list[str] = dataclasses.field(default_factory=list)
    """A line for each file: its name and its form."""
    paths: set[pathlib.Path] = dataclasses.field(default_factory=set)
    """The files that were read."""
    counts: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    """Numbers of things that were read, such as `{"turns": 12}`."""
    senders: set[str] = dataclasses.field(default_factory=set)
    """Names of the senders, where a file has them."""
    left_out: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    """Numbers of things that were left out, by reason."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """Sentences on what a user may not expect."""

    def add_file(self, path: PathLike, form: str, unused: Iterable[str] = ()) -> None:
        """Names a file that was read, its form, and its fields that are not used, once."""
        self.paths.add(pathlib.Path(path))
        line = f"{path}: {form}"
        names = list(unused)
        if names:
            line += f"; not used: {in_one_line(shorten(names), 200)}"
        if line not in self.files:
            self.files.append(line)

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Counts things that were left out, such as `"messages without text"`."""
        if count:
            self.left_out[reason] += count

    def note(self, sentence: str) -> None:
        """Adds a sentence, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def note_unread(self, directory: PathLike) -> None:
        """Notes the files and folders of a directory that no call of `add_file` named."""
        directory = pathlib.Path(directory)
        if not directory.is_dir() or directory in self.paths:
            return
        read = set(self.paths)
        for path in self.paths:
            read.update(path.parents)
        unread = []
        for path in sorted(directory.iterdir()):
            if path not in read and not path.name.startswith("."):
                unread.append(path.name)
        if unread:
            self.note(f"{directory}: not read: {shorten(unread)}")

    def reasons(self) -> str:
        """What was left out, by reason and count."""
        return shorten(f"{count:,} {reason}" for reason, count in self.left_out.items())

    def print(self, examples: list[Example]) -> None:
        """Prints the report.

        Args:
            examples: `choose_examples` of the pairs of train.
        """
        shown = list(self.files[:SHOWN_FILES])
        if len(self.files) > SHOWN_FILES:
            shown.append(f"and {len(self.files) - SHOWN_FILES:,} more files")
        if self.counts:
            parts = [f"{count:,} {name}" for name, count in self.counts.items()]
            if self.senders:
                parts.append(f"{len(self.senders):,} senders")
            shown.append(f"read: {', '.join(parts)}")
        shown.append(f"left out: {self.reasons() or 'nothing'}")
        shown += [f"note: {sentence}" for sentence in self.notes]
        places = ("first", "middle", "last") if len(examples) > 2 else ("first", "last")
        for place, (source, target) in zip(places, examples, strict=False):
            shown.append(f"{place} example: {_shortened(source)}  =>  {_shortened(target)}")
        print(*shown, sep="\n")


def shorten(names: Iterable[str], most: int = SHOWN_NAMES) -> str:
    """The first `most` names, and the number of the others.

    >>> shorten("abcdefg")
    'a, b, c, d, e and 2 more'
    """
    names = list(names)
    shown = ", ".join(names[:most])
    num_more = len(names) - most
    return f"{shown} and {num_more:,} more" if num_more > 0 else shown


def choose_examples(number: int, make: Callable[[int], Example]) -> list[Example]:
    """The first example, one from the middle, and the last.

    Args:
        number: Number of examples.
        make: Function from the number of an example to its source and its target, as a model
            reads them.

    >>> choose_examples(5, lambda place: (f"source {place}", "target"))[1]
    ('source 2', 'target')
    """
    places = sorted({0, number // 2, number - 1})
    return [make(place) for place in places if 0 <= place < number]


def _shortened(text):
    """The text with at most `SHOWN_WORDS` words: the last ones, which are nearest to the reply."""
    words = text.split()
    if len(words) <= SHOWN_WORDS:
        return " ".join(words)
    return " ".join(["...", *words[-SHOWN_WORDS:]])


def print_summary(statistics: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints the statistics of a dataset, `{split: {name: number or text}}`, see docs/data.md."""
    import rich
    from rich.table import Table

    table = Table("", *statistics)
    first_split = next(iter(statistics.values()))
    for name in first_split:
        cells = []
        for values in statistics.values():
            value = values[name]
            cells.append(value if isinstance(value, str) else f"{value:,}")
        table.add_row(_label(name), *cells)
    rich.print(table)


def _label(name):
    """The words of a statistic.

    >>> _label("words_of_reply_95")
    'words of reply, 95th percentile'
    """
    return name.replace("_95", ", 95th percentile").replace("_", " ")
