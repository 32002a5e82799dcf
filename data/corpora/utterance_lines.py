"""Lines of utterances separated by tabs, for `data.corpora.conversations`.

Any text with tabs looks like such a file, so some other formats are recognized and refused.
"""

import pathlib
import re
import string

from colloquy.base.files import UserError, in_one_line
from colloquy.data.corpora.messages import Conversations
from colloquy.data.report import Report
from colloquy.data.text_files import bad_line, read_lines

OTHER_FORMS = "JSON, a table, a WhatsApp export or ParlAI's: docs/own_conversations.md"
MARK = re.compile(r"([A-Za-z_]{1,20}|[0-9]{1,9}):")
"""Beginning of a field of another format, such as `A:`."""
REMOVE = "remove this column"


def read_tabs(path: pathlib.Path, report: Report) -> Conversations:
    """Reads lines of utterances separated by tabs, a conversation per line."""
    report.add_file(path, "utterances separated by tabs, a conversation per line")
    conversations = []
    for number, line in read_lines(path, "conversations"):
        turns = line.split("\t")
        require_utterances(path, number, line, turns, f"tabs; or {OTHER_FORMS}")
        conversations.append(turns)
    received = _describe_other_format(conversations)
    if received:
        raise UserError(f"{path}: expected utterances. Received: {received}")
    return conversations


def require_utterances(
    path: pathlib.Path, number: int, line: str, turns: list[str], separator: str
) -> None:
    """Refuses a line with fewer than two turns, or with an empty one.

    If an empty turn was left out, the turn after it would seem to answer the turn before it.
    """
    if len(turns) < 2:
        raise bad_line(path, number, f"utterances separated by {separator}", line)
    if not all(turn.strip() for turn in turns):
        raise bad_line(path, number, "no empty utterance", line)


def _describe_other_format(conversations):
    """Describes lines that are of another format; `None`: they can be utterances."""
    # The first line may have the names of columns.
    lines = conversations[1:] or conversations
    first_turns = {turns[0] for turns in lines}
    if first_turns <= {"0", "1"}:
        return "lines that all begin with 0 or 1, as labels do: a file for --corpus=smn"

    # A line of two columns may be a question and a number that answers it.
    if all(len(turns) > 2 for turns in lines):
        for place, verb in ((0, "begin"), (-1, "end")):
            if not any(_has_word(turns[place]) for turns in lines):
                example = in_one_line(lines[-1][place], 40)
                return f"lines that all {verb} with a number, id or time, as {example}: {REMOVE}"

    marks = _find_marks(first_turns)
    if marks:
        shown = ", ".join(sorted(marks)[:3])
        return f"lines that all begin with {shown}, as fields of another format do"
    return None


def _has_word(turn):
    """Whether a turn has more than numbers, signs and ids such as `conv_7`."""
    for word in turn.split():
        has_digit = any(map(str.isdigit, word))
        if not has_digit and word.strip(string.punctuation):
            return True
    return False


def _find_marks(turns):
    """The marks such as `A:` if each turn begins with one, and different turns share them."""
    marks = set()
    for turn in turns:
        match = MARK.match(turn)
        if match is None:
            return set()
        marks.add(match[0])
    return marks if len(turns) > 2 * len(marks) else set()
