"""Tables of messages, for `data.corpora.conversations`: a header, then a message per row.

    conversation,time,sender,text

Or a row has a pair, which is a conversation of two turns:

    question,answer

Columns are separated by commas, semicolons, tabs or bars, and known by the names that exports have.
A column of times, or one of dates and one of times, orders the messages of a conversation.
"""

import pathlib
import re

from colloquy.base.files import UserError, in_one_line
from colloquy.data.corpora.messages import Conversations, join_messages, keep_exchanges
from colloquy.data.corpora.table_order import TableMessage, group_conversations, parse_time
from colloquy.data.corpora.table_rows import (
    DELIMITERS,
    SEPARATOR_LINE,
    find_delimiter,
    read_rows,
)
from colloquy.data.report import Report

NAMES = {
    "conversation": (
        "conversation conversation_id dialog dialog_id dialogue dialogue_id chat chat_id session "
        "session_id thread thread_id channel"
    ).split(),
    "sender": (
        "sender speaker author role from user username user_name sender_name author_name from_name "
        "name"
    ).split(),
    "text": "text message utterance content body message_text".split(),
    "time": "timestamp datetime created created_at sent_at date time".split(),
    "time of day": ["time"],
    "question": ["question"],
    "answer": ["answer"],
}
"""Kind of column -> its names. If a table has several of them, the first one here is used."""
PAIR = {"question", "answer"}


def is_table(line: str) -> bool:
    """Whether a first line names columns of a table, separated by one of `DELIMITERS`."""
    if SEPARATOR_LINE.fullmatch(line.strip()):
        return True
    names = line.split(find_delimiter(line))
    columns = _find_columns([_plain(name) for name in names])
    has_messages = "text" in columns and {"conversation", "time", "sender"} & columns.keys()
    return bool(has_messages) or PAIR <= columns.keys()


def read_table(path: pathlib.Path, report: Report) -> Conversations:
    """Reads the conversations of a table."""
    table = read_rows(path)
    names = [_plain(name) for name in table.names]
    columns = _find_columns(names)
    has_pairs = PAIR <= columns.keys() and "text" not in columns
    if has_pairs:
        columns = {"question": columns["question"], "answer": columns["answer"]}
    _report_columns(path, DELIMITERS[table.delimiter], names, columns, report)
    if has_pairs:
        conversations = _read_pairs(table.rows, columns)
    else:
        _require_columns(f"{path}, line {table.header_line}", names, columns)
        conversations = _read_messages(path, table.rows, columns, report)
    return keep_exchanges(path, conversations, report)


# === Columns ===


def _plain(name):
    """The name of a column in lower case, with underscores, without quotes."""
    return re.sub(r"[\s-]+", "_", name.strip().strip('"').strip().lower())


def _find_columns(names):
    """The index of the column of each kind, `{kind: index}`."""
    columns = {}
    for kind, known_names in NAMES.items():
        for name in known_names:
            if name in names:
                columns[kind] = names.index(name)
                break
    # A time of day completes a date. Without a date, the column `time` is the whole time.
    if "time" in columns and names[columns["time"]] != "date":
        columns.pop("time of day", None)
    return columns


def _report_columns(path, delimiters, names, columns, report):
    used = []
    unused = []
    for index, name in enumerate(names):
        if index in columns.values():
            used.append(name)
        else:
            unused.append(name or "a column without a name")
    form = f"a table separated by {delimiters}; columns used: {', '.join(used)}"
    report.add_file(path, form, unused)


def _require_columns(where, names, columns):
    """Refuses a table without texts, or whose conversations cannot be told apart."""
    for kinds in (["text"], ["conversation", "time"]):
        if not any(kind in columns for kind in kinds):
            known = " or ".join(name for kind in kinds for name in NAMES[kind])
            received = in_one_line(names, 100)
            raise UserError(f"{where}: expected a column {known}. Received: {received}")


# === Rows ===


def _read_pairs(rows, columns):
    conversations = []
    for values in rows:
        question = values[columns["question"]]
        answer = values[columns["answer"]]
        conversations.append(join_messages([("question", question), ("answer", answer)]))
    return conversations


def _read_messages(path, rows, columns, report):
    messages = [_message(number, values, columns) for number, values in enumerate(rows)]
    _report_senders(path, messages, columns, report)
    messages = _complete_messages(messages, report)
    conversations = []
    for conversation in group_conversations(path, messages, NAMES["conversation"], report):
        texts = [(message.sender, message.text) for message in conversation]
        conversations.append(join_messages(texts))
    return conversations


def _message(number, values, columns):
    cells = {kind: values[index].strip() for kind, index in columns.items()}
    written_time = f"{cells.get('time', '')} {cells.get('time of day', '')}".strip()
    return TableMessage(
        conversation=cells.get("conversation", ""),
        # Without a column of senders, each row is a turn: it gets a sender of its own.
        sender=cells.get("sender", str(number)),
        text=cells["text"],
        written_time=written_time,
        time=parse_time(written_time),
    )


def _report_senders(path, messages, columns, report):
    if "sender" not in columns:
        shown = ", ".join(NAMES["sender"][:4])
        report.note(f"{path}: no column of senders ({shown}, ...), so each row is a turn")
        return
    report.senders.update(message.sender for message in messages)
    without_sender = sum(not message.sender for message in messages)
    if without_sender:
        report.note(
            f"{path}: {without_sender:,} messages have no sender; they were read as those of one "
            "more sender"
        )


def _complete_messages(messages, report):
    """The messages with a text, and with a conversation if others have one."""
    with_text = [message for message in messages if message.text]
    report.leave_out("messages without text", len(messages) - len(with_text))
    with_conversation = [message for message in with_text if message.conversation]
    if not with_conversation:
        return with_text
    without_conversation = len(with_text) - len(with_conversation)
    report.leave_out("messages without a conversation's name", without_conversation)
    return with_conversation
