"""The sentences of the simulated corpora: the text files of `templates/`, written for this project.

A file has sections of keys, each with the options to say it. An indented line continues the
previous one:

    [asks]
    town: Which town should I look in? / In which town would you like to eat? /
        What part of the county suits you?

`-` is the option to say nothing. Options are templates: `{value}` is the value of the slot in
question, other braces name a slot or a field of the restaurant.
"""

import pathlib

TEMPLATES = pathlib.Path(__file__).parent / "templates"


def read_phrases(file):
    """Reads a file of phrases: `{section: {key: tuple of options}}`."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace():
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line.rstrip())

    sections = {}
    for line in lines:
        if line.startswith("["):
            section = line.strip("[]")
            sections[section] = {}
        else:
            key, options = line.split(": ", 1)
            sections[section][key] = split_options(options)
    return sections


def split_options(text):
    """Splits the options of a key.

    >>> split_options("Hi! / Hello. / -")
    ('Hi!', 'Hello.', '')
    """
    options = text.split(" / ")
    return tuple("" if option == "-" else option for option in options)


def single_options(section):
    """The section as `{key: option}`; each of its keys has one option."""
    return {key: option for key, (option,) in section.items()}


WORLD = read_phrases(TEMPLATES / "world.txt")
SLOTS = read_phrases(TEMPLATES / "slots.txt")
RESTAURANTS = read_phrases(TEMPLATES / "restaurants.txt")
USER = RESTAURANTS["user"]
BOT = RESTAURANTS["bot"]

VALUES = WORLD["values"]
"""Slot -> values that a user may ask for."""
CRAVINGS = single_options(WORLD["cravings"])
"""Cuisine -> the food, where that is another word."""
PRICE_HINTS = single_options(WORLD["price hints"])
"""Price -> the price in other words."""
SEARCH_PHRASES = single_options(SLOTS["want"])
"""Slot -> how the sentence that opens a conversation mentions it, see `describe_search`."""
ORDINAL_PICKS = USER["first picks"], USER["second picks"]


def fill(template, value=None, **fields):
    """Fills a template with the value of a slot, or with slots and a restaurant's fields.

    >>> fill("{craving} in {town}, and {hint}", cuisine="noodle", town="Ferrow", price="cheap")
    'noodles in Ferrow, and the bill will be small'
    """
    cuisine = fields.get("cuisine", value)
    return template.format(
        value=value,
        craving=CRAVINGS.get(cuisine, cuisine),
        hint=PRICE_HINTS.get(fields.get("price")),
        **fields,
    )


def describe_search(slots):
    """Describes the restaurant that a user looks for, by the values of slots.

    >>> describe_search({"town": "Ferrow", "price": "cheap", "people": "two"})
    'a cheap place in Ferrow for two'
    """
    words = {}
    for slot, template in SEARCH_PHRASES.items():
        if slot in slots:
            words[slot] = " " + fill(template, slots[slot])
    qualities = words.pop("price", "") + words.pop("cuisine", "")
    if not qualities:
        qualities = " nice"
    return f"a{qualities} place" + "".join(words.values())
