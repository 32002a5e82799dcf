"""The files that a training batch passes from raw text to the loss, and a REST request from the
socket to its answer.

PYTHONPATH=. python tests/walks.py > tests/walks.txt

A file counts if a function of it runs; building the model and loading a run are set-up and do not
count.
"""

import contextlib
import pathlib
import sys
import tempfile
import threading

import keras
import numpy as np
from fastapi.testclient import TestClient
from helpers import SMALL_PATH, SMALL_RUNS, prepare_small, train_small

from colloquy.data.batching import Epochs
from colloquy.engine.settings import build_config
from colloquy.models import MODELS
from colloquy.serving.app import create_app
from colloquy.serving.models import open_model
from colloquy.tasks import TASKS

ROOT = pathlib.Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def noting(files):
    """Adds the project's files whose functions run in the block, also in threads that it starts, to
    a dict.
    """

    seen = set()

    def note(frame, event, argument):
        name = frame.f_code.co_filename
        if name in seen:  # nearly always: a look at its path would take most of the time
            return
        seen.add(name)
        path = pathlib.Path(name)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] not in ("tests", ".venv"):
            files.setdefault(str(path.relative_to(ROOT)))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def batch_walk(name, directory):
    """The files that a batch of the small dataset of a task passes, prepared in a new
    `directory`.
    """
    task, (model_name, settings) = TASKS[name], SMALL_RUNS[name]
    files = {}
    prepare_small(name, directory, lambda: noting(files))
    with noting(files):
        dataset = task.load_dataset(directory / SMALL_PATH[name])
    spec = MODELS[model_name]
    model_settings, training = task.split_settings(spec, settings)
    config = build_config(task, spec, dataset, model_settings)
    model, split = spec.build(config), dataset.splits["train"]
    task.initialise(model, dataset, training)
    with noting(files):
        epochs = Epochs(lambda rng: task.training_batches(split, config, training, rng), seed=1)
        inputs, targets = task.collate(split, config, epochs.batch(0), 4)
        loss = task.loss(training)(targets, model(inputs, training=True))
    assert np.isfinite(keras.ops.convert_to_numpy(loss)).all()
    return files


def request_walk(path):
    """The files that a REST request to a run passes."""
    model, files = open_model("m", path), {}
    instances = [model.summary()["examples"][0]["instance"]]
    model.predictor.predict(instances)  # compiles
    app = create_app({"m": model})
    with noting(files), TestClient(app) as client:
        assert client.post("/v1/models/m:predict", json={"instances": instances}).status_code == 200
    return files


def main():
    walks = {}
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(sys.stderr):
        root = pathlib.Path(directory)
        for task in SMALL_RUNS:
            walks[f"{task}: a batch"] = batch_walk(task, root / task)
            run = train_small(
                task, root / task / SMALL_PATH[task], root / f"{task}-run", epochs=0.05
            )
            walks[f"{task}: a request"] = request_walk(run.path)
    for title, files in walks.items():
        print(f"{title}, {len(files)} files", *(f"    {file}" for file in files), "", sep="\n")


if __name__ == "__main__":
    main()
