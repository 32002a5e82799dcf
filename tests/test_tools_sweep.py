"""tools/sweep.py on the excerpt of dialog bAbI."""

import json
import re
import shutil
from unittest.mock import DEFAULT, Mock

import pytest
from helpers import check_same_training, script_refusal

from colloquy.engine.run import Run
from colloquy.metrics.published import scores as read_scores
from colloquy.tasks import TASKS

dialog = TASKS["dialog"]


def times(directory):
    """When each file was written last."""
    files = (
        file for file in directory.rglob("*.*") if file.is_file() and file.name != "metrics.json"
    )
    return {file: file.stat().st_mtime_ns for file in files}


def test_a_sweep_scores_what_a_dataset_has(swept):
    rows = [row for row in read_scores(swept / "scores.jsonl") if "seed" in row]
    assert [(row["recipe"], row["corpus"], row["task"]) for row in rows] == [
        ("tiny", "sample-task1", "dialog")
    ] * 4
    assert [(row["seed"], row["split"]) for row in rows] == [
        (1, "dev"),
        (1, "test"),
        (2, "dev"),
        (2, "test"),
    ]
    found = json.loads((swept / "runs" / "tiny-task1-2" / "metrics.json").read_text())
    for row in rows[2:]:
        measured = found[row["split"]]["metrics"]
        six_decimals = {name: round(value, 6) for name, value in measured.items()}
        assert row["metrics"] == six_decimals
    other = Run.open(swept / "runs" / "tiny-task1-2")
    assert other.training.seed == 2 and other.record["recipe"] == "tiny"


def test_a_second_sweep_computes_what_is_missing_alone(swept, sweep, prepared_dialog, tmp_path):
    root = shutil.copytree(swept, tmp_path / "sweep")
    *lines, last = (root / "scores.jsonl").read_text().splitlines(keepends=True)
    lines.append(f"{json.dumps({**json.loads(last), 'ensemble': 2})}\n")  # not the run's own score
    (root / "scores.jsonl").write_text("".join(lines))
    before, flags = (
        times(root / "runs"),
        ("--recipe=tiny", f"--data={prepared_dialog}", "--seeds=1,2"),
    )
    assert sweep(root, *flags, "--split=dev,test").returncode == 0
    assert times(root / "runs") == before
    rows = read_scores(root / "scores.jsonl")
    assert len(rows) == len(lines) + 1 and rows[-1]["metrics"] == json.loads(last)["metrics"]
    assert "ensemble" not in rows[-1]
    shutil.rmtree(root / "runs")
    assert sweep(root, *flags, "--split=dev,dev-oov").returncode == 0
    # the rows are there
    assert not (root / "runs").exists() and read_scores(root / "scores.jsonl") == rows


@pytest.mark.slow
def test_an_interrupted_sweep_continues_exactly(
    swept, sweep, prepared_dialog, monkeypatch, tmp_path
):
    whole = Run.open(swept / "runs" / "tiny-task1-2")
    flags, path = (
        ("--recipe=tiny", f"--data={prepared_dialog}", "--seeds=2"),
        tmp_path / "runs" / "tiny-task1-2",
    )

    effects = [DEFAULT, DEFAULT, KeyboardInterrupt]
    with monkeypatch.context() as patch:
        patch.setattr(dialog, "validate", Mock(wraps=dialog.validate, side_effect=effects))
        done = sweep(tmp_path, *flags)
    assert done.returncode == 130 and "continues from step 28" in done.stderr
    resumed = Run.open(path)
    assert not resumed.finished()
    assert [row["step"] for row in resumed.history()] == [14, 28]
    assert sweep(tmp_path, *flags).returncode == 0
    assert resumed.finished()
    check_same_training(resumed, whole)


@pytest.mark.slow
def test_a_sweep_varies_settings(sweep, prepared_dialog, tmp_path):
    flags = "--recipe=tiny", f"--data={prepared_dialog}", "--seeds=1", "--vary=hops=1,0"
    flags = (*flags, "--set=heads=1", "--set=epochs=0.5")
    assert sweep(tmp_path, *flags).returncode == 0
    for hops in (1, 0):
        run = Run.open(tmp_path / "runs" / f"tiny-heads-1-epochs-0.5-hops-{hops}-task1-1")
        assert (run.config.hops, run.config.heads, run.training.epochs) == (hops, 1, 0.5)
    rows = read_scores(tmp_path / "scores.jsonl")
    command = "python train.py --recipe=tiny --seed=1 --set=heads=1 --set=epochs=0.5"
    assert [row["command"] for row in rows if "seed" in row] == [
        f"{command} --set=hops=1 --data=task1",
        f"{command} --set=hops=0 --data=task1",
    ]
    assert [row["recipe"] for row in rows if "seed" in row] == [
        "tiny-heads-1-epochs-0.5-hops-1",
        "tiny-heads-1-epochs-0.5-hops-0",
    ]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--recipe=babi-memma,nothing"], "--recipe expects one of .*Received: nothing"),
        (["--recipe=tiny", "--vary=levels"], "--vary expects field=value,value."),
        (["--recipe=tiny", "--data=absent*"], "--data expects directories that prepare.py made."),
        (["--recipe=tiny", "--data=COPY/*"], "different names.* Received: task1"),
        (["--recipe=tiny", "--data=COPY/other/task1"], "was trained on .*, not on .*"),
    ],
)
def test_sweep_refuses_wrong_flags(swept, sweep, flags, message, prepared_dialog, tmp_path):
    shutil.copytree(prepared_dialog, tmp_path / "other" / "task1")
    shutil.copytree(prepared_dialog, tmp_path / "another" / "task1")
    flags = [
        flag.replace("COPY/*", f"{tmp_path}/*/task1").replace("COPY", str(tmp_path))
        for flag in flags
    ]
    usual = f"--data={prepared_dialog}", f"--out={swept / 'runs'}", "--seeds=1"
    assert re.search(message, script_refusal("tools/sweep.py", *usual, *flags))
