"""`tasks.dialog.action_mask` against loops, by hand and on dialog bAbI; fifty conversations with
the published bot.
"""

import dataclasses
import itertools
import json
import pathlib
import re
import types

import numpy as np
import pytest
from dialog_models import split_of, track
from helpers import ROOT, ran, refusal, run_process, turns

from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.run import Run
from colloquy.layers.dialog_state import CONDITIONS, FLAGS, READS
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.action_mask import FILE, ActionMask, learn, load_mask, state_model
from colloquy.tasks.dialog.data import load_dataset
from colloquy.tasks.dialog.domain import Domain

dialog = TASKS["dialog"]
PLACES = {
    "roma": ("rome", "thai"),
    "siam": ("rome", "thai"),
    "bistro": ("paris", "french"),
    "chez": ("paris", "thai"),
}
FACTS = [
    (name, f"R_{relation}", value)
    for name, (town, food) in PLACES.items()
    for relation, value in (("cuisine", food), ("location", town), ("phone", f"{name}_phone"))
]
TOWNS, FOODS = ("paris", "rome"), ("french", "thai")
CALLS = [f"api_call {food} {town}" for food in FOODS for town in TOWNS]
CANDIDATES = [
    *("hello", "what food", "where", "i look", *CALLS, *(f"how about {name}" for name in PLACES)),
    *("another then", "booked", *(f"it is {name}_phone" for name in PLACES), "more changes", "bye"),
]
ENTITIES = [
    *((food, "cuisine", "knowledge") for food in FOODS),
    *((town, "location", "knowledge") for town in TOWNS),
    *((f"{name}_phone", "phone", "knowledge") for name in PLACES),
    *((name, "restaurant", "subjects") for name in PLACES),
]
WORDS = {word for text in CANDIDATES for word in text.split()} | {
    word for fact in FACTS for word in fact
}
DOMAIN = Domain(
    Vocabulary(("_EOS_", "_UNK_", "<SILENCE>", *sorted(WORDS))), CANDIDATES, FACTS, ENTITIES
)
SILENCE = ("user", "<SILENCE>")


def facts(*names):
    return [("fact", " ".join(fact)) for fact in FACTS if fact[0] in names]


CHANGE = turns("french instead", "more changes", "no", "i look", "<SILENCE>")
THAI = turns("hi", "hello", "thai", "where", "in rome", "i look", "<SILENCE>", "api_call thai rome")
THAI += [*facts("roma", "siam"), SILENCE, ("bot", "how about siam")]
PARIS = turns("in paris", "what food", "thai", "i look", "<SILENCE>", "api_call thai paris")
PARIS += [*CHANGE, ("bot", "api_call french paris"), *facts("bistro")]
TRAIN = [
    [*THAI, *turns("no", "another then", "<SILENCE>", "how about roma", "good", "booked")],
    [*THAI, *turns("good", "booked", "phone", "it is siam_phone", "ta", "bye")],
    [*PARIS, *turns("<SILENCE>", "how about bistro", "good", "booked")],
]


@pytest.fixture(scope="module")
def mask():
    return ActionMask(DOMAIN, learn(DOMAIN, split_of(DOMAIN, TRAIN), batch_size=2))


def allowed(mask, *said):
    """The candidates at the last turn."""
    inputs, answers = split_of(DOMAIN, [list(said)]).collate([0], READS)
    last = int(np.count_nonzero(answers[0] >= 0)) - 1
    return {CANDIDATES[number] for number in np.flatnonzero(mask.predict_on_batch(inputs)[0, last])}


# === States ===


@pytest.mark.parametrize(
    "dialogs",
    [TRAIN, [[*THAI, *CHANGE], [("fact", "api_call no result"), *THAI[4:], SILENCE]], None],
)
def test_states_and_conditions_match_loops(dialogs, prepared_dialog):
    """Also on the sample."""
    domain = DOMAIN
    if dialogs is None:
        dataset = load_dataset(prepared_dialog)
        domain, dev = dataset.domain, dataset.splits["dev"]
        dialogs = [
            [(s["speaker"], s["text"]) for s in dataset.conversation(dev, row)]
            for row in dev.dialogs
        ]
    split = split_of(domain, dialogs)
    inputs, _ = split.collate(range(len(split)), READS)
    known, met = state_model(domain).predict_on_batch(inputs)
    for b, said in enumerate(dialogs):
        for t, place in enumerate(split.dialogs[b]["turns"]):
            names, expected = track(domain, said[: place + 1])
            assert {*itertools.compress([*domain.types, *FLAGS], known[b, t])} == names
            for condition, found, numbers in zip(
                CONDITIONS, met[b, t, :, 1:], expected, strict=True
            ):
                assert set(np.flatnonzero(found)) == numbers, condition


# === Rules ===


def test_rules_are_those_of_train(mask):
    split = split_of(DOMAIN, TRAIN)
    rules = learn(DOMAIN, split)
    number = {template: place for place, template in enumerate(rules.templates)}
    call, offered = (
        "api_call {cuisine} {location}",
        ("another then", "booked", "bye", "it is {phone}"),
    )
    assert [rules.templates[place] for place in rules.continues] == ["another then", call, "i look"]
    assert rules.states["cuisine location called found offered"] == sorted(
        number[text] for text in offered
    )
    assert rules.conditions[number[call]]["location"] == ["said", "current", "new"]
    assert rules.conditions[number["it is {phone}"]]["phone"] == ["said", "found", "new", "offered"]
    inputs, answers = split.collate(range(3), READS)
    real = answers >= 0
    assert np.take_along_axis(
        mask.predict_on_batch(inputs)[real], answers[real][:, None], axis=1
    ).all()


def test_a_knowledge_base_may_have_many_types(mask):
    entities = [
        *ENTITIES,
        *((f"value{number}", f"a_type{number}", "knowledge") for number in range(40)),
    ]
    domain = dataclasses.replace(DOMAIN, entities=entities)
    rules, (inputs, _) = (
        learn(domain, split_of(domain, TRAIN)),
        split_of(domain, TRAIN).collate(range(3), READS),
    )
    assert rules == learn(DOMAIN, split_of(DOMAIN, TRAIN))
    np.testing.assert_array_equal(
        ActionMask(domain, rules).predict_on_batch(inputs), mask.predict_on_batch(inputs)
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (turns("good"), {"hello"}),  # nothing to book
        (turns("klingon"), {"hello"}),
        (turns("thai in rome"), {"i look"}),
        ([*THAI[:6], SILENCE], {"api_call thai rome"}),
        (
            [*turns("in rome", "what food", "paris instead of rome thai"), SILENCE],
            {"api_call thai paris"},
        ),
        ([*THAI[:8], ("fact", "api_call no result"), SILENCE], set()),
        ([*THAI[:-2], SILENCE], {"how about roma", "how about siam"}),
        ([*THAI, SILENCE], {"how about roma"}),  # not the same again
        ([*THAI, *turns("good")], {"another then", "booked", "bye", "it is siam_phone"}),
        ([*THAI, *turns("in paris")], {"more changes", "i look"}),  # nothing to book any longer
        ([*THAI, *CHANGE], {"api_call french rome"}),
        ([*THAI, *CHANGE, ("bot", "api_call french rome"), ("user", "good")], set()),
        # no change
        ([*THAI, *turns("thai please")], {"another then", "booked", "bye", "it is siam_phone"}),
    ],
)
def test_nothing_is_claimed_that_did_not_happen(mask, said, expected):
    assert allowed(mask, *said) == expected


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda rules: rules.pop("states"), "states"),
        (lambda rules: rules["states"].update({"klingon": [0]}), "klingon"),
        (lambda rules: rules["states"].update({"silent": [99]}), "99"),
        (lambda rules: rules["conditions"].clear(), "range"),
        (lambda rules: rules["conditions"][0].update({"price": ["best"]}), "price"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, edit, message):
    rules = json.loads(learn(DOMAIN, split_of(DOMAIN, TRAIN)).model_dump_json())
    assert load_mask(tmp_path, DOMAIN) is None
    edit(rules)
    (tmp_path / FILE).write_text(json.dumps(rules))
    assert re.search(
        rf"action_mask\.json: expected rules (.|\n)*{message}", refusal(load_mask, tmp_path, DOMAIN)
    )


def test_evaluation_chooses_under_the_mask_by_a_flag(trained_dialog, tmp_path):
    flags = (
        f"--run={trained_dialog.path}",
        "--action_mask",
        "--nobaselines",
        f"--scores={tmp_path}/x",
    )
    ran("evaluate.py", *flags, by=run_process)
    row = json.loads((tmp_path / "x").read_text())
    assert row["search"] == "action mask"
    dataset = dialog.dataset_of(trained_dialog)
    plain = dialog.measure(
        trained_dialog.load_model(), dataset, "dev", trained_dialog, baselines=False
    )
    assert row["metrics"]["per_response"] > plain["metrics"]["per_response"]
    other = Run.create(tmp_path / "other", trained_dialog.record)
    assert "lacks action_mask.json" in refusal(
        dialog.measure, None, dataset, "dev", other, action_mask=True
    )


def test_nothing_is_said_where_the_mask_allows_nothing(trained_dialog, monkeypatch):
    none = types.SimpleNamespace(
        predict_on_batch=lambda inputs: np.zeros((*inputs["turns"].shape, 1), bool)
    )
    monkeypatch.setattr("colloquy.tasks.dialog.task.load_mask", lambda path, domain: none)
    options = {"baselines": False, "action_mask": True}
    dataset = dialog.dataset_of(trained_dialog)
    record = dialog.measure(trained_dialog.load_model(), dataset, "dev", trained_dialog, **options)
    assert record["metrics"]["per_response"] == 0
    assert {line.split("\t")[1] for line in record["answers"]} == {""}


# === Conversations in other words than the corpus's ===


@pytest.fixture(scope="module", params=["booking_conversations", "booking_conversations_heldout"])
def talks(request):
    """The file's name; the predictor; each conversation of the file, and all that was said in it.

    The paraphrases of `tasks.dialog.augment` were written with the first file in view, the second
    was written after.
    """
    run = Run.open(ROOT / "pretrained" / "entity-memma-task5")
    predictor, found = dialog.predictor(run), []
    for line in pathlib.Path(__file__).with_name(f"{request.param}.jsonl").read_text().splitlines():
        talk, history = json.loads(line), []
        for text in talk["said"]:
            history.append({"speaker": "user", "text": text})
            history += predictor.predict([{"history": history}])[0]["said"]
        found.append((talk, [(each["speaker"], each["text"]) for each in history]))
    return request.param, predictor, found


@pytest.mark.slow
def test_the_bot_never_claims_what_did_not_happen(talks):
    name, predictor, found = talks
    assert len(found) == {"booking_conversations": 50, "booking_conversations_heldout": 20}[name]
    for talk, said in found:
        for place, (speaker, text) in enumerate(said):
            read = [(s, " ".join(predictor.read(t)) if s == "user" else t) for s, t in said[:place]]
            names, (_, wishes, results, new, _) = track(predictor.domain, read)
            entities = {
                number for _, numbers in predictor.domain.link(text.split()) for number in numbers
            }
            if speaker == "bot" and text.startswith("api_call"):
                assert entities == wishes, talk
            if speaker == "bot" and text.startswith("what do you think"):
                assert entities <= results & new, talk
            if speaker == "bot" and text.startswith("great let me do"):
                assert {"called", "found", "offered"} <= names and "changed" not in names, talk


@pytest.mark.slow
def test_the_bot_reaches_the_table_that_was_asked_for(talks):
    name, predictor, found = talks
    reached = 0
    for talk, said in found:
        offers = [
            (text.split()[-1]) for speaker, text in said if text.startswith("what do you think")
        ]
        booked = offers[-1] if ("bot", "great let me do the reservation") in said else None
        if talk["wants"] is None or not talk["results"]:
            assert booked is None, talk
        elif booked:
            known = {
                relation: value
                for name, relation, value in predictor.domain.knowledge
                if name == booked
            }
            assert {slot: known[f"R_{slot}"] for slot in talk["wants"]} == talk["wants"]
            reached += 1
    assert reached >= {"booking_conversations": 40, "booking_conversations_heldout": 10}[name]
