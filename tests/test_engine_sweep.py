"""Sweeps on a small simulated corpus of dialogs."""

import json
import re
import shutil

import pytest
from helpers import SMALL_RECIPE, check_same_training, run_script

from base.files import UserError
from engine import sweep as sweeping
from engine.run import Run
from engine.sweep import sweep
from engine.train import resume, start
from tasks import TASKS

dialog = TASKS["dialog"]
TINY = {"tiny": SMALL_RECIPE}


@pytest.fixture(scope="module")
def run(swept):
    return Run.open(swept / "runs" / "tiny-task1-1")


@pytest.fixture
def trained(monkeypatch):
    """The directories that a sweep trains in."""
    found = []

    def started(task, model, data, workdir, *args, **kwargs):
        found.append((workdir.name, False))
        return start(task, model, data, workdir, *args, **kwargs)

    def resumed(task, workdir):
        found.append((workdir.name, True))
        return resume(task, workdir)

    monkeypatch.setattr(sweeping, "start", started)
    monkeypatch.setattr(sweeping, "resume", resumed)
    return found


# === Sweeping ===


def test_a_sweep_measures_what_a_dataset_has(swept):
    names = [f"tiny-task1-{seed}-{split}.json" for seed in (1, 2) for split in ("dev", "test")]
    assert sorted(file.name for file in (swept / "measured").iterdir()) == names
    records = [json.loads((swept / "measured" / name).read_text()) for name in names]
    assert [record["seed"] for record in records] == [1, 1, 2, 2]
    assert [record["split"] for record in records] == ["dev", "test", "dev", "test"]
    assert {(record["name"], record["corpus"], record["task"]) for record in records} == {
        ("MEMMA, 2 heads, 2 hops", "sample-task1", "dialog")
    }
    assert [bool(record.get("baselines")) for record in records] == [True, True, False, False]
    assert [record["counts"]["responses"] for record in records] == [52, 48, 52, 48]
    found = json.loads((swept / "runs" / "tiny-task1-2" / "metrics.json").read_text())
    assert [found[split]["metrics"] for split in ("dev", "test")] == [record["metrics"] for record in records[2:]]


def test_a_second_sweep_does_what_is_missing_alone(swept, prepared_dialog, trained, tmp_path):
    root = shutil.copytree(swept, tmp_path / "sweep")
    missing = root / "measured" / "tiny-task1-2-test.json"
    metrics = json.loads(missing.read_text())["metrics"]
    missing.unlink()
    before = {file: file.stat().st_mtime_ns for file in (root / "measured").iterdir()}
    sweep(TASKS, TINY, [prepared_dialog], [1, 2], ["dev", "test"], root / "runs", root / "measured")
    assert trained == []
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert json.loads(missing.read_text())["metrics"] == metrics
    shutil.rmtree(root / "runs")
    sweep(TASKS, TINY, [prepared_dialog], [1, 2], ["dev", "dev-oov"], root / "runs", root / "measured")
    assert trained == [] and not (root / "runs").exists()  # the records are there


def interrupted_at(validation, how, monkeypatch, *args):
    """Sweeps until the given validation, counted from 1, which Ctrl-C interrupts."""
    original, calls = dialog.validate, []

    def validate(*args):
        calls.append(args)
        if len(calls) == validation:
            raise KeyboardInterrupt
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(dialog, "validate", validate)
        with pytest.raises(UserError, match=f"interrupted; {how}"):
            sweep(TASKS, *args)


def test_an_interrupted_sweep_goes_on_exactly(run, prepared_dialog, trained, monkeypatch, tmp_path):
    args = TINY, [prepared_dialog], [1], ["dev"], tmp_path
    name = run.path.name
    interrupted_at(1, "before anything was saved, so nothing is kept", monkeypatch, *args)
    assert not (tmp_path / name).exists()
    (tmp_path / name).mkdir()  # as where it is killed
    for file in ("vocabulary.txt", "best.weights.h5"):
        (tmp_path / name / file).touch()
    interrupted_at(3, r"train\.py --resume --workdir=.* goes on from step 28$", monkeypatch, *args)
    resumed = Run.open(tmp_path / name)
    assert not resumed.finished()
    assert [row["step"] for row in resumed.history()] == [14, 28]
    sweep(TASKS, *args)
    assert trained == [(name, False), (name, False), (name, True)]
    assert resumed.finished()
    check_same_training(resumed, run)


@pytest.mark.slow
def test_a_sweep_varies_settings(prepared_dialog, tmp_path):
    variations = [{"hops": "1"}, {"hops": "0"}]
    sweep(TASKS, TINY, [prepared_dialog], [1], ["dev"], tmp_path / "runs", tmp_path, variations)
    for hops in (1, 0):
        assert Run.open(tmp_path / "runs" / f"tiny-hops-{hops}-task1-1").config.hops == hops
    records = [json.loads((tmp_path / f"tiny-hops-{hops}-task1-1-dev.json").read_text()) for hops in (1, 0)]
    assert [bool(record.get("baselines")) for record in records] == [True, False]


def test_a_sweep_refuses_datasets_of_one_name(swept, prepared_dialog, tmp_path):
    other = shutil.copytree(prepared_dialog, tmp_path / "other" / prepared_dialog.name)
    with pytest.raises(UserError, match=r"--data expects directories of different names.* Received: task1"):
        sweep(TASKS, TINY, [prepared_dialog, other], [1], ["dev"], tmp_path / "runs")
    with pytest.raises(UserError, match=f"was trained on .*, not on {other}: give another --out"):
        sweep(TASKS, TINY, [other], [1], ["dev"], swept / "runs")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--recipe=babi-memma,nothing", "--data=."], "--recipe expects one of babi-memma, .*Received: nothing"),
        (["--recipe=babi-memma", "--data=.", "--seeds=1,x"], "--seeds expects numbers. Received: 1,x"),
        (["--recipe=babi-memma", "--data=.", "--vary=levels"], "--vary expects field=value,value. Received: 'levels'"),
        (["--recipe=babi-memma", "--data=absent*"], "--data expects directories that prepare.py made. .* absent"),
    ],
)
def test_sweep_refuses_wrong_flags(flags, message):
    done = run_script("tools/sweep.py", *flags)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ") and re.search(message, line)
