"""Files of chats that other programs write, for `data.corpora.conversations`.

    {"messages": [{"role": "user", "content": TEXT}, ...]}     OpenAI's chats, one per line
    12/05/2021, 14:02 - ANN: TEXT                              WhatsApp, Android
    [12.05.21, 14:02:33] ANN: TEXT                             WhatsApp, iOS
    conversation,text                                          a table, one message per row

Consecutive messages of one sender are one turn. Conversations of fewer than two turns are left out.
"""

import csv
import re
from typing import NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError

from colloquy.base.files import UserError, in_one_line
from colloquy.data.text_files import bad_line, read_lines


def join_messages(messages):
    """Returns the turns of a conversation, given the sender and the text of each message.

    >>> join_messages([("Ann", "Hi!"), ("Ann", " all  well?"), ("Bob", ""), ("Bob", "Yes.")])
    ['Hi! all well?', 'Yes.']
    """
    turns = []
    last_sender = None
    for sender, text in messages:
        words = " ".join(text.split())
        if not words:
            continue
        if turns and sender == last_sender:
            turns[-1] = f"{turns[-1]} {words}"
        else:
            turns.append(words)
        last_sender = sender
    return turns


def _keep_exchanges(path, conversations):
    """Leaves out conversations without a reply; a file must have others."""
    exchanges = [turns for turns in conversations if len(turns) >= 2]
    if not exchanges:
        raise UserError(f"{path}: expected conversations of at least two turns. Received: none")
    return exchanges


# === OpenAI's messages ===

ROLES = ("user", "assistant")
"""The roles that speak; `system`, `developer`, `tool` and `function` do not."""


class _Part(BaseModel):
    type: str
    text: str = ""


class _RoleMessage(BaseModel):
    role: str
    content: str | list[_Part] | None = None

    def text(self):
        if isinstance(self.content, list):
            return " ".join(part.text for part in self.content)
        return self.content or ""


class _Chat(BaseModel):
    messages: list[_RoleMessage]


def read_role_messages(path):
    """Reads lines of OpenAI's chat format, one conversation per line."""
    chat_type = TypeAdapter(_Chat)
    conversations = []
    for number, line in read_lines(path, "conversations"):
        try:
            chat = chat_type.validate_json(line)
        except ValidationError as error:
            expected = '{"messages": [{"role": TEXT, "content": TEXT}, ...]}'
            raise bad_line(path, number, expected, line) from error
        spoken = [message for message in chat.messages if message.role in ROLES]
        messages = [(message.role, message.text()) for message in spoken]
        conversations.append(join_messages(messages))
    return _keep_exchanges(path, conversations)


# === WhatsApp ===

PAUSE = 180
"""Minutes without a message after which a new conversation begins; a new day begins one, too."""
DATE = r"(\d{1,4}[./-]\d{1,2}[./-]\d{1,4})"
TIME = r"(\d{1,2})[:.](\d{2})(?:[:.]\d{2})?(?:\s?([ap])\.?\s?m\.?)?"
HEADER = re.compile(rf"\u200e?\[?{DATE},? {TIME}(?:\] ?| - )(.*)", re.IGNORECASE)
MARK = "\u200e"
"""iOS writes it before a text of its own, such as `image omitted`."""
NO_TEXT = re.compile(r"<[^<>]+>|This message was deleted\.?|You deleted this message\.?")
EDITED = re.compile(f"{MARK}?<[^<>]+>$")


class _ChatMessage(NamedTuple):
    """A message of an export."""

    date: str
    minute: int
    """Minute of the day."""
    sender: str
    """Empty: a note of the program."""
    lines: list
    """Lines of the text."""

    def text(self):
        text = " ".join(self.lines).strip()
        if text.startswith(MARK) or NO_TEXT.fullmatch(text):
            return ""
        return EDITED.sub("", text).replace(MARK, "")


def is_whatsapp(line):
    """True if a line begins a message of an export of WhatsApp."""
    return HEADER.match(line) is not None


def read_whatsapp(path):
    """Reads the export of a chat, which is cut into conversations by days and pauses.

    Notes of the program, left out media and deleted messages are no turns.
    """
    messages_by_conversation = []
    last = None
    for message in _read_chat_messages(path):
        text = message.text()
        if not message.sender or not text:
            continue
        is_same_day = last is not None and message.date == last.date
        if not is_same_day or message.minute - last.minute > PAUSE:
            messages_by_conversation.append([])
        messages_by_conversation[-1].append((message.sender, text))
        last = message
    conversations = [join_messages(messages) for messages in messages_by_conversation]
    return _keep_exchanges(path, conversations)


def _read_chat_messages(path):
    """Yields each message; a line without date and time continues the message before it."""
    message = None
    for _, line in read_lines(path, "conversations"):
        header = HEADER.match(line)
        if header is None:
            if message is not None:
                message.lines.append(line)
            continue
        if message is not None:
            yield message
        date, hour, minute, half, content = header.groups()
        sender, colon, text = content.partition(": ")
        if not colon:
            sender = ""
        minute_of_day = _minute_of_day(int(hour), int(minute), half)
        message = _ChatMessage(date, minute_of_day, sender.strip(f"{MARK} "), [text])
    if message is not None:
        yield message


def _minute_of_day(hour, minute, half):
    """`half` is `a` or `p` of a clock with twelve hours, else `None`."""
    if half is None:
        return 60 * hour + minute
    hour = hour % 12
    if half in "pP":
        hour += 12
    return 60 * hour + minute


# === Tables ===

DELIMITERS = (",", ";", "\t")
CONVERSATION_COLUMNS = (
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
)
TEXT_COLUMNS = ("text", "message", "utterance", "content")
SENDER_COLUMNS = ("sender", "speaker", "author", "role")
"""Names of columns, the first that a table has. Without a sender, each row is a turn."""


def read_table(path):
    """Reads a CSV file: a header, then a message per row, those of a conversation in order."""
    rows = _read_rows(path)
    _, header, _ = next(rows)
    conversation_column = _find_column(path, header, CONVERSATION_COLUMNS)
    text_column = _find_column(path, header, TEXT_COLUMNS)
    sender_column = None
    if any(name in header for name in SENDER_COLUMNS):
        sender_column = _find_column(path, header, SENDER_COLUMNS)

    messages_by_conversation = {}
    for number, row, line in rows:
        if len(row) != len(header):
            raise bad_line(path, number, f"{len(header)} fields, as in the header", line)
        # A row without a sender is a turn of its own.
        sender = number if sender_column is None else row[sender_column]
        messages = messages_by_conversation.setdefault(row[conversation_column], [])
        messages.append((sender, row[text_column]))
    conversations = [join_messages(messages) for messages in messages_by_conversation.values()]
    return _keep_exchanges(path, conversations)


def _read_rows(path):
    """Yields the number of its last line, the fields and the text of each row.

    The fields of the header are in lower case. The delimiter is the most frequent one in it.
    """
    numbered = read_lines(path, "conversations")
    _, first = next(numbered)
    delimiter = max(DELIMITERS, key=first.count)

    def lines():
        yield f"{first}\n"
        for _, line in numbered:
            yield f"{line}\n"

    reader = csv.reader(lines(), delimiter=delimiter)
    try:
        header = [name.strip().lower() for name in next(reader)]
        yield reader.line_num, header, first
        for row in reader:
            if row:
                yield reader.line_num, row, delimiter.join(row)
    except csv.Error as error:
        where = f"{path}, line {reader.line_num}"
        raise UserError(f"{where}: expected a CSV row. {in_one_line(error, 100)}") from error


def _find_column(path, header, names):
    for name in names:
        if name in header:
            return header.index(name)
    expected = f"a column {' or '.join(names)}"
    raise UserError(f"{path}, line 1: expected {expected}. Received: {in_one_line(header, 100)}")
