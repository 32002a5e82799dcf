"""Tables of messages, for `data.corpora.conversations`: a header, then a message per row.

    conversation,time,sender,text          or a row per pair: question,answer

Columns are separated by commas, semicolons or tabs, and known by the names that exports have. A
column of times orders the messages of a conversation.
"""

import csv
import datetime
import re
from typing import NamedTuple

from colloquy.base.files import UserError, in_one_line
from colloquy.data.corpora.messages import join_messages, keep_exchanges
from colloquy.data.text_files import bad_line, read_lines

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
SEPARATOR_LINE = re.compile(r"sep=([,;\t])", re.IGNORECASE)
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
        "name",
    ),
    "text": ("text", "message", "utterance", "content", "body"),
    "time": ("timestamp", "time", "datetime", "date", "created", "created_at"),
    "question": ("question",),
    "answer": ("answer",),
}
"""Names of the columns of each kind; of several the first one of a table counts."""
PAUSE = datetime.timedelta(hours=3)
"""Without a column of conversations, one begins after this time without a message."""
TIME_FORMATS = (
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%y %H:%M",
    "%d.%m.%Y",
    "%Y/%m/%d %H:%M",
)


class _Row(NamedTuple):
    """A message of a table."""

    number: int
    """Number of its last line."""
    conversation: str
    sender: str
    text: str
    time: str


def is_table(line):
    """Whether a first line names columns of a table, separated by tabs, commas or semicolons."""
    if SEPARATOR_LINE.fullmatch(line.strip()):
        return True
    columns = _find_columns(_split_header(line, _delimiter(line)))
    has_messages = "text" in columns and {"conversation", "time", "sender"} & columns.keys()
    return bool(has_messages) or {"question", "answer"} <= columns.keys()


def read_table(path, report):
    """Reads the conversations of a table."""
    delimiter, numbered_rows = _read_rows(path)
    _, names, _ = next(numbered_rows)
    columns = _find_columns(names)
    _describe(path, names, columns, delimiter, report)
    if {"question", "answer"} <= columns.keys() and "text" not in columns:
        conversations = []
        for number, fields, line in numbered_rows:
            _require_fields(path, number, fields, names, line)
            pair = [fields[columns["question"]], fields[columns["answer"]]]
            conversations.append(join_messages(enumerate(pair)))
        return keep_exchanges(path, conversations, report)

    _require_columns(path, names, columns)
    rows = []
    for number, fields, line in numbered_rows:
        _require_fields(path, number, fields, names, line)

        def field(kind, default="", fields=fields):
            return fields[columns[kind]] if kind in columns else default

        # A row without a sender is a turn of its own.
        sender = field("sender", default=str(number))
        row = _Row(number, field("conversation"), sender, field("text"), field("time").strip())
        rows.append(row)
    if "sender" in columns:
        report.senders.update(row.sender for row in rows)
    else:
        shown = ", ".join(NAMES["sender"][:4])
        report.note(f"{path}: no column of senders ({shown}, ...), so each row is a turn")

    groups = _group(path, rows, columns, report)
    empty = sum(not row.text.strip() for row in rows)
    report.leave_out("messages without text", empty)
    conversations = []
    for group in groups:
        conversations.append(join_messages([(row.sender, row.text) for row in group]))
    return keep_exchanges(path, conversations, report)


# === Rows ===


def _delimiter(line):
    """The most frequent delimiter of a line."""
    return max(DELIMITERS, key=line.count)


def _split_header(line, delimiter):
    names = []
    for name in line.split(delimiter):
        names.append(_plain(name))
    return names


def _plain(name):
    """The name of a column in lower case, with underscores, without quotes."""
    return re.sub(r"[\s-]+", "_", name.strip().strip('"').strip().lower())


def _read_rows(path):
    """Returns the delimiter, and a generator of rows, the header first.

    A row is the number of its last line, its fields and its text. The delimiter is named by a first
    line `sep=;`, or it is the most frequent one of the header.
    """
    numbered_lines = read_lines(path, "conversations")
    skipped = 0
    _, header = next(numbered_lines)
    named = SEPARATOR_LINE.fullmatch(header.strip(" \r"))
    if named:
        skipped = 1
        _, header = next(numbered_lines, (2, ""))
    delimiter = named[1] if named else _delimiter(header)

    def lines():
        yield f"{header}\n"
        for _, line in numbered_lines:
            yield f"{line}\n"

    def rows():
        reader = csv.reader(lines(), delimiter=delimiter)
        try:
            yield 1 + skipped, [_plain(name) for name in next(reader)], header
            for fields in reader:
                if fields:
                    yield reader.line_num + skipped, fields, delimiter.join(fields)
        except csv.Error as error:
            where = f"{path}, line {reader.line_num + skipped}"
            raise UserError(f"{where}: expected a CSV row. {in_one_line(error, 100)}") from error

    return delimiter, rows()


def _require_fields(path, number, fields, names, line):
    if len(fields) != len(names):
        raise bad_line(path, number, f"{len(names)} fields, as in the header", line)


# === Columns ===


def _find_columns(names):
    """The place of the column of each kind, `{kind: place}`."""
    columns = {}
    for kind, known_names in NAMES.items():
        for name in known_names:
            if name in names:
                columns[kind] = names.index(name)
                break
    return columns


def _require_columns(path, names, columns):
    """Refuses a table without texts, or whose conversations cannot be told apart."""
    for kinds in (["text"], ["conversation", "time"]):
        if not any(kind in columns for kind in kinds):
            known = " or ".join(name for kind in kinds for name in NAMES[kind])
            received = in_one_line(names, 100)
            raise UserError(f"{path}, line 1: expected a column {known}. Received: {received}")


def _describe(path, names, columns, delimiter, report):
    used = [names[place] for place in sorted(columns.values())]
    unused = [name for name in names if name not in used]
    form = f"a table separated by {DELIMITERS[delimiter]}; columns used: {', '.join(used)}"
    if unused:
        form += f"; not used: {', '.join(unused)}"
    report.add_file(path, form)


# === Order ===


def _group(path, rows, columns, report):
    """The rows of each conversation, ordered by time where there is one that can be read."""
    times = {row.number: _parse_time(row.time) for row in rows}
    has_times = "time" in columns and rows and None not in times.values()
    groups = {}
    for row in rows:
        groups.setdefault(row.conversation, []).append(row)
    if not has_times:
        if "time" in columns:
            shown = rows[0].time if rows else ""
            falls = "; its values fall" if _falls(groups.values()) else ""
            report.note(
                f"{path}: the times, such as {shown!r:.40}, cannot be read{falls}, so the "
                "messages stay in the order of the file"
            )
        if "conversation" not in columns:
            expected = f"expected a column {' or '.join(NAMES['conversation'])}, or times"
            raise UserError(f"{path}: {expected}. Received: neither")
        return list(groups.values())

    ordered_groups = []
    moved = 0
    for group in groups.values():
        ordered = sorted(group, key=lambda row: times[row.number])
        moved += ordered != group
        ordered_groups.append(ordered)
    if moved:
        report.note(f"{path}: the messages of {moved:,} conversations were put in order of time")
    if "conversation" in columns:
        return ordered_groups
    report.note(f"{path}: no column of conversations, so a pause of three hours ends one")
    return _cut_at_pauses(ordered_groups, times)


def _cut_at_pauses(groups, times):
    cut_groups = []
    for group in groups:
        last_time = None
        for row in group:
            time = times[row.number]
            if last_time is None or time - last_time > PAUSE:
                cut_groups.append([])
            cut_groups[-1].append(row)
            last_time = time
    return cut_groups


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


def _falls(groups):
    """Whether times that cannot be read fall, as texts, in most conversations."""
    falling = sum(group[0].time > group[-1].time for group in groups)
    rising = sum(group[0].time < group[-1].time for group in groups)
    return falling > rising
