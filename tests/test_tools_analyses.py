"""tools/analyses.py: plots and numbers by groups."""

import json

import pytest
from helpers import ran, script_refusal
from matplotlib.image import imread
from scipy import ndimage

from colloquy.engine.run import Run
from colloquy.tasks.reading_comprehension.scoring import by_first_word


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


@pytest.mark.slow
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
