"""The sentences of the simulated conversations, see `phrases`."""

import pathlib
import string

from colloquy.data.samples.phrases import (
    BOT,
    CRAVINGS,
    ORDINAL_PICKS,
    PRICE_HINTS,
    RESTAURANTS,
    SEARCH_PHRASES,
    SLOTS,
    USER,
    VALUES,
    WORLD,
    fill,
    read_phrases,
)
from colloquy.data.samples.phrases import describe_search as wanted

__all__ = [
    "BOT",
    "CRAVINGS",
    "ORDINAL_PICKS",
    "PRICE_HINTS",
    "RESTAURANTS",
    "SLOTS",
    "USER",
    "VALUES",
    "WORLD",
    "fill",
    "wanted",
]

TEXTS = pathlib.Path(__file__).parent / "texts"
PERSONA = read_phrases(TEXTS / "persona.txt")
TALK = read_phrases(TEXTS / "small_talk.txt")
TOPICS = {name: section for name, section in TALK.items() if " " not in name}
"""Topic -> its `questions`, and `kin`, the topics whose scenes could be answers, too."""
SCENES = {
    t: {name.split()[1]: s for name, s in TALK.items() if name.startswith(f"{t} ")} for t in TOPICS
}
"""Topic -> scene -> what the user `says`, `replies` and `partings` of the bot."""
WANT = {slot: f" {text}" for slot, text in SEARCH_PHRASES.items()}
# slots that a template builds on by other words
IMPLIED = {"craving": "cuisine", "dish": "cuisine", "hint": "price"}


def slots_of(template):
    """The slots and fields that a template names or implies."""
    fields = {field for _, field, *_ in string.Formatter().parse(template) if field}
    return {IMPLIED.get(field, field) for field in fields}


def sentences(*parts):
    """Joins the sentences that are not empty, each with a capital letter."""
    return " ".join(part[0].upper() + part[1:] for part in parts if part)
