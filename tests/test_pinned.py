"""Behaviour seen from outside, pinned before the redesign: answers of the published models, losses
of small trainings.

`tests/pinned.json` holds what the published weights of 25 to 28 November answered to ten instances
per model and in chats; its losses are those of the small runs of `helpers.SMALL_RUNS` when the
redesign was done. Only commands that users see are used.
"""

import json

import pytest
from helpers import ROOT, SMALL_RUNS, ran, run_process

PINNED = json.loads((ROOT / "tests" / "pinned.json").read_text(encoding="utf-8"))
PASSAGE = PINNED["answers"]["bidaf-squad"][-1]["instance"]["passage"]


def assert_same(found, expected, where=""):
    """Texts are equal and numbers close: logits to about 1e-4."""
    if isinstance(expected, dict):
        assert found.keys() >= expected.keys(), where  # an answer may have new fields
        for name in expected:
            assert_same(found[name], expected[name], f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, pair in enumerate(zip(found, expected, strict=True)):
            assert_same(*pair, f"{where}[{number}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-4), where
    else:
        assert found == expected, where


@pytest.mark.slow
@pytest.mark.parametrize("model", PINNED["answers"])
def test_answers_of_json_lines(model, tmp_path):
    asked, answered, rows = (
        tmp_path / "asked.jsonl",
        tmp_path / "answered.jsonl",
        PINNED["answers"][model],
    )
    asked.write_text("".join(json.dumps(row["instance"]) + "\n" for row in rows), encoding="utf-8")
    ran(
        "predict.py",
        f"--run={ROOT / 'pretrained' / model}",
        f"--input={asked}",
        f"--out={answered}",
    )
    found = [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]
    assert_same(found, [row["answer"] for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("model", PINNED["chats"])
def test_chats(model, tmp_path):
    """Everything that a chat prints, from the first typed line to the last."""
    (tmp_path / "passage.txt").write_text(PASSAGE, encoding="utf-8")
    typed = [
        line.replace("passage.txt", f"{tmp_path}/passage.txt")
        for line in PINNED["chats"][model]["typed"]
    ]
    done = ran(
        "chat.py",
        f"--run=pretrained/{model}",
        by=run_process,
        stdin="\n".join([*typed, "/quit", ""]),
    )
    talk = done.stdout[done.stdout.index("you: ") : done.stdout.index("you: /quit")].replace(
        f"{tmp_path}", ""
    )
    assert [line.rstrip() for line in talk.splitlines()] == PINNED["chats"][model]["printed"]


@pytest.mark.parametrize("task", SMALL_RUNS)
def test_losses_of_a_training(task, request):
    """The same batches in the same order, and the same arithmetic."""
    history = request.getfixturevalue(f"trained_{task}").history()
    assert_same([[row["step"], row["loss"]] for row in history], PINNED["losses"][task])
