"""What a dialog model takes and returns: a conversation, and the bot's answer to it."""

from typing import Annotated, Literal

from pydantic import Field

from colloquy.base.config import Config
from colloquy.data.corpora.babi_dialog import SILENCE, Turn
from colloquy.tasks.dialog.talk import Candidate

NO_RESPONSE_FITS = "none of its responses may follow here"


class Sentence(Config):
    """One sentence of a conversation."""

    speaker: Literal["user", "bot", "fact"]
    """`fact`: found by a search."""
    text: str
    """Empty: silence, after which the bot continues."""


class Instance(Config):
    """A conversation: what was said, and no more.

    A page steps through a dialog of the benchmark by sending its sentences up to each one of
    the user. It edits a sentence by sending another text in its place.
    """

    history: Annotated[list[Sentence], Field(min_length=1)]
    """The conversation, the oldest sentence first. If the last one is not the user's, the user
    is silent.
    """


class Answer(Config):
    """The bot's response, and what it was chosen from."""

    response: str
    """The best candidate. Where none fits, a remark of `tasks.dialog.remarks`: it names the
    words that users of the training dialogs never say, or says that nothing was found. To
    somebody who writes of hurting themselves, the reply of `engine.helplines`.
    """
    best: list[Candidate]
    """The five best candidates that are allowed, with their probabilities; empty where the
    response is a remark or names helplines.
    """
    facts: list[str]
    """Facts of the knowledge base that the response finds, if it is an `api_call`: `subject
    R_relation value` each.
    """
    unknown: list[str]
    """The user's last words that users of the training dialogs never say."""
    said: list[Sentence]
    """The response, and what follows until the bot waits for the user: facts, silences, further
    responses. They belong to the history of the next request.
    """
    read: list[Sentence]
    """The conversation as the model read it, with the opening of the training dialogs.
    `:explain` adds how much each of these sentences but the last was remembered: the `rows` of
    its attention.
    """
    good: bool = True
    """False if no response fits, so that the bot ends with a remark; otherwise left out."""
    reason: str = ""
    """Why no response fits; otherwise left out."""


def make_answer(steps):
    """Makes the `Answer` of one or more `tasks.dialog.talk.Step`s.

    It describes the first response. Those that the bot adds by itself are in `said` only.
    """
    first = steps[0]
    last = steps[-1]
    # What the last step read begins with what the first one read.
    conversation = [*last.read.turns, Turn("bot", last.response)]
    num_read = len(first.read.turns)
    judgement = {}
    if not last.best:
        reason = NO_RESPONSE_FITS
        if last.read.unknown:
            reason = f"users of the training dialogs never say {', '.join(last.read.unknown)}"
        judgement = {"good": False, "reason": reason}
    return Answer(
        response=first.response,
        best=first.best,
        facts=first.facts,
        unknown=first.read.unknown,
        said=as_sentences(conversation[num_read:]),
        read=as_sentences(first.read.turns),
        **judgement,
    )


def as_sentences(turns):
    """Makes `Sentence`s of `Turn`s."""
    sentences = []
    for speaker, text in turns:
        is_silence = speaker == "user" and text == SILENCE
        sentences.append(Sentence(speaker=speaker, text="" if is_silence else text))
    return sentences
