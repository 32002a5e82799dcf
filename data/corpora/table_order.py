"""The messages of a table as conversations, in the order of their times."""

import datetime
import itertools
import pathlib
import re
from typing import NamedTuple

from colloquy.base.files import UserError
from colloquy.data.report import Report

PAUSE = datetime.timedelta(hours=3)
"""Without names of conversations, one begins after this time without a message."""
READABLE = "such as 2021-05-12 14:02, 12.05.2021 14:02 or seconds since 1970"
TIME_FORMATS = (
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%y %H:%M",
    "%d.%m.%Y",
    "%Y/%m/%d %H:%M",
)


class TableMessage(NamedTuple):
    """A message of a table."""

    conversation: str
    """The name of its conversation; empty for all messages if the table has no such names."""
    sender: str
    text: str
    written_time: str
    time: datetime.datetime | None
    """What `parse_time` reads in `written_time`."""


def group_conversations(
    path: pathlib.Path,
    messages: list[TableMessage],
    column_names: list[str],
    report: Report,
) -> list[list[TableMessage]]:
    """The messages of each conversation, ordered by their times where all of these can be read.

    Args:
        column_names: Names of a column of conversations, for an error.

    Raises:
        UserError: Without names of conversations, a time cannot be read.
    """
    messages_by_name: dict[str, list[TableMessage]] = {}
    for message in messages:
        messages_by_name.setdefault(message.conversation, []).append(message)
    conversations = list(messages_by_name.values())
    has_names = "" not in messages_by_name

    unread = [message.written_time or "(empty)" for message in messages if message.time is None]
    if unread:
        if not has_names:
            expected = f"expected a column {' or '.join(column_names)}, or times {READABLE}"
            raise UserError(f"{path}: {expected}. Received: times such as {unread[0]!r:.40}")
        # A table without any times needs no note.
        if any(message.written_time for message in messages):
            report.note(
                f"{path}: the times, such as {unread[0]!r:.40}, cannot be read, so the messages "
                "stay in the order of the file: the oldest one must be the first. Times are read "
                f"{READABLE}"
            )
        return conversations

    _sort_by_time(path, conversations, report)
    if has_names:
        return conversations
    report.note(f"{path}: no column of conversations, so a pause of three hours ends one")
    return _cut_at_pauses(conversations[0])


def _sort_by_time(path, conversations, report):
    """Sorts the messages of each conversation in place."""
    num_rises = 0
    num_falls = 0
    for messages in conversations:
        for message, next_message in itertools.pairwise(messages):
            num_rises += next_message.time > message.time
            num_falls += next_message.time < message.time
    if num_rises == num_falls == 0:
        report.note(
            f"{path}: the messages of a conversation have the same time, so they stay in the order "
            "of the file: the oldest one must be the first"
        )
        return

    num_moved = 0
    for messages in conversations:
        before = list(messages)
        # Sorting leaves messages of the same time in their order. If the file has the newest
        # message first, this order must be reversed, too.
        if num_falls > num_rises:
            messages.reverse()
        messages.sort(key=lambda message: message.time)
        num_moved += messages != before
    if num_moved:
        report.note(
            f"{path}: the messages of {num_moved:,} conversations were put in order of time"
        )


def _cut_at_pauses(messages):
    conversations = [messages[:1]]
    for message, next_message in itertools.pairwise(messages):
        if next_message.time - message.time > PAUSE:
            conversations.append([])
        conversations[-1].append(next_message)
    return conversations


# === Times ===


def parse_time(text: str) -> datetime.datetime | None:
    """The time that a text names, without its zone; `None`: it cannot be read.

    >>> parse_time("2021-03-01T10:12:00Z") == parse_time("01.03.2021 10:12")
    True
    """
    try:
        return _parse_utc(text)
    except (ValueError, OverflowError):
        pass
    for form in TIME_FORMATS:
        try:
            return datetime.datetime.strptime(text, form)
        except ValueError:
            continue
    return None


def _parse_utc(text):
    """Reads seconds or milliseconds since 1970, or a time of ISO 8601; else a `ValueError`."""
    if re.fullmatch(r"\d{9,13}(?:\.\d+)?", text):
        number = float(text)
        # As seconds, 1e11 is in the year 5138.
        seconds = number / 1000 if number > 1e11 else number
        time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    else:
        time = datetime.datetime.fromisoformat(text)
    if time.tzinfo:
        time = time.astimezone(datetime.UTC).replace(tzinfo=None)
    return time
