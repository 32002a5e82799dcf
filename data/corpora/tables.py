"""Tables of messages, for `data.corpora.conversations`: a header, then a message per row.

    conversation,time,sender,text          or a row per pair: question,answer

Columns are separated by commas, semicolons, tabs or bars, and known by the names that exports have.
A column of times, or one of dates and one of times, orders the messages of a conversation.
"""

import csv
import datetime
import itertools
import pathlib
import re
from typing import NamedTuple

from colloquy.base.files import UserError, in_one_line
from colloquy.data.corpora.messages import Conversations, join_messages, keep_exchanges
from colloquy.data.report import Report
from colloquy.data.text_files import bad_line, read_lines

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SEPARATOR_LINE = re.compile(r"sep=([,;\t|])", re.IGNORECASE)
"""First line of a table by which Excel is told its delimiter."""
NAMES = {
    "conversation": (
        "conversation",
        "conversation_id",
        "dialog",
        "dialog_id",
        "dialogue",
        "dialogue_id",
        "chat",
        "chat_id",
        "session",
        "session_id",
        "thread",
        "thread_id",
        "channel",
    ),
    "sender": (
        "sender",
        "speaker",
        "author",
        "role",
        "from",
        "user",
        "username",
        "user_name",
        "sender_name",
        "author_name",
        "from_name",
        "name",
    ),
    "text": ("text", "message", "utterance", "content", "body", "message_text"),
    "time": ("timestamp", "datetime", "created", "created_at", "sent_at", "date", "time"),
    "time of day": ("time",),
    "question": ("question",),
    "answer": ("answer",),
}
"""Names of the columns of each kind; of several the first one of a table counts."""
PAIR = {"question", "answer"}
"""Columns of a table with a conversation of two turns per row."""
PAUSE = datetime.timedelta(hours=3)
"""Without a column of conversations, one begins after this time without a message."""
END = "\0"
"""A line behind the last one of a table."""
READABLE = "such as 2021-05-12 14:02, 12.05.2021 14:02 or seconds since 1970"
TIME_FORMATS = (
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%y %H:%M",
    "%d.%m.%Y",
    "%Y/%m/%d %H:%M",
)


class _Row(NamedTuple):
    """A message of a table."""

    conversation: str
    """Empty: the table has no names of conversations."""
    sender: str
    text: str
    written_time: str
    time: datetime.datetime | None
    """The time of `written_time`; `None`: it cannot be read."""


def is_table(line: str) -> bool:
    """Whether a first line names columns of a table, separated by one of `DELIMITERS`."""
    if SEPARATOR_LINE.fullmatch(line.strip()):
        return True
    columns = _find_columns([_plain(name) for name in line.split(_delimiter(line))])
    has_messages = "text" in columns and {"conversation", "time", "sender"} & columns.keys()
    return bool(has_messages) or columns.keys() >= PAIR


def read_table(path: pathlib.Path, report: Report) -> Conversations:
    """Reads the conversations of a table."""
    header_line, delimiter, names, values_by_row = _read_rows(path)
    columns = _find_columns(names)
    if PAIR <= columns.keys() and "text" not in columns:
        columns = {kind: columns[kind] for kind in ("question", "answer")}
    used = [names[place] for place in sorted(columns.values())]
    unused = [
        name or "a column without a name"
        for place, name in enumerate(names)
        if place not in columns.values()
    ]
    form = f"a table separated by {DELIMITERS[delimiter]}; columns used: {', '.join(used)}"
    report.add_file(path, form, unused)

    conversations = []
    if columns.keys() == PAIR:
        for values in values_by_row:
            pair = [values[columns["question"]], values[columns["answer"]]]
            conversations.append(join_messages(enumerate(pair)))
        return keep_exchanges(path, conversations, report)

    _require_columns(f"{path}, line {header_line}", names, columns)
    rows = [_row(number, values, columns) for number, values in enumerate(values_by_row)]
    _note_senders(path, rows, columns, report)
    for group in _group(path, _complete_rows(rows, report), report):
        conversations.append(join_messages([(row.sender, row.text) for row in group]))
    return keep_exchanges(path, conversations, report)


# === Rows ===


def _row(number, values, columns):
    cells = {kind: values[place].strip() for kind, place in columns.items()}
    written_time = f"{cells.get('time', '')} {cells.get('time of day', '')}".strip()
    return _Row(
        conversation=cells.get("conversation", ""),
        # A row without a sender is a turn of its own.
        sender=cells.get("sender", str(number)),
        text=cells["text"],
        written_time=written_time,
        time=_parse_time(written_time),
    )


def _note_senders(path, rows, columns, report):
    if "sender" not in columns:
        shown = ", ".join(NAMES["sender"][:4])
        report.note(f"{path}: no column of senders ({shown}, ...), so each row is a turn")
        return
    report.senders.update(row.sender for row in rows)
    without_sender = sum(not row.sender for row in rows)
    if without_sender:
        report.note(
            f"{path}: {without_sender:,} messages have no sender; they were read as those of one "
            "more sender"
        )


def _complete_rows(rows, report):
    """The rows with a text, and with a conversation if others have one."""
    with_text = [row for row in rows if row.text]
    report.leave_out("messages without text", len(rows) - len(with_text))
    with_conversation = [row for row in with_text if row.conversation]
    if not with_conversation:
        return with_text
    without_conversation = len(with_text) - len(with_conversation)
    report.leave_out("messages without a conversation's name", without_conversation)
    return with_conversation


def _delimiter(line):
    """The most frequent delimiter of a line."""
    return max(DELIMITERS, key=line.count)


def _plain(name):
    """The name of a column in lower case, with underscores, without quotes."""
    return re.sub(r"[\s-]+", "_", name.strip().strip('"').strip().lower())


def _read_rows(path):
    """Returns the header's line, the delimiter, the names of the columns, and each row's values.

    The delimiter is named by a first line `sep=;`, or it is the most frequent one of the header.
    """
    lines = [line for _, line in read_lines(path, "conversations")]
    named = SEPARATOR_LINE.fullmatch(lines[0].strip(" \r"))
    # A number for each line: the header's is 1, or 2 below `sep=;`.
    first_line = 2 if named else 1
    while first_line <= len(lines) and not lines[first_line - 1].strip():
        first_line += 1
    lines = lines[first_line - 1 :]
    delimiter = named[1] if named else _delimiter(lines[0])
    reader = csv.reader((f"{line}\n" for line in [*lines, END]), delimiter=delimiter)
    names = []
    values_by_row = []
    begin = 0  # lines before a row, from the header
    try:
        for values in reader:
            if reader.line_num > len(lines):
                if values == [END]:
                    break
                # The rest of the file, END included, is one value.
                raise bad_line(path, begin + first_line, 'a `"` that is closed', lines[begin])
            is_header = begin == 0
            begin = reader.line_num
            if is_header:
                names = [_plain(name) for name in values]
                continue
            if values and len(values) != len(names):
                expected = f"{len(names)} fields, as in the header"
                number = reader.line_num + first_line - 1
                raise bad_line(path, number, expected, delimiter.join(values))
            if values:
                values_by_row.append(values)
    except csv.Error as error:
        where = f"{path}, line {reader.line_num + first_line - 1}"
        raise UserError(f"{where}: expected a CSV row. {in_one_line(error, 100)}") from error
    return first_line, delimiter, names, values_by_row


# === Columns ===


def _find_columns(names):
    """The place of the column of each kind, `{kind: place}`."""
    columns = {}
    for kind, known_names in NAMES.items():
        for name in known_names:
            if name in names:
                columns[kind] = names.index(name)
                break
    # A time of day completes a date, and no other column.
    if "time" in columns and names[columns["time"]] != "date":
        columns.pop("time of day", None)
    return columns


def _require_columns(where, names, columns):
    """Refuses a table without texts, or whose conversations cannot be told apart."""
    for kinds in (["text"], ["conversation", "time"]):
        if not any(kind in columns for kind in kinds):
            known = " or ".join(name for kind in kinds for name in NAMES[kind])
            received = in_one_line(names, 100)
            raise UserError(f"{where}: expected a column {known}. Received: {received}")


# === Order ===


def _group(path, rows, report):
    """The rows of each conversation, ordered by their times where all of these can be read."""
    rows_by_conversation = {}
    for row in rows:
        rows_by_conversation.setdefault(row.conversation, []).append(row)
    groups = list(rows_by_conversation.values())
    has_names = "" not in rows_by_conversation
    unread = [row.written_time or "(empty)" for row in rows if row.time is None]
    if unread and not has_names:
        expected = f"expected a column {' or '.join(NAMES['conversation'])}, or times {READABLE}"
        raise UserError(f"{path}: {expected}. Received: times such as {unread[0]!r:.40}")
    if unread:
        if any(row.written_time for row in rows):
            report.note(
                f"{path}: the times, such as {unread[0]!r:.40}, cannot be read, so the messages "
                "stay in the order of the file: the oldest one must be the first. Times are read "
                f"{READABLE}"
            )
        return groups

    _sort_by_time(path, groups, report)
    if has_names:
        return groups
    report.note(f"{path}: no column of conversations, so a pause of three hours ends one")
    return _cut_at_pauses(groups[0])


def _sort_by_time(path, groups, report):
    """Sorts the rows of each group in place."""
    num_rises = 0
    num_falls = 0
    for group in groups:
        for row, next_row in itertools.pairwise(group):
            num_rises += next_row.time > row.time
            num_falls += next_row.time < row.time
    if num_rises == num_falls == 0:
        report.note(
            f"{path}: the messages of a conversation have the same time, so they stay in the order "
            "of the file: the oldest one must be the first"
        )
        return
    moved = 0
    for group in groups:
        before = list(group)
        # Sorting keeps the order of messages with the same time, which is that of the file.
        if num_falls > num_rises:
            group.reverse()
        group.sort(key=lambda row: row.time)
        moved += group != before
    if moved:
        report.note(f"{path}: the messages of {moved:,} conversations were put in order of time")


def _cut_at_pauses(rows):
    groups = [rows[:1]]
    for row, next_row in itertools.pairwise(rows):
        if next_row.time - row.time > PAUSE:
            groups.append([])
        groups[-1].append(next_row)
    return groups


def _parse_time(text):
    """The time that a text names, without its zone; `None`: it cannot be read.

    >>> _parse_time("2021-03-01T10:12:00Z") == _parse_time("01.03.2021 10:12")
    True
    """
    try:
        if re.fullmatch(r"\d{9,13}(?:\.\d+)?", text):
            number = float(text)
            seconds = number / 1000 if number > 1e11 else number
            return datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)
        time = datetime.datetime.fromisoformat(text)
        if time.tzinfo:
            time = time.astimezone(datetime.UTC).replace(tzinfo=None)
        return time
    except (ValueError, OverflowError):
        pass
    for form in TIME_FORMATS:
        try:
            return datetime.datetime.strptime(text, form)
        except ValueError:
            continue
    return None
