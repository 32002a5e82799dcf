"""Kills and resumes a training at random moments, also while it saves, and compares it with an uninterrupted one.

    python -m benchmarks.soak --kills=50 --out=build/soak.json/kills

A killed process gets SIGKILL, which it cannot handle, at a moment drawn from the first seconds of its training.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from absl import flags

from base import cli
from base.files import UserError
from benchmarks.turns import define_record_flags, report

FLAGS = flags.FLAGS
flags.DEFINE_integer("kills", 50, "Kills before the training may come to its end.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Seed of the moments.")
flags.DEFINE_float("epochs", 2000.0, "Epochs of the training; 30 for each kill, else it ends before the last.")
define_record_flags()
MODEL = ["--model=supervised-embeddings", "--set=embedding_dim=32", "--set=validations_per_epoch=0.1", "--seed=3"]


def main():
    from data.samples.dialog import write_babi
    from tasks.dialog.prepare import Settings, prepare

    rng, started = np.random.default_rng(FLAGS.seed), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="soak.") as root:
        root = pathlib.Path(root)
        write_babi(root / "raw", count=40, seed=3, held_out=7)
        prepare("babi-dialog", root / "raw", root / "prepared", Settings(name="sample"))
        first = [f"--data={root / 'prepared' / 'task1'}", f"--epochs={FLAGS.epochs}", *MODEL]
        whole, killed = root / "whole", root / "killed"
        train(whole, first)
        unfinished = []
        while len(unfinished) < FLAGS.kills and train(killed, ["--resume"] if unfinished else first, rng):
            unfinished.append(any(file.name != ".lock" for file in killed.glob(".*")))
        train(killed, ["--resume"])
        (expected, rows), (found, rows_of_killed) = state_of(whole), state_of(killed)
    row = {
        "kills": len(unfinished),
        "kills_while_writing": sum(unfinished),
        "steps": rows[-1]["step"],
        "steps_reached": rows_of_killed[-1]["step"],
        "arrays": len(expected),
        "arrays_equal": sum(np.array_equal(found[name], value) for name, value in expected.items()),
        "rows_equal": rows == rows_of_killed,
    }
    report("soak", [row], seed=FLAGS.seed, seconds=round(time.perf_counter() - started, 1))


def train(run, arguments, rng=None):
    """Runs train.py, and with an `rng` kills it within three seconds after its first save; returns whether it did."""
    command, last = [sys.executable, "train.py", "--save_minutes=0", f"--workdir={run}", *arguments], run / "last.npz"
    before = last.stat().st_mtime_ns if last.exists() else None
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if rng:
        while process.poll() is None and (not last.exists() or last.stat().st_mtime_ns == before):
            time.sleep(0.01)
        if process.poll() is None:
            time.sleep(rng.uniform(0.0, 3.0))
            process.kill()
    errors = process.communicate()[1]
    if process.returncode not in (0, -9):
        raise UserError(f"a training failed: {errors[-500:]}")
    return process.returncode == -9


def state_of(run):
    """All arrays of a run's last state, and its history without times."""
    with np.load(run / "last.npz") as state:
        arrays = {name: state[name] for name in state.files if state[name].dtype.kind != "U"}
    rows = map(json.loads, (run / "history.jsonl").read_text(encoding="utf-8").splitlines())
    return arrays, [{name: row[name] for name in row if "second" not in name} for row in rows]


if __name__ == "__main__":
    cli.run(main)
