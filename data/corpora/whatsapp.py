"""Exports of WhatsApp, for `data.corpora.conversations`.

12/05/2021, 14:02 - ANN: TEXT          Android
[12.05.21, 14:02:33] ANN: TEXT         iOS
"""

import pathlib
import re

from colloquy.data.corpora.messages import Conversations, join_messages, keep_exchanges
from colloquy.data.corpora.whatsapp_notes import MARK, Message, is_file_name, without_notes
from colloquy.data.report import Report
from colloquy.data.text_files import read_lines

PAUSE = 180
"""Minutes without a message after which a new conversation begins; a new day begins one, too."""
DATE = r"(\d{1,4}[./-]\d{1,2}[./-]\d{1,4})"
TIME = r"(\d{1,2})[:.](\d{2})(?:[:.]\d{2})?(?:\s?([ap])\.?\s?m\.?)?"
HEADER = re.compile(rf"[\u200e\u200f]?\[?{DATE},? {TIME}(?:\] ?| - )(.*)", re.IGNORECASE)
EDITED = re.compile(rf"(?:{MARK}|\s)<[^<>:/@]+>$")
"""`<This message was edited>`, in any language. People end messages with `<https://...>`, too."""


def is_whatsapp(line: str) -> bool:
    """True if a line begins a message of an export of WhatsApp."""
    return HEADER.match(line) is not None


def read_whatsapp(path: pathlib.Path, report: Report) -> Conversations:
    """Reads the export of a chat, which is cut into conversations by days and pauses."""
    report.add_file(path, "an export of WhatsApp, cut into conversations by days and pauses")
    messages = without_notes(_read_messages(path), report)
    report.senders.update(message.sender for message in messages)

    conversations = []
    for part in _cut_at_pauses(messages):
        texts = []
        for message in part:
            text = EDITED.sub("", message.text).replace(MARK, "")
            texts.append((message.sender, text))
        conversations.append(join_messages(texts))
    return keep_exchanges(path, conversations, report)


def _read_messages(path):
    """The messages; a line without date and time continues the message before it."""
    lines_of_messages = []
    for _, line in read_lines(path, "conversations"):
        if is_whatsapp(line):
            lines_of_messages.append([line])
        elif lines_of_messages:
            lines_of_messages[-1].append(line)
    return [_parse_message(first_line, more) for first_line, *more in lines_of_messages]


def _parse_message(first_line, more_lines):
    date, hour, minute, half_of_day, content = HEADER.match(first_line).groups()
    hour = int(hour)
    # A clock with twelve hours: 12 am is hour 0, 12 pm is hour 12.
    if half_of_day:
        hour %= 12
        if half_of_day in "pP":
            hour += 12

    sender, colon, text = content.partition(": ")
    if not colon:
        sender = ""
    # A caption stands below the name of its file, which is a note; the caption stays.
    if more_lines and is_file_name(text):
        text = ""
    return Message(
        date=date,
        minute=60 * hour + int(minute),
        sender=sender.strip(f"{MARK} "),
        text=" ".join([text, *more_lines]).strip(),
    )


def _cut_at_pauses(messages):
    parts = []
    last = None
    for message in messages:
        if not last or message.date != last.date or message.minute - last.minute > PAUSE:
            parts.append([])
        parts[-1].append(message)
        last = message
    return parts
