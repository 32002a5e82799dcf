"""Messages of senders as turns of conversations."""

import pathlib
from collections.abc import Iterable

from colloquy.base.files import UserError, in_one_line
from colloquy.data.report import Report, shorten

Conversations = list[list[str]]
"""The turns of each conversation."""


def join_messages(messages: Iterable[tuple[object, str]]) -> list[str]:
    """Returns the turns of a conversation, given the sender and the text of each message.

    Consecutive messages of one sender are one turn.

    >>> join_messages([("Ann", "Hi!"), ("Ann", " all  well?"), ("Bob", ""), ("Bob", "Yes.")])
    ['Hi! all well?', 'Yes.']
    """
    words_of_turns: list[list[str]] = []
    last_sender: object = None
    for sender, text in messages:
        words = text.split()
        if not words:
            continue
        if not words_of_turns or sender != last_sender:
            words_of_turns.append([])
        words_of_turns[-1] += words
        last_sender = sender
    return [" ".join(words) for words in words_of_turns]


def keep_exchanges(
    path: pathlib.Path, conversations: Conversations, report: Report
) -> Conversations:
    """Leaves out conversations without a reply; a file that has no others is a `UserError`."""
    exchanges = [turns for turns in conversations if len(turns) >= 2]
    if not exchanges:
        received = f"{len(conversations):,} of one turn or none"
        if report.senders:
            received += f"; senders: {in_one_line(shorten(sorted(report.senders)), 200)}"
        if report.left_out:
            received += f"; left out: {report.reasons()}"
        expected = "expected conversations of at least two turns, of several senders"
        raise UserError(f"{path}: {expected}. Received: {received}")
    report.leave_out("conversations without a reply", len(conversations) - len(exchanges))
    return exchanges
