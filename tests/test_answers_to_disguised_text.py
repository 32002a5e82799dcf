"""Every task reads what a text looks like: how it was typed or copied changes no answer."""

import unicodedata

import pytest
from helpers import ROOT
from test_answers_agree import assert_close

from colloquy.data.normalization import normalize
from colloquy.engine.run import Run
from colloquy.tasks import TASKS

FULL_WIDTH = {code: code + 0xFEE0 for code in map(ord, "aeinrst0123456789")}
DISGUISES = {
    "soft hyphens and joiners": lambda text: "\u00ad\u2060".join(text),
    "marks of direction": lambda text: f"\ufeff\u202a{text}\u202c\u200e\ufe0f",
    "separate accents": lambda text: unicodedata.normalize("NFD", text),
    "full width": lambda text: text.translate(FULL_WIDTH),
}
OFFSETS = ("start", "end", "window_start", "window_end")


def disguise_instance(instance, disguise):
    """Disguises what a user writes; a bot's own sentences stay as it said them."""
    disguised = dict(instance)
    for field, value in instance.items():
        if field == "history":
            disguised[field] = []
            for sentence in value:
                is_of_user = sentence["speaker"] == "user"
                text = disguise(sentence["text"]) if is_of_user else sentence["text"]
                disguised[field].append({**sentence, "text": text})
        elif field in ("turns", "candidates"):
            disguised[field] = [disguise(text) for text in value]
        elif field in ("passage", "question"):
            disguised[field] = disguise(value)
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
    expected = as_seen(predictor.predict(instances))
    for disguise in DISGUISES.values():
        disguised = [disguise_instance(instance, disguise) for instance in instances]
        assert_close(as_seen(predictor.predict(disguised)), expected)
