"""Conversations of a user and an assistant, as a chat has them, and histories of a dialog model."""

import functools
import itertools

from colloquy.tasks.dialog.reader import check_facts


def make_history(said, domain):
    """Makes the history of a conversation.

    Each line of the bot is a response. Between two responses in a row come the facts that the first
    one finds, and a silent user.

    Args:
        said: `(speaker, text)` of each turn; a speaker is `user` or `bot`.
        domain: The `tasks.dialog.domain.Domain` that is searched.

    Returns:
        A list of `{"speaker", "text"}`.

    Raises:
        UserError: It has too many facts.
    """
    lines = []
    for speaker, text in said:
        texts = text.splitlines() if speaker == "bot" else [text]
        lines += [(speaker, line) for line in texts]

    history = []
    num_facts = 0
    search = functools.cache(domain.search)  # a conversation may repeat a call
    for (speaker, text), (next_speaker, _) in itertools.pairwise([*lines, ("user", "")]):
        history.append({"speaker": speaker, "text": text})
        if speaker == next_speaker == "bot":
            facts = search(text)
            num_facts += len(facts)
            check_facts(num_facts)
            history += [{"speaker": "fact", "text": fact} for fact in facts]
            history.append({"speaker": "user", "text": ""})
    return history


def join_responses(said):
    """The text of the bot's responses, a line each, among sentences `{"speaker", "text"}`."""
    responses = [sentence["text"] for sentence in said if sentence["speaker"] == "bot"]
    return "\n".join(responses)
