"""Exports of WhatsApp, for `data.corpora.conversations`.

    12/05/2021, 14:02 - ANN: TEXT          Android
    [12.05.21, 14:02:33] ANN: TEXT         iOS

Notes of the program are no turns. They are found by their structure, whatever their language: see
`_is_note` and `_repeated_notes`.
"""

import collections
import pathlib
import re
import string
from typing import NamedTuple

from colloquy.data.corpora.messages import Conversations, join_messages, keep_exchanges
from colloquy.data.report import Report, shorten
from colloquy.data.text_files import read_lines

PAUSE = 180
"""Minutes without a message after which a new conversation begins; a new day begins one, too."""
DATE = r"(\d{1,4}[./-]\d{1,2}[./-]\d{1,4})"
TIME = r"(\d{1,2})[:.](\d{2})(?:[:.]\d{2})?(?:\s?([ap])\.?\s?m\.?)?"
HEADER = re.compile(rf"[\u200e\u200f]?\[?{DATE},? {TIME}(?:\] ?| - )(.*)", re.IGNORECASE)
MARK = "\u200e"
"""iOS writes it before a text of its own, such as `image omitted`."""
IN_BRACKETS = re.compile(r"<[^<>]+>|\u2039[^\u2039\u203a]+\u203a")
ENDINGS = "jpe?g|png|gif|webp|mp4|mov|3gp|opus|ogg|m4a|mp3|aac|pdf|vcf|docx?|xlsx?|pptx?|zip"
FILE = re.compile(rf"[^\s/]{{1,100}}\.(?:(?:{ENDINGS})|[A-Za-z0-9]{{2,5}} (\([^()]{{1,100}}\)))")
"""The name of an attached file: `IMG-1.jpg`, or with another ending `a.xyz (file attached)`."""
FILE_WITH_SPACES = re.compile(r"[^/]{1,200}\.[A-Za-z0-9]{2,5} (\([^()]{1,100}\))")
"""It is an attached file if other names of files have the same text in brackets."""
QUOTES = re.compile('["\u201c\u201d\u201e\u00ab\u00bb]')
EDITED = re.compile(rf"(?:{MARK}|\s)<[^<>:/@]+>$")
"""`<This message was edited>`, in any language. People end messages with `<https://...>`, too."""
LONGEST_NAME = 100
"""Characters of a sender's name that is looked for at the beginning of a text."""
REPEATS = 3
"""Times that a note of several messages occurs at least, and different messages of a person."""
NOTE_WORDS = 8
"""Words of such a note at most."""


class _Message(NamedTuple):
    """A message of an export."""

    date: str
    minute: int
    """Minute of the day."""
    sender: str
    """Empty: a note of the program."""
    text: str


def is_whatsapp(line: str) -> bool:
    """True if a line begins a message of an export of WhatsApp."""
    return HEADER.match(line) is not None


def read_whatsapp(path: pathlib.Path, report: Report) -> Conversations:
    """Reads the export of a chat, which is cut into conversations by days and pauses."""
    report.add_file(path, "an export of WhatsApp, cut into conversations by days and pauses")
    messages = _read_messages(path)
    file_marks = _find_file_marks(messages)
    spoken = [message for message in messages if not _is_note(message, file_marks)]
    note_senders = _find_note_senders(spoken)
    kept = [message for message in spoken if message.sender not in note_senders]
    repeated_notes = _repeated_notes(kept)
    kept = [message for message in kept if message.text not in repeated_notes]
    report.leave_out("notes of the chat program", len(messages) - len(kept))
    reasons = {"since they repeat": repeated_notes, "not for senders": sorted(note_senders)}
    for reason, notes in reasons.items():
        if notes:
            shown = shorten(f'"{note}"' for note in notes)
            report.note(f"taken for notes of the chat program, {reason}: {shown}")
    report.senders.update(message.sender for message in kept)

    messages_by_conversation: list[list[tuple[str, str]]] = []
    last = None
    for message in kept:
        if not last or message.date != last.date or message.minute - last.minute > PAUSE:
            messages_by_conversation.append([])
        text = EDITED.sub("", message.text).replace(MARK, "")
        messages_by_conversation[-1].append((message.sender, text))
        last = message
    conversations = [join_messages(messages) for messages in messages_by_conversation]
    return keep_exchanges(path, conversations, report)


def _is_note(message, file_marks):
    """Whether a message is a note by its form alone.

    It has no sender; it is empty, marked, in brackets, or the name of a file; or its sender is
    none, since the text before the colon has a quotation mark, as in
    `Ann changed the subject to "Trip: Rome"`.
    """
    text = message.text
    if not message.sender or QUOTES.search(message.sender):
        return True
    if not text or text.startswith(MARK) or IN_BRACKETS.fullmatch(text) or FILE.fullmatch(text):
        return True
    match = FILE_WITH_SPACES.fullmatch(text)
    return match is not None and match[1] in file_marks


def _find_file_marks(messages):
    """The texts in brackets after names of files, such as `(file attached)`."""
    marks = set()
    for message in messages:
        match = FILE.fullmatch(message.text)
        if match is not None:
            marks.add(match[1])
    return marks


def _repeated_notes(messages):
    """Short texts that repeat letter by letter, with a word that people never use.

    People write `ok` in longer messages, too; `Photo omitted` has words that no other message has.
    The most frequent one is the first.
    """
    counts = collections.Counter(message.text for message in messages)
    people_words = set()
    for text, count in counts.items():
        if count < REPEATS:
            people_words.update(_words(text))
    notes = []
    for text, count in counts.most_common():
        words = _words(text)
        is_short = len(words) <= NOTE_WORDS
        if count >= REPEATS and is_short and not people_words.issuperset(words):
            notes.append(text)
    return notes


def _words(text):
    """The words in lower case, without punctuation at their ends: `thanks` of `Thanks!`."""
    return [word.strip(string.punctuation) for word in text.lower().split()]


def _find_note_senders(messages):
    """Finds senders that are notes.

    The messages of the name of a group all begin with the name of a sender. The text before the
    colon of `Ann created group: Trip` is the name of a sender and words that are no name; people
    with such a name, as `Ann de Boer`, say different things.
    """
    texts_by_sender = collections.defaultdict(list)
    for message in messages:
        texts_by_sender[message.sender].append(message.text)
    note_senders = set()
    for sender, texts in texts_by_sender.items():
        is_group = all(_begins_with_other(text, sender, texts_by_sender) for text in texts)
        is_longer = _begins_with_other(sender, sender, texts_by_sender)
        has_other_words = is_longer and any(map(str.islower, sender.split()))
        if is_group or (has_other_words and len(set(texts)) < REPEATS):
            note_senders.add(sender)
    return note_senders


def _begins_with_other(text, sender, senders):
    """True if a text begins with the name of another sender and a space."""
    end = text.find(" ")
    while 0 <= end <= LONGEST_NAME:
        name = text[:end]
        if name != sender and name in senders:
            return True
        end = text.find(" ", end + 1)
    return False


def _read_messages(path):
    """The messages; a line without date and time continues the message before it."""
    headers = []
    lines_below = []
    for _, line in read_lines(path, "conversations"):
        match = HEADER.match(line)
        if match is not None:
            headers.append(match)
            lines_below.append([])
        elif headers:
            lines_below[-1].append(line)
    return [_message(*parts) for parts in zip(headers, lines_below, strict=True)]


def _message(header, more_lines):
    date, hour, minute, half, content = header.groups()
    sender, colon, text = content.partition(": ")
    if not colon:
        sender = ""
    hour = int(hour)
    # A clock with twelve hours
    if half:
        hour = hour % 12 + (12 if half in "pP" else 0)
    # The name of a file is a note, and a caption below it is not.
    if more_lines and FILE.fullmatch(text):
        text = ""
    text = " ".join([text, *more_lines]).strip()
    minute_of_day = 60 * hour + int(minute)
    return _Message(date, minute_of_day, sender.strip(f"{MARK} "), text)
