"""What the simulators write with: tokens, and files that appear together or not at all."""

import functools
import re

from base.files import atomic_files


@functools.lru_cache(maxsize=2**16)
def tokenize(text):
    """Splits off punctuation and lower-cases.

    >>> tokenize("The Shy Fox, 7 o'clock? Call 555-0107.")
    "the shy fox , 7 o'clock ? call 555-0107 ."
    """
    return " ".join(re.findall(r"\w+(?:['-]\w+)*|[^\w\s]", text.lower()))


def write_entries(directory, files):
    """Writes text files from `{name: entries}`, each entry with its line ends, or nothing at all.

    Args:
        directory: Where; made if missing. Files of these names are replaced.
        files: What to write.

    Returns:
        The number of entries by file.

    Raises:
        OSError: If the files cannot be written.
    """
    with atomic_files(directory) as staging:
        for name, entries in files.items():
            with open(staging / name, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(entries)
    return {name: len(entries) for name, entries in files.items()}
