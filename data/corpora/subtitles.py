r"""Subtitles of Chinese films and series, in the `.conv` format of Chinese chatbots.

    E                a block begins: a scene
    M UTTERANCE

There is no punctuation at the ends of lines and often spaces within. Who speaks is not said: a line may go on with what
the one before began.
"""

import re

from data.text_files import bad_line, existing_directory, find_files, read_lines

TOKENIZER = "mixed"
HELD_OUT = 20
"""Of each file, the last one of so many blocks are dev: other episodes than those of train."""
STYLE = re.compile(r"\{\\[^}]*\}")  # of ASS subtitles, {\an8}


def find_splits(directory):
    """Finds the files of a directory.

    Returns:
        `{"train": [*.conv], "dev": ...}`, the same files: `read` separates them, see `HELD_OUT`.

    Raises:
        UserError: where the directory or its files are missing.
    """
    files = find_files(existing_directory(directory), ["*.conv"])
    return {"train": files, "dev": files}


def read(paths, split):
    """Reads blocks.

    Style codes are taken out, and utterances that are empty without them are passed over. Lines of UTF-8 that someone
    took for ISO 8859-2 are put right.

    Args:
        paths: Files, UTF-8.
        split: `"train"` or `"dev"`.

    Returns:
        List of blocks, each a list of utterances, one or more.

    Raises:
        UserError: where a file is missing or damaged, or a line is neither `E` nor, within a block, `M` and an
            utterance.
    """
    found = []
    for path in paths:
        blocks = []
        for number, line in read_lines(path, "conversations"):
            kind, _, text = line.partition(" ")
            if line.strip() == "E":
                blocks.append([])
            elif kind == "M" and blocks:
                blocks[-1].append(STYLE.sub("", _repair(text)).strip())
            else:
                expected = "E or M and an utterance" if blocks else "E, which opens a block"
                raise bad_line(path, number, expected, line)
        blocks = [[turn for turn in block if turn] for block in blocks]
        first = len(blocks) - len(blocks) // HELD_OUT
        found.extend(block for block in (blocks[first:] if split == "dev" else blocks[:first]) if block)
    return found


def _repair(text):
    r"""Puts UTF-8 right that was taken for ISO 8859-2.

    >>> _repair("\u4f60\u597d".encode().decode("iso-8859-2")) == _repair("\u4f60\u597d") == "\u4f60\u597d"
    True
    """
    try:
        return text.encode("iso-8859-2").decode()
    except UnicodeError:
        return text
