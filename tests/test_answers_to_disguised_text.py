"""Every task reads what a text looks like: how it was typed or copied changes no answer."""

import random
import unicodedata

import pytest
from helpers import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from test_answers_agree import assert_close

from colloquy.data.normalization import normalize
from colloquy.engine.run import Run
from colloquy.tasks import TASKS

INVISIBLE = "\u00ad\u200b\u200e\u202a\u202c\u2060\ufe0f\ufeff"
"""Soft hyphen, zero-width space, marks of direction, word joiner, variation selector, byte order
mark.
"""
OFFSETS = ("start", "end", "window_start", "window_end")
FULL_WIDTH = 0xFEE0
"""Distance of a full-width form from the ASCII character."""


def disguise(text, rng):
    """Writes a text with invisible characters, in full width, or with separate accents."""
    parts = []
    for character in unicodedata.normalize(rng.choice(["NFC", "NFD"]), text):
        if character.isalnum() and character.isascii() and rng.random() < 0.1:
            character = chr(ord(character) + FULL_WIDTH)
        if rng.random() < 0.1:
            parts.append(rng.choice(INVISIBLE))
        parts.append(character)
    return "".join(parts)


def disguise_instance(instance, rng):
    """Disguises what a user writes; a bot's own sentences stay as it said them."""
    disguised = dict(instance)
    for field in ("passage", "question"):
        if field in instance:
            disguised[field] = disguise(instance[field], rng)
    if "history" in instance:
        disguised["history"] = []
        for sentence in instance["history"]:
            text = sentence["text"]
            if sentence["speaker"] == "user":
                text = disguise(text, rng)
            disguised["history"].append({**sentence, "text": text})
    else:
        for field in ("turns", "candidates"):
            if field in instance:
                disguised[field] = [disguise(text, rng) for text in instance[field]]
    return disguised


def as_seen(value):
    """An answer with its texts as they look, and without their offsets in what was sent."""
    if isinstance(value, dict):
        return {name: as_seen(item) for name, item in value.items() if name not in OFFSETS}
    if isinstance(value, list):
        return [as_seen(item) for item in value]
    return normalize(value) if isinstance(value, str) else value


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "dam-ubuntu-irc",
        "bidaf-squad",
        "chat-dailydialog",
        "chat-xdailydialog",
        "entity-memma-task5",
    ],
)
def test_disguised_text_gets_the_same_answer(name):
    run = Run.open(ROOT / "pretrained" / name)
    predictor = TASKS[run.task].predictor(run)
    instances = [example["instance"] for example in run.examples()]
    if name == "bidaf-squad":
        passage = "Zoë, who was born in Zürich, opened the café Über in naïve Malmö."
        instances.append({"passage": passage, "question": "Where was Zoë born?"})
    expected = predictor.predict(instances)

    @settings(max_examples=15)
    @given(st.integers(0, 2**32))
    def check(seed):
        rng = random.Random(seed)
        disguised = [disguise_instance(instance, rng) for instance in instances]
        assert disguised != instances
        assert_close(as_seen(predictor.predict(disguised)), as_seen(expected))

    check()
