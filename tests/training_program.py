"""Trains small models as its one argument says, in a process that chooses its backend and its
devices itself.

The argument is JSON: `{"data": {task: directory}, "settings": {task: {field: value}}, "epochs":
{task: 2.0}, "learning_rate": 0.001, "runs": [{"path": directory, "devices": "all", "interrupt":
7}], "evaluate": false}`. Each run trains every task into `path/task`. At step `interrupt` it gets a
signal, and continues.
"""

import json
import os
import pathlib
import signal
import sys

import keras
from helpers import SMALL_RUNS, at_step, evaluate, train_small

from colloquy.engine.train import resume
from colloquy.tasks import TASKS


def main(plan):
    found = {}
    for run in plan["runs"]:
        for task, data in plan["data"].items():
            found[f"{run['path']}/{task}"] = train_one(plan, run, task, data)
    print(
        json.dumps(
            {
                "modules": [name for name in ("tensorflow", "jax") if name in sys.modules],
                "runs": found,
            }
        )
    )


def train_one(plan, run, task, data):
    """Trains one model; returns its devices, and its metrics if they are asked for."""
    path = pathlib.Path(run["path"]) / task
    _, usual = SMALL_RUNS[task]
    options = {"devices": run["devices"], "epochs": plan["epochs"].get(task, usual["epochs"])}
    settings = plan["settings"].get(task, {}) | {
        "learning_rate": plan.get("learning_rate", usual["learning_rate"])
    }
    keras.utils.clear_session()
    if "interrupt" in run:
        try:
            with at_step(run["interrupt"], lambda: os.kill(os.getpid(), signal.SIGTERM)):
                train_small(task, data, path, settings, **options)
        except KeyboardInterrupt as error:
            print(error, file=sys.stderr)
        keras.utils.clear_session()
        trained = resume(TASKS[task], path, **options)
    else:
        trained = train_small(task, data, path, settings, **options)
    found = {"devices": trained.record["devices"], "history": trained.history()}
    if plan.get("evaluate"):
        found["metrics"] = evaluate(TASKS[task], path, "dev", precision="float32", baselines=False)[
            "metrics"
        ]
    return found


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
