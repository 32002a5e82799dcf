"""What simulated conversations are made of: turns that know what they say.

A turn keeps what later tasks need: the slots given, the knowledge used, and two sets of *claims*
that tell whether it answers a context. `about` is what the turn claims; `fits` is everything that
would have been right to claim in its place. A turn is wrong in the place of another if it claims
anything that does not fit there. The claims:

    ("say", slot, value)     takes up what the user has just said or asked for
    ("state", slot, value)   builds on anything said before
    ("ask", slot or topic)   asks for it          ("give", slot)    answers that question
    ("tell", relation, name) states a fact        ("point", name)   singles out a restaurant
    ("scene", scene)         is small talk of it  ("self", key)     is the bot's on itself
"""

import dataclasses

from data.samples.world import Fact, Restaurant


@dataclasses.dataclass(frozen=True)
class Turn:
    """What a speaker says at once; see the head of the module for claims."""

    speaker: str
    """`user` or `bot`."""
    act: str
    """What kind of turn it is, as `give`, `note`, `offer`, `tell`, `chat`."""
    text: str
    about: frozenset = frozenset()
    """The claims it makes."""
    fits: frozenset = frozenset()
    """The claims that are right here; empty where the context leaves open what comes next."""
    slots: tuple[tuple[str, str], ...] = ()
    """Pairs of a slot and the value given here."""
    facts: tuple[Fact, ...] = ()
    """The knowledge used."""
    misreadings: tuple["Turn", ...] = ()
    """What would be said here by someone who has heard every word and misread the conversation: each claims something
    that does not fit. Only where the context decides."""

    def with_misreadings(self, said):
        """The turn with those of the pairs of a text and its claims that misread the context."""
        wrong = {text: Turn(self.speaker, self.act, text, about) for text, about in said if about - self.fits}
        wrong.pop(self.text, None)
        return dataclasses.replace(self, misreadings=tuple(wrong.values()) if self.fits else ())


@dataclasses.dataclass(frozen=True)
class Conversation:
    """Turns of user and bot in alternation."""

    turns: tuple[Turn, ...]
    slots: tuple[tuple[str, str], ...]
    """The slots given and their values at the end."""
    restaurants: tuple[Restaurant, ...]
    """The restaurant settled on, or those offered."""
