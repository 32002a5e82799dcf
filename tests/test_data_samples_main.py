"""`python -m data.samples`, and what all simulators promise: a seed's bytes, all files or none, clear refusals."""

import re

import pytest
from helpers import run_process, run_script

from data.samples.__main__ import SAMPLES

SIZES = {
    "selection": {"count": 130, "held_out": 17},
    "dialog": {"count": 53, "held_out": 7},
    "generation": {"count": 53, "held_out": 7},
    "reading_comprehension": {"count": 13, "held_out": 3},
}


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("task", SAMPLES)
def test_command_writes_the_same_in_another_process(task, tmp_path):
    sizes = SIZES[task]
    flags = [f"--{name}={value}" for name, value in {"task": task, "out": tmp_path / "a", "seed": 3, **sizes}.items()]
    done = run_process("-m", "data.samples", *flags, PYTHONHASHSEED="1")
    counts = SAMPLES[task](tmp_path / "b", seed=3, **sizes)
    assert (done.returncode, done.stderr) == (0, "")
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    assert done.stdout == f"Wrote {tmp_path / 'a'}: {listed}\n"
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert counts.keys() == contents(tmp_path / "b").keys()
    SAMPLES[task](tmp_path / "c", seed=4, **sizes)
    others = contents(tmp_path / "c")
    assert all(others[name] != text for name, text in contents(tmp_path / "b").items())


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--task=selection", "--count=5"], r"More conversations .* find 9 negative .*"),
        (["--task=dialog", "--count=5"], r"held_out must be in .* count=5"),
        (["--task=dialog"], r"--out is missing .*"),
        (["--task=dialogs"], r".*--task=dialogs.* <selection\|dialog\|generation\|reading_comprehension>"),
        (["--task=dialog", "--count=30", "--held_out=3", "--out={}/file"], r".*(File exists|cannot be made).*"),
    ],
)
def test_command_reports_errors_in_one_line(arguments, message, tmp_path):
    (tmp_path / "file").touch()
    out = [] if len(arguments) == 1 or "--out" in arguments[-1] else [f"--out={tmp_path / 'new'}"]
    done = run_script("data/samples/__main__.py", *(argument.format(tmp_path) for argument in arguments), *out)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"error: {message}\n", done.stderr)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "task, count, held_out",
    [
        ("dialog", 7, 0),
        ("dialog", 6, 3),
        ("dialog", 0, 100),
        ("generation", 9, 9),
        ("generation", 9, 0),
        ("reading_comprehension", 7, 7),
        ("reading_comprehension", 7, 0),
        ("selection", 60, 0),
    ],
)
def test_held_out_is_checked_before_anything_is_replaced(task, count, held_out, tmp_path):
    (tmp_path / "train.txt").write_text("old")
    with pytest.raises(ValueError, match=rf"held_out must be .* Received: held_out={held_out}(, count={count})?$"):
        SAMPLES[task](tmp_path, count, 3, held_out)
    assert contents(tmp_path) == {"train.txt": b"old"}


@pytest.mark.parametrize("task", ["selection", "dialog", "generation"])
def test_a_failure_leaves_nothing_half_written(task, tmp_path, monkeypatch):
    real_open, opened = open, []

    def full_disk(path, *args, **kwargs):
        if str(tmp_path) in str(path):
            opened.append(path)
        if len(opened) == 2:
            raise OSError("No space left on device")
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr("builtins.open", full_disk)
    with pytest.raises(OSError, match="No space left"):
        SAMPLES[task](tmp_path, seed=3, **SIZES[task])
    assert list(tmp_path.iterdir()) == []
