"""The sentences of the simulated conversations: the text files of `texts/`, every line written for
this project.

A file has sections of keys with the options to say them; an indented line continues the previous
one:

    [asks]
    town: Which town should I look in? / In which town would you like to eat? /
        What part of the county suits you?

`-` is the option to say nothing. Options are templates: `{value}` is the value of the slot in
question, other braces name a slot or a field of the restaurant.
"""

import pathlib
import re
import string

TEXTS = pathlib.Path(__file__).parent / "texts"


def read(name):
    """Reads `texts/NAME.txt`: section -> key -> tuple of options."""
    text = re.sub(r"#.*\n", "", (TEXTS / f"{name}.txt").read_text(encoding="utf-8"))
    sections = {}
    for line in re.sub(
        r"\n\s+(?=\S)", lambda gap: " " if gap[0].endswith(" ") else "\n", text
    ).splitlines():
        if line.startswith("["):
            section = sections[line.strip("[]")] = {}
        elif line:
            key, options = line.split(": ", 1)
            section[key] = tuple("" if option == "-" else option for option in options.split(" / "))
    return sections


def only(table):
    return {key: option for key, (option,) in table.items()}


WORLD, SLOTS, RESTAURANTS, PERSONA, TALK = map(
    read, ("world", "slots", "restaurants", "persona", "small_talk")
)
TOPICS = {name: section for name, section in TALK.items() if " " not in name}
"""Topic -> its `questions`, and `kin`, the topics whose scenes could be answers, too."""
SCENES = {
    t: {name.split()[1]: s for name, s in TALK.items() if name.startswith(f"{t} ")} for t in TOPICS
}
"""Topic -> scene -> what the user `says`, `replies` and `partings` of the bot."""
USER, BOT = RESTAURANTS["user"], RESTAURANTS["bot"]

VALUES = WORLD["values"]  # slot -> values that a user may ask for
CRAVINGS, PRICE_HINTS = only(WORLD["cravings"]), only(WORLD["price hints"])
WANT = {slot: f" {text}" for slot, text in only(SLOTS["want"]).items()}
"""Slot -> its words within the sentence that opens a conversation, see `wanted`."""
ORDINAL_PICKS = USER["first picks"], USER["second picks"]
# slots that a template builds on by other words
IMPLIED = {"craving": "cuisine", "dish": "cuisine", "hint": "price"}


def slots_of(template):
    """The slots and fields that a template names or implies."""
    fields = {field for _, field, *_ in string.Formatter().parse(template) if field}
    return {IMPLIED.get(field, field) for field in fields}


def fill(template, value=None, **fields):
    """Fills a template with the value of a slot, or with slots and a restaurant's fields.

    >>> fill("{craving} in {town}, and {hint}", cuisine="noodle", town="Ferrow", price="cheap")
    'noodles in Ferrow, and the bill will be small'
    """
    cuisine = fields.get("cuisine", value)
    hint = PRICE_HINTS.get(fields.get("price"))
    return template.format(value=value, craving=CRAVINGS.get(cuisine, cuisine), hint=hint, **fields)


def wanted(given):
    """The place that a user looks for, by the values of slots.

    >>> wanted({"town": "Ferrow", "price": "cheap", "people": "two"})
    'a cheap place in Ferrow for two'
    """
    words = {slot: fill(text, given[slot]) for slot, text in WANT.items() if slot in given}
    what = words.pop("price", "") + words.pop("cuisine", "") or " nice"
    return f"a{what} place" + "".join(words.values())


def sentences(*parts):
    """Joins the sentences that are not empty, each with a capital letter."""
    return " ".join(part[0].upper() + part[1:] for part in parts if part)
