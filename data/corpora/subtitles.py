"""Subtitles of Chinese films and series, in the `.conv` format of Chinese chatbots.

    E                a block begins: a scene
    M UTTERANCE

Lines have no final punctuation and often contain spaces. No speakers are given: a line may continue
the previous one.
"""

import itertools
import pathlib
import re

from colloquy.base.files import PathLike
from colloquy.data.corpora.messages import Conversations
from colloquy.data.report import Report
from colloquy.data.text_files import Files, bad_line, find_files, is_utf8, read_lines

TOKENIZER = "mixed"
# Encoding of files that are not UTF-8. GB 18030 contains GBK, the usual encoding of such files.
FALLBACK_ENCODING = "gb18030"
# The last twentieth of the blocks of each file is dev. If every twentieth block were dev, both
# splits would have scenes of the same episodes.
HELD_OUT = 20
# Style codes of the subtitle format ASS, such as {\an8}.
STYLE = re.compile(r"\{\\[^{}]*\}")


def find_splits(directory: PathLike) -> Files:
    """The files `*.conv`: the same for train and dev, which `read` separates by `HELD_OUT`."""
    files = find_files(directory, ["*.conv"])
    return {"train": files, "dev": files}


def read(paths: list[pathlib.Path], split: str, report: Report) -> Conversations:
    """Reads blocks, each a list of one or more utterances.

    - Style codes are removed. An utterance that consists of style codes alone is left out.
    - UTF-8 mistaken for ISO 8859-2 is repaired.
    - A file may be in GBK.
    - Slashes between words, as in the corpus Xiaohuangji, become spaces.
    """
    conversations: Conversations = []
    # Train and dev are read from the same files, which are reported once.
    report = report if split == "train" else Report()
    for path in paths:
        blocks = _read_blocks(path, report)
        first_of_dev = len(blocks) - len(blocks) // HELD_OUT
        blocks = blocks[first_of_dev:] if split == "dev" else blocks[:first_of_dev]
        conversations.extend(block for block in blocks if block)
    return conversations


def _read_blocks(path, report):
    """Reads the blocks of a file; some may be empty."""
    blocks = []
    num_repaired = 0
    encoding = None if is_utf8(path) else FALLBACK_ENCODING
    for number, line in read_lines(path, "conversations", fallback=encoding):
        mark, _, text = line.partition(" ")
        if line.strip() == "E":
            blocks.append([])
        elif mark == "M" and blocks:
            repaired = _repair(text)
            num_repaired += repaired != text
            text = STYLE.sub("", repaired).strip()
            if text:
                blocks[-1].append(text)
            else:
                report.leave_out("utterances without text")
        else:
            expected = "E or M and an utterance" if blocks else "E, which opens a block"
            raise bad_line(path, number, expected, line)

    if num_repaired:
        report.note(f"{path}: UTF-8 read as ISO 8859-2 was repaired in {num_repaired:,} utterances")
    form = "blocks of utterances"
    if encoding is not None:
        form += ", in GBK"
    texts = list(itertools.chain.from_iterable(blocks))
    if sum(text.endswith("/") for text in texts) > 0.9 * len(texts):
        form += ", words separated by slashes"
        blocks = [_remove_slashes(block) for block in blocks]
    report.add_file(path, form)
    return blocks


def _remove_slashes(block):
    """Puts spaces in place of slashes; an utterance of slashes alone is left out."""
    texts = [text.replace("/", " ").strip() for text in block]
    return [text for text in texts if text]


def _repair(text):
    r"""Repairs UTF-8 that was mistaken for ISO 8859-2.

    >>> text = "\u4f60\u597d"
    >>> _repair(text.encode().decode("iso-8859-2")) == _repair(text) == text
    True
    """
    try:
        return text.encode("iso-8859-2").decode()
    except UnicodeError:
        return text
