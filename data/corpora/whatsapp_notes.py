"""Finds the notes of WhatsApp among the messages of an export.

A note is a text of the program, which no person wrote: a notice such as `Ann added Bob`, or what
stands for a photo, a file or a deleted message. Notes are found by their structure, because their
words depend on the language of the phone.
"""

import collections
import re
import string
from typing import NamedTuple

from colloquy.data.report import Report, shorten

MARK = "\u200e"
"""iOS writes it before a text of its own, such as `image omitted`."""
QUOTES = re.compile('["\u201c\u201d\u201e\u00ab\u00bb]')
# <Media omitted>, or \u2039Photo\u203a
IN_BRACKETS = re.compile(r"<[^<>]+>|\u2039[^\u2039\u203a]+\u203a")
ENDINGS = "jpe?g|png|gif|webp|mp4|mov|3gp|opus|ogg|m4a|mp3|aac|pdf|vcf|docx?|xlsx?|pptx?|zip"
# IMG-1.jpg
FILE = re.compile(rf"[^\s/]{{1,100}}\.(?:{ENDINGS})")
# a.xyz (file attached)
ENDING_AND_BRACKETS = r"\.[A-Za-z0-9]{2,5} (\([^()]{1,100}\))"
ATTACHED_FILE = re.compile(r"[^\s/]{1,100}" + ENDING_AND_BRACKETS)
# My plan.pdf (file attached)
ATTACHED_FILE_WITH_SPACES = re.compile(r"[^/]{1,200}" + ENDING_AND_BRACKETS)
REPEATS = 3
"""A text that occurs this many times may be a note."""
NOTE_WORDS = 8
"""Most words of such a note."""
DIFFERENT_TEXTS = 3
"""Whoever has this many different texts is a person."""
LONGEST_NAME = 100
"""Characters of a sender's name that is looked for at the beginning of a text."""


class Message(NamedTuple):
    """A message of an export."""

    date: str
    minute: int
    """Minute of the day."""
    sender: str
    """Empty: the message names no sender."""
    text: str


def without_notes(messages: list[Message], report: Report) -> list[Message]:
    """The messages of people; the report counts the others and names those that are uncertain."""
    brackets_of_files = _find_brackets_of_files(messages)
    kept = [message for message in messages if not _is_note(message, brackets_of_files)]
    false_senders = _find_false_senders(kept)
    kept = [message for message in kept if message.sender not in false_senders]
    repeated_notes = _find_repeated_notes(kept)
    kept = [message for message in kept if message.text not in repeated_notes]

    report.leave_out("notes of the chat program", len(messages) - len(kept))
    _report_uncertain("since they repeat", repeated_notes, report)
    _report_uncertain("not for senders", sorted(false_senders), report)
    return kept


def _report_uncertain(reason, notes, report):
    if notes:
        shown = shorten(f'"{note}"' for note in notes)
        report.note(f"taken for notes of the chat program, {reason}: {shown}")


# === Notes by the form of one message ===


def _is_note(message, brackets_of_files):
    # Ann added Bob
    if not message.sender:
        return True
    # Ann changed the subject to "Trip: Rome"; what stands before the colon is no name.
    if QUOTES.search(message.sender):
        return True
    text = message.text
    if not text or text.startswith(MARK) or IN_BRACKETS.fullmatch(text):
        return True
    if is_file_name(text):
        return True
    # A person may write `see chapter 2.10 (page 3)`, so the brackets must be known from a file.
    match = ATTACHED_FILE_WITH_SPACES.fullmatch(text)
    return match is not None and match[1] in brackets_of_files


def is_file_name(text: str) -> bool:
    """Whether a text is the name of a file, such as `IMG-1.jpg` or `a.xyz (file attached)`."""
    return bool(FILE.fullmatch(text) or ATTACHED_FILE.fullmatch(text))


def _find_brackets_of_files(messages):
    """The texts in brackets after names of files without spaces, such as `(file attached)`."""
    brackets = set()
    for message in messages:
        match = ATTACHED_FILE.fullmatch(message.text)
        if match is not None:
            brackets.add(match[1])
    return brackets


# === Notes with a colon, whose beginning was read as a sender ===


def _find_false_senders(messages):
    """Finds senders that are the beginning of a note."""
    texts_by_sender = collections.defaultdict(list)
    for message in messages:
        texts_by_sender[message.sender].append(message.text)
    false_senders = set()
    for sender, texts in texts_by_sender.items():
        if _is_group(sender, texts, texts_by_sender) or _is_notice(sender, texts, texts_by_sender):
            false_senders.add(sender)
    return false_senders


def _is_group(sender, texts, senders):
    """Whether a sender is the name of a group: `Trip` of `Trip: Ann invited Bob`.

    All messages of a group begin with the name of a sender.
    """
    for text in texts:
        names = _beginnings(text)
        if not any(name in senders and name != sender for name in names):
            return False
    return True


def _is_notice(sender, texts, senders):
    """Whether a sender is a name and further words: `Ann created group` of
    `Ann created group: Trip`.

    A person may have such a name, `Ann de Boer`, and then says different things.
    """
    begins_with_name = any(name in senders for name in _beginnings(sender))
    has_lower_word = any(word.islower() for word in sender.split())
    return begins_with_name and has_lower_word and len(set(texts)) < DIFFERENT_TEXTS


def _beginnings(text):
    """The parts of a text that may be a name at its beginning.

    >>> _beginnings("Ann de Boer left")
    ['Ann', 'Ann de', 'Ann de Boer']
    """
    beginning = text[: LONGEST_NAME + 1]
    return [text[:place] for place, character in enumerate(beginning) if character == " "]


# === Notes that repeat ===


def _find_repeated_notes(messages):
    """Finds short texts that repeat letter by letter and have a word of no other message.

    `Photo omitted` repeats, and nobody writes `omitted`. `ok` repeats, too, but people also write
    it in longer messages. The most frequent note is the first.
    """
    counts = collections.Counter(message.text for message in messages)
    words_of_people = set()
    for text, count in counts.items():
        if count < REPEATS:
            words_of_people.update(_words(text))

    notes = []
    for text, count in counts.most_common():
        words = _words(text)
        is_short = len(words) <= NOTE_WORDS
        if count >= REPEATS and is_short and not words_of_people.issuperset(words):
            notes.append(text)
    return notes


def _words(text):
    """The words in lower case, without punctuation at their ends: `thanks` of `Thanks!`."""
    return [word.strip(string.punctuation) for word in text.lower().split()]
