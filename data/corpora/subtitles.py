r"""Subtitles of Chinese films and series, in the `.conv` format of Chinese chatbots.

    E                a block begins: a scene
    M UTTERANCE

Lines have no final punctuation and often contain spaces. No speakers are given: a line may continue
the previous one.
"""

import pathlib
import re

from colloquy.data.corpora.messages import Conversations
from colloquy.data.report import Report
from colloquy.data.text_files import Files, PathLike, bad_line, find_files, is_utf8, read_lines

TOKENIZER = "mixed"
CHINESE = "gb18030"  # encoding of files that are not UTF-8; it contains GBK
# the last of every `HELD_OUT` blocks of a file belongs to dev, so dev has other episodes than train
HELD_OUT = 20
STYLE = re.compile(r"\{\\[^{}]*\}")  # of ASS subtitles, {\an8}


def find_splits(directory: PathLike) -> Files:
    """The files `*.conv`: the same for train and dev, which `read` separates by `HELD_OUT`."""
    files = find_files(directory, ["*.conv"])
    return {"train": files, "dev": files}


def read(paths: list[pathlib.Path], split: str, report: Report) -> Conversations:
    """Reads blocks, each a list of one or more utterances.

    Style codes are removed, and utterances of nothing else left out. UTF-8 mistaken for ISO 8859-2
    is repaired. A file may be in GBK, and its words separated by slashes, as in Xiaohuangji.
    """
    conversations: Conversations = []
    for path in paths:
        blocks = _read_blocks(path, report)
        first_of_dev = len(blocks) - len(blocks) // HELD_OUT
        blocks = blocks[first_of_dev:] if split == "dev" else blocks[:first_of_dev]
        conversations.extend(block for block in blocks if block)
    return conversations


def _read_blocks(path, report):
    """Reads the blocks of a file; some may be empty."""
    blocks = []
    form = "blocks of utterances"
    encoding = None
    if not is_utf8(path):
        encoding = CHINESE
        form += ", in GBK"
    ends_with_slash = 0
    for number, line in read_lines(path, "conversations", fallback=encoding):
        mark, _, text = line.partition(" ")
        if line.strip() == "E":
            blocks.append([])
        elif mark == "M" and blocks:
            text = STYLE.sub("", _repair(text)).strip()
            if text:
                blocks[-1].append(text)
                ends_with_slash += text.endswith("/")
            else:
                report.leave_out("utterances without text")
        else:
            expected = "E or M and an utterance" if blocks else "E, which opens a block"
            raise bad_line(path, number, expected, line)
    if ends_with_slash > 0.9 * sum(len(block) for block in blocks):
        form += ", words separated by slashes"
        blocks = [[text.replace("/", " ").strip() for text in block] for block in blocks]
        blocks = [[text for text in block if text] for block in blocks]
    report.add_file(path, form)
    return blocks


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
