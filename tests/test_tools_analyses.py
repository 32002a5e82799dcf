"""tools/analyses.py: plots and numbers by groups; tools/difference.py: two models."""

import json

import numpy as np
import pytest
from helpers import ran, script_refusal
from matplotlib.image import imread
from scipy import ndimage

from colloquy.engine.run import Run
from colloquy.tasks.reading_comprehension.scoring import by_first_word
from colloquy.tools.difference import difference


def analyse(run, by, out, *flags):
    """Runs the script; returns what it printed and the rows of each file that it wrote."""
    done = ran("tools/analyses.py", f"--run={run}", f"--by={by}", f"--out={out}", *flags)
    return done.stdout, [
        json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in by.split(",")
    ]


def bars(path):
    """Number of bars of a plot: runs of blue in the row of pixels above the axis."""
    picture = imread(path)[..., :3]
    blue = (picture[..., 2] > 0.6) & (picture[..., 0] < 0.2)
    return ndimage.label(blue[blue.any(axis=1).nonzero()[0][-1] - 2])[1]


def test_one_run_by_groups_of_its_examples(
    trained_selection, trained_reading_comprehension, tmp_path
):
    printed, (found, _) = analyse(trained_selection.path, "turns,words", tmp_path, "--split=test")
    assert (found["by"], found["split"]) == ("turns", "test")
    assert found["command"].startswith("python ")
    assert sum(row["n"] for row in found["rows"]) == 11  # the contexts of test
    turns = [row["turns"] for row in found["rows"]]
    assert turns == sorted(turns, key=lambda name: int(name.rstrip("+")))
    assert "R10@1" in printed and (tmp_path / "words.png").exists()
    _, [found] = analyse(trained_reading_comprehension.path, "question", tmp_path)
    assert [(row["question"], row["n"]) for row in found["rows"]] == [("where", 6)]


def test_first_words_are_grouped():
    class Split:
        question_texts = ["What is it?", "what else", "Who?", "", "To whom?", "WHAT now"]
        ids = list("abcdef")
        answers = [["x"]] * 6

    found = by_first_word(Split, {"a": "x", "b": "no", "c": "x", "e": "x", "f": "no"})
    assert [(each["group"], each["examples"]) for each in found] == [
        ("what", 3),
        ("who", 1),
        ("other", 2),
    ]
    assert [each["metrics"]["F1"] for each in found] == pytest.approx([1 / 3, 1.0, 0.5])


@pytest.fixture
def runs(trained_selection, tmp_path):
    """Four runs that differ in levels, two with the same, with measured metrics."""
    for number, (levels, score) in enumerate([(10, 0.75), (2, 0.25), (2, 0.5), (0, 0.125)]):
        path = tmp_path / "runs" / str(number)
        path.mkdir(parents=True)
        record = trained_selection.record
        (path / "config.json").write_text(
            json.dumps({**record, "config": {**record["config"], "levels": levels}})
        )
        Run.open(path).save_metrics("dev", {"metrics": {"MAP": 0.9, "R10@1": score}})
    return tmp_path / "runs"


def test_runs_by_a_setting(runs, tmp_path):
    _, (levels, *others) = analyse(f"{runs}/*", "levels,variant,seed,recipe", tmp_path / "out")
    assert [(row["levels"], row["n"]) for row in levels["rows"]] == [("0", 1), ("2", 2), ("10", 1)]
    assert [row["R10@1"] for row in levels["rows"]] == [
        [0.125, 0],
        [0.375, pytest.approx(0.125 * 2**0.5)],
        [0.75, 0],
    ]
    assert bars(tmp_path / "out" / "levels.png") == 3
    assert [len(found["rows"]) for found in others] == [1, 1, 1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--by=turns"], "--by=turns groups the examples of one run. Received: 4 runs"),
        (["--by=levels", "--split=test"], "has no metrics of test: evaluate.py --run="),
        (["--by=levels", "--run=nowhere"], "Received: nowhere"),
    ],
)
def test_what_cannot_be_analysed(runs, tmp_path, flags, message):
    assert message in script_refusal(
        "tools/analyses.py", f"--run={runs}/*", f"--out={tmp_path / 'out'}", *flags
    )
    assert not (tmp_path / "out").exists()


# === Differences ===

CORRECT = [("1", "a"), ("1", "b"), ("1", "c"), ("2", "a")]


def write(path, said, correct=CORRECT):
    path.write_text(
        "".join(f"{row[0]}\t{text}\t{row[1]}\n" for row, text in zip(correct, said, strict=True))
    )


def test_seeds_are_averaged_and_dialogs_drawn(tmp_path):
    for name, said in {"one-1": "abca", "one-2": "ab-a", "two-1": "a---", "two-2": "---a"}.items():
        write(tmp_path / name, said)
    flags = [f"--of={tmp_path}/one-*", f"--minus={tmp_path}/two-*", f"--out={tmp_path}/out.json"]
    done = ran("tools/difference.py", *flags)
    found = json.loads((tmp_path / "out.json").read_text())
    # 2.5 of 3 in the first dialog, 1 of 1 in the second
    assert found["points"] == pytest.approx(100 * (3.5 - 1) / 4)
    # all draws the one or the other
    assert [found["low"], found["high"]] == pytest.approx([50, 200 / 3])
    assert (found["dialogs"], found["seeds"]) == (2, [2, 2])
    assert done.stdout.startswith(
        "+62.50 points, 95 per cent interval +50.00 to +66.67, over 2 dialogs"
    )
    write(tmp_path / "two-2", "abc", CORRECT[:3])
    assert "same responses" in script_refusal("tools/difference.py", *flags)
    (tmp_path / "two-2").write_text("1 a\n")
    assert "expected files of evaluate.py --scores_out" in script_refusal(
        "tools/difference.py", *flags
    )


def test_the_interval_is_that_of_a_mean_of_many_dialogs():
    gains = np.random.default_rng(0).normal(0.1, 1.0, 400)
    points, low, high = difference(gains, np.ones(400, int))
    error = 100 * gains.std() / 20
    assert points == pytest.approx(100 * gains.mean())
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.05) and low < points < high
