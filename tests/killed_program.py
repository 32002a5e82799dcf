"""Trains a small model and kills the training at random moments, as its one argument says.

The argument is JSON: `{"task": name, "data": directory, "root": directory, "kills": 5, "seed": 1}`.
The model is that of `helpers.SMALL_RUNS`. `whole` in `root` is a training that is not interrupted.
Each of `run-0`, `run-1`, ... is killed and resumed again and again, or started anew where nothing
was saved, until it is finished. Prints JSON: the number of kills before the first save and after
it, and the number of runs.

Trainings are forks of this process, which loads TensorFlow but computes nothing.
"""

import json
import os
import pathlib
import random
import signal
import sys
import time
import traceback

from colloquy.base import backend, runtime

runtime.prepare(threads=1)
backend.import_keras()

from helpers import SMALL_RUNS  # noqa: E402

from colloquy.engine.run import LAST  # noqa: E402
from colloquy.engine.train import resume, start  # noqa: E402
from colloquy.tasks import TASKS  # noqa: E402


def main(task, data, root, kills, seed):
    root = pathlib.Path(root)
    rng = random.Random(seed)
    started_at = time.monotonic()
    assert wait(fork_training(task, data, root / "whole"), seconds=600) == 0
    duration = time.monotonic() - started_at

    counts = {"before": 0, "after": 0}
    runs = 0
    while sum(counts.values()) < kills:
        run = root / f"run-{runs}"
        child = fork_training(task, data, run)
        status = wait(child, seconds=rng.uniform(0.0, duration))
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            counts["after" if (run / LAST).exists() else "before"] += 1
        else:
            assert status == 0, run
            runs += 1
    run = root / f"run-{runs}"
    assert wait(fork_training(task, data, run), seconds=600) == 0
    print(json.dumps({**counts, "runs": runs + 1}))


def fork_training(task, data, run):
    """Starts the training of a run, or resumes it, in a process of its own; returns its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        if (run / LAST).exists():
            resume(TASKS[task], run, save_minutes=0.0)
        else:
            model, settings = SMALL_RUNS[task]
            start(TASKS[task], model, data, run, settings, save_minutes=0.0)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(child, seconds):
    """Waits for a process; returns its status, or `None` if it is running after some seconds."""
    end = time.monotonic() + seconds
    while True:
        number, status = os.waitpid(child, os.WNOHANG)
        if number:
            return status
        if time.monotonic() > end:
            return None
        time.sleep(0.001)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
