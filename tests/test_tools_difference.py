"""tools/difference.py: two models' answers to the same responses."""

import json

import numpy as np
import pytest
from helpers import ran, run_script

from tools.difference import difference

CORRECT = [("1", "a"), ("1", "b"), ("1", "c"), ("2", "a")]


def write(path, said, correct=CORRECT):
    path.write_text("".join(f"{row[0]}\t{text}\t{row[1]}\n" for row, text in zip(correct, said, strict=True)))


def test_seeds_are_averaged_and_dialogs_drawn(tmp_path):
    for name, said in {"one-1": "abca", "one-2": "ab-a", "two-1": "a---", "two-2": "---a"}.items():
        write(tmp_path / name, said)
    flags = [f"--of={tmp_path}/one-*", f"--minus={tmp_path}/two-*", f"--out={tmp_path}/out.json"]
    done = ran("tools/difference.py", *flags)
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["points"] == pytest.approx(100 * (3.5 - 1) / 4)  # 2.5 of 3 in the first dialog, 1 of 1 in the second
    assert [found["low"], found["high"]] == pytest.approx([50, 200 / 3])  # all draws the one or the other
    assert (found["dialogs"], found["seeds"]) == (2, [2, 2])
    assert done.stdout.startswith("+62.50 points, 95 per cent interval +50.00 to +66.67, over 2 dialogs")
    write(tmp_path / "two-2", "abc", CORRECT[:3])
    assert "same responses" in run_script("tools/difference.py", *flags).stderr
    (tmp_path / "two-2").write_text("1 a\n")
    assert "expected files of evaluate.py --scores_out" in run_script("tools/difference.py", *flags).stderr


def test_the_interval_is_that_of_a_mean_of_many_dialogs():
    gains = np.random.default_rng(0).normal(0.1, 1.0, 400)
    points, low, high = difference(gains, np.ones(400, int))
    error = 100 * gains.std() / 20
    assert points == pytest.approx(100 * gains.mean())
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.05) and low < points < high
