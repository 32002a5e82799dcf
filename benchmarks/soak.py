"""Kills a training at random moments, also while it saves, resumes it each time, and compares it with one left alone.

    python -m benchmarks.soak --kills=50 --out=results/benchmarks/soak.json

A killed process gets SIGKILL, so it can do nothing about it, at a moment drawn from the first seconds of its training.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from absl import flags

from base import cli
from base.files import UserError
from benchmarks.turns import write_record
from engine.run import LOCK

FLAGS = flags.FLAGS
flags.DEFINE_integer("kills", 50, "Kills before the training may go on to its end.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Seed of the moments.")
flags.DEFINE_float("epochs", 2000.0, "Epochs of the training; 30 for each kill, else it ends before the last.")
flags.DEFINE_string("out", None, "JSON file for the record.")
MODEL = ["--model=supervised-embeddings", "--set=embedding_dim=32", "--set=validations_per_epoch=0.1", "--seed=3"]


def start(*arguments):
    """A process of train.py."""
    command = [sys.executable, "train.py", "--save_minutes=0", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def killed_while_training(run, rng, *arguments):
    """Starts a training and kills it within three seconds after it saved for the first time; says where it stood then.

    Returns:
        `None` where the process came to its end before; else whether it has left an unfinished file.
    """
    process, last = start(*arguments), run / "last.npz"
    before = last.stat().st_mtime_ns if last.exists() else None
    while process.poll() is None and (not last.exists() or last.stat().st_mtime_ns == before):
        time.sleep(0.01)
    if process.poll() is None:
        time.sleep(rng.uniform(0.0, 3.0))
        process.kill()
    errors = process.communicate()[1]
    if process.returncode not in (0, -9):
        raise UserError(f"a resumed training failed: {errors[-500:]}")
    return any(file.name != LOCK for file in run.glob(".*")) if process.returncode else None


def states_of(run):
    """All variables of a run's last state, and the position without its times."""
    with np.load(run / "last.npz") as state:
        position = json.loads(str(state["position"]))
        return {name: state[name] for name in state.files if name != "position"}, position["step"]


def main():
    from data.samples.dialog import write_babi
    from tasks.dialog.prepare import Settings, prepare

    root = pathlib.Path(tempfile.mkdtemp(prefix="soak."))
    rng, begun = np.random.default_rng(FLAGS.seed), time.perf_counter()
    try:
        write_babi(root / "raw", count=40, seed=3, held_out=7)
        prepare("babi-dialog", root / "raw", root / "prepared", Settings(name="sample"))
        common = [f"--data={root / 'prepared' / 'task1'}", f"--epochs={FLAGS.epochs}", *MODEL]
        whole, killed = root / "whole", root / "killed"
        if start(*common, f"--workdir={whole}").wait():
            raise UserError("the training that is left alone failed")
        kills = [killed_while_training(killed, rng, *common, f"--workdir={killed}")]
        while len(kills) < FLAGS.kills and kills[-1] is not None:
            kills.append(killed_while_training(killed, rng, "--resume", f"--workdir={killed}"))
        if start("--resume", f"--workdir={killed}").wait():
            raise UserError("the last resume failed")
        (expected, steps), (found, reached) = states_of(whole), states_of(killed)
        record = {
            "kills": sum(saving is not None for saving in kills),
            "kills_while_writing": sum(saving is True for saving in kills),
            "steps": steps,
            "steps_reached": reached,
            "arrays": len(expected),
            "arrays_equal": sum(np.array_equal(found[name], value) for name, value in expected.items()),
            "rows_equal": _rows(whole) == _rows(killed),
            "seed": FLAGS.seed,
            "seconds": round(time.perf_counter() - begun, 1),
        }
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(json.dumps(record, indent=1))
    write_record(FLAGS.out, "soak", **record)


def _rows(run):
    """The history without times."""
    rows = [json.loads(line) for line in (run / "history.jsonl").read_text(encoding="utf-8").split("\n") if line]
    return [{name: row[name] for name in row if "second" not in name} for row in rows]


if __name__ == "__main__":
    cli.run(main)
