"""`tasks.dialog.action_mask` and `rules` against loops and by hand."""

import dataclasses
import itertools
import json
import re
import types

import numpy as np
import pytest
from dialog_models import split_of, track
from helpers import copy_of, ran, refusal, scoring_of, turns

from colloquy.data.corpora.babi_dialog import Fact
from colloquy.data.vocabulary import Vocabulary
from colloquy.layers.dialog_state import CONDITIONS, FLAGS, INPUTS
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.action_mask import FILE, ActionMask, load_mask
from colloquy.tasks.dialog.domain import Domain, Entity
from colloquy.tasks.dialog.rules import learn, state_model

dialog = TASKS["dialog"]
SILENCE = ("user", "<SILENCE>")
CUISINE = {"roma": "thai", "siam": "thai", "bistro": "french", "chez": "thai"}
TOWN = {"roma": "rome", "siam": "rome", "bistro": "paris", "chez": "paris"}
FACTS = []
for name in CUISINE:
    FACTS.append((name, "R_cuisine", CUISINE[name]))
    FACTS.append((name, "R_location", TOWN[name]))
    FACTS.append((name, "R_phone", f"{name}_phone"))
# The first candidate is a call: number 1, which 0 and the first index are easily mistaken for.
CANDIDATES = [
    f"api_call {food} {town}" for food in ("thai", "french") for town in ("rome", "paris")
]
CANDIDATES += ["hello", "what food", "where", "i look", "another then", "booked"]
CANDIDATES += ["more changes", "bye"]
CANDIDATES += [f"how about {name}" for name in CUISINE]
CANDIDATES += [f"it is {name}_phone" for name in CUISINE]
ENTITIES = [
    ("french", "cuisine", "knowledge"),
    ("thai", "cuisine", "knowledge"),
    ("paris", "location", "knowledge"),
    ("rome", "location", "knowledge"),
    *[(f"{name}_phone", "phone", "knowledge") for name in CUISINE],
    *[(name, "restaurant", "subjects") for name in CUISINE],
]
WORDS = sorted({*" ".join(CANDIDATES).split(), *" ".join(map(" ".join, FACTS)).split()})
VOCABULARY = Vocabulary(("_EOS_", "_UNK_", "<SILENCE>", *WORDS))
ENTITIES = [Entity(*fields) for fields in ENTITIES]
FACTS = [Fact(*fields) for fields in FACTS]
DOMAIN = Domain(VOCABULARY, CANDIDATES, FACTS, ENTITIES)


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
def rules():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("colloquy.tasks.dialog.rules.BATCH_SIZE", 2)  # two batches for three dialogs
        return learn(DOMAIN, split_of(DOMAIN, TRAIN))


@pytest.fixture(scope="module")
def mask(rules):
    return ActionMask(DOMAIN, rules)


# === States ===


def assert_states_match_loops(domain, dialogs):
    split = split_of(domain, dialogs, answers=[[0]] * len(dialogs))  # a state is without answers
    inputs, _ = split.collate(range(len(split)), INPUTS)
    known_BTS, met_BTNE = state_model(domain).predict_on_batch(inputs)
    for b, conversation in enumerate(dialogs):
        for t, place in enumerate(split.dialogs[b]["turns"]):
            names, entities_by_condition = track(domain, conversation[: place + 1])
            found = itertools.compress([*domain.types, *FLAGS], known_BTS[b, t])
            assert set(found) == names
            for n, condition in enumerate(CONDITIONS):
                met = np.flatnonzero(met_BTNE[b, t, n, 1:])
                assert set(met) == entities_by_condition[n], condition


def test_states_and_conditions_match_loops():
    assert_states_match_loops(DOMAIN, TRAIN)
    no_result = ("fact", "api_call no result")
    assert_states_match_loops(DOMAIN, [[*THAI, *CHANGE], [no_result, *THAI[4:], SILENCE]])
    no_candidate = turns("thai", "thai it is", "in rome", "i look")
    assert_states_match_loops(DOMAIN, [no_candidate])


# === Rules ===


def test_rules_are_those_of_train(rules, mask):
    number = {template: place for place, template in enumerate(rules.templates)}
    call = "api_call {cuisine} {location}"
    assert [rules.templates[n] for n in rules.continues] == ["another then", call, "i look"]
    after_offer = ["another then", "booked", "bye", "it is {phone}"]
    state = "cuisine location called found offered"
    assert rules.states[state] == sorted(number[text] for text in after_offer)
    assert rules.conditions[number[call]]["location"] == ["said", "current", "new"]
    phone = rules.conditions[number["it is {phone}"]]["phone"]
    assert phone == ["said", "found", "new", "offered"]

    inputs, answers = split_of(DOMAIN, TRAIN).collate(range(3), INPUTS)
    is_real = answers >= 0
    allowed = mask.predict_on_batch(inputs)[0][is_real]
    assert np.take_along_axis(allowed, answers[is_real][:, None], axis=1).all()


@pytest.mark.slow
def test_a_knowledge_base_may_have_many_types(rules, mask):
    more = [Entity(f"value{number}", f"a_type{number}", "knowledge") for number in range(40)]
    more.append(Entity("a_value", "offered", "knowledge"))  # the name of a flag
    domain = dataclasses.replace(DOMAIN, entities=[*ENTITIES, *more])
    split = split_of(domain, TRAIN)
    assert learn(domain, split) == rules
    inputs, _ = split.collate(range(3), INPUTS)
    allowed, _ = ActionMask(domain, rules).predict_on_batch(inputs)
    np.testing.assert_array_equal(allowed, mask.predict_on_batch(inputs)[0])


AFTER_OFFER = {"another then", "booked", "bye", "it is siam_phone"}


@pytest.mark.parametrize(
    ("conversation", "expected"),
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
        ([*THAI, *turns("good")], AFTER_OFFER),
        ([*THAI, *turns("in paris")], {"more changes", "i look"}),  # nothing to book any longer
        ([*THAI, *CHANGE], {"api_call french rome"}),
        ([*THAI, *CHANGE, ("bot", "api_call french rome"), ("user", "good")], set()),
        ([*THAI, *turns("thai please")], AFTER_OFFER),  # no change
    ],
)
def test_nothing_is_claimed_that_did_not_happen(mask, conversation, expected):
    inputs, answers = split_of(DOMAIN, [conversation]).collate([0], INPUTS)
    last_turn = int(np.count_nonzero(answers[0] >= 0)) - 1
    allowed = mask.predict_on_batch(inputs)[0][0, last_turn]
    assert {CANDIDATES[number] for number in np.flatnonzero(allowed)} == expected


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda rules: rules["states"].update({"klingon": [0]}), "klingon"),
        (lambda rules: rules["states"].update({"silent": [99]}), "99"),
        (lambda rules: rules["conditions"].clear(), "range"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, rules, edit, message):
    damaged = json.loads(rules.model_dump_json())
    edit(damaged)
    (tmp_path / FILE).write_text(json.dumps(damaged))
    refused = refusal(load_mask, tmp_path, DOMAIN)
    assert re.search(rf"action_mask\.json: expected rules (.|\n)*{message}", refused)


@pytest.mark.slow
def test_evaluation_chooses_under_the_mask_by_a_flag(trained_dialog, tmp_path_factory, tmp_path):
    run = copy_of(trained_dialog, tmp_path_factory)
    flags = ["--set=action_mask=true", "--nobaselines", f"--scores={tmp_path}/x"]
    ran("evaluate.py", f"--run={run.path}", *flags)
    row = json.loads((tmp_path / "x").read_text())
    assert row["search"] == "action mask"
    dataset = dialog.dataset_of(trained_dialog)
    model = trained_dialog.load_model()
    scoring = scoring_of(dialog, model, dataset, "dev", trained_dialog, baselines=False)
    plain = dialog.measure(scoring).record
    assert row["metrics"]["per_response"] > plain["metrics"]["per_response"]


def test_nothing_is_said_where_the_mask_allows_nothing(trained_dialog, monkeypatch):
    def allow_nothing(inputs):
        return np.zeros((*inputs["turns"].shape, 1), bool), None

    mask = types.SimpleNamespace(predict_on_batch=allow_nothing)
    monkeypatch.setattr("colloquy.tasks.dialog.task.load_mask", lambda path, domain: mask)
    scoring = scoring_of(
        dialog,
        trained_dialog.load_model(),
        dialog.dataset_of(trained_dialog),
        "dev",
        trained_dialog,
        baselines=False,
        action_mask=True,
    )
    record, _, answers = dialog.measure(scoring)
    assert record["metrics"]["per_response"] == 0
    assert {line.split("\t")[1] for line in answers} == {""}
