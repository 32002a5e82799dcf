"""tools/analyses.py: plots and numbers by groups of examples and by settings of runs."""

import json

import pytest
from helpers import run_script
from matplotlib.image import imread

from engine.run import Run
from tasks.reading_comprehension.task import by_first_word


def bars(path):
    """How many bars a plot has: runs of blue in the row of pixels above the axis."""
    picture = imread(path)[..., :3]
    blue = (picture[..., 2] > 0.6) & (picture[..., 0] < 0.2)
    rows = blue.any(axis=1).nonzero()[0]
    row = blue[rows[-1] - 2]
    return int((row[1:] & ~row[:-1]).sum())


def test_one_run_by_groups_of_its_examples(trained_selection, tmp_path):
    done = run_script(
        "tools/analyses.py", f"--run={trained_selection.path}", "--by=turns,words", f"--out={tmp_path}", "--split=test"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "turns.json").read_text(encoding="utf-8"))
    assert found["by"] == "turns" and found["split"] == "test" and found["command"].startswith("python ")
    assert sum(row["n"] for row in found["rows"]) == 11  # the contexts of test
    turns = [row["turns"] for row in found["rows"]]
    assert turns == sorted(turns, key=lambda name: int(name.rstrip("+")))
    assert "R10@1" in done.stdout and (tmp_path / "words.png").exists()


def test_questions_by_their_first_words(trained_reading_comprehension, tmp_path):
    run = trained_reading_comprehension
    done = run_script("tools/analyses.py", f"--run={run.path}", "--by=question", f"--out={tmp_path}", "--metric=EM")
    assert done.returncode == 0, done.stderr
    [row] = json.loads((tmp_path / "question.json").read_text(encoding="utf-8"))["rows"]
    assert (row["question"], row["n"]) == ("where", 6)


def test_first_words_are_grouped():
    class Split:
        question_texts = ["What is it?", "what else", "Who?", "", "To whom?", "WHAT now"]
        ids = list("abcdef")
        answers = [["x"]] * 6

    found = by_first_word(Split, {"a": "x", "b": "no", "c": "x", "e": "x", "f": "no"})
    assert [(each["group"], each["examples"]) for each in found] == [("what", 3), ("who", 1), ("other", 2)]
    assert [each["metrics"]["F1"] for each in found] == pytest.approx([1 / 3, 1.0, 0.5])


@pytest.fixture
def runs(trained_selection, tmp_path):
    """Four runs that differ in levels, two with the same, with measured metrics."""
    for number, (levels, score) in enumerate([(10, 0.75), (2, 0.25), (2, 0.5), (0, 0.125)]):
        path = tmp_path / "runs" / str(number)
        path.mkdir(parents=True)
        config = json.loads((trained_selection.path / "config.json").read_text(encoding="utf-8"))
        config["config"]["levels"] = levels
        (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        Run.open(path).save_metrics("dev", {"metrics": {"MAP": 0.9, "R10@1": score}})
    return tmp_path / "runs"


def test_runs_by_a_setting(runs, tmp_path):
    done = run_script("tools/analyses.py", f"--run={runs}/*", "--by=levels", f"--out={tmp_path / 'out'}")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "out" / "levels.json").read_text(encoding="utf-8"))["rows"]
    assert [(row["levels"], row["n"]) for row in rows] == [("0", 1), ("2", 2), ("10", 1)]
    expected = [(0.125, 0), (0.375, pytest.approx(0.125 * 2**0.5)), (0.75, 0)]
    assert [tuple(row["R10@1"]) for row in rows] == expected
    assert bars(tmp_path / "out" / "levels.png") == 3
    done = run_script("tools/analyses.py", f"--run={runs}/0", "--by=variant,seed,recipe", f"--out={tmp_path / 'out'}")
    assert done.returncode == 0 and (tmp_path / "out" / "seed.png").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--by=hops"], "has no setting hops"),
        (["--by=turns"], "--by=turns groups the examples of one run. Received: 4 runs"),
        (["--by=levels", "--split=test"], "has no metrics of test: evaluate.py --run="),
        (["--by=levels", "--metric=F1"], "--metric expects one of MAP, R10@1. Received: F1"),
        (["--by=levels", "--run=nowhere"], "Received: nowhere"),
    ],
)
def test_what_cannot_be_analysed(runs, tmp_path, flags, message):
    done = run_script("tools/analyses.py", f"--run={runs}/*", f"--out={tmp_path / 'out'}", *flags)
    assert done.returncode == 1 and message in done.stderr
    assert not (tmp_path / "out").exists()
