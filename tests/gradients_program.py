"""Computes the loss of a batch and its gradients for every model, on the backend that Keras has.

The two arguments are a JSON object `{model: directory of a prepared dataset}` and a directory: of
each model its weights are read from `MODEL-weights.npz` there, and what is found is written to
`MODEL-BACKEND.npz`.
"""

import json
import pathlib
import sys

import keras
import numpy as np
from gradients import gradients_of
from helpers import SMALL_RUNS, randomised

from colloquy.engine.settings import build_config
from colloquy.models import MODELS
from colloquy.tasks import TASKS


def small(name, data):
    """A small model, and the loss of a batch of its dataset as a function without arguments."""
    entry = MODELS[name]
    task = TASKS[entry.task]
    dataset = task.load_dataset(data)
    known = entry.config.model_fields | task.Training.model_fields
    given = {
        **SMALL_RUNS[entry.task][1],
        "bidirectional": "true",
        "positional": "true",
        "batch_size": 7,
    }
    settings = {field: value for field, value in given.items() if field in known}
    model_settings, training = task.split_settings(entry, settings)
    config = build_config(task, entry, dataset, model_settings)
    model = entry.build(config)
    split = dataset.splits["train"]
    batch = task.training_batches(split, config, training, np.random.default_rng(1))[0]
    inputs, targets = task.collate(split, config, batch, 4)
    loss = task.loss(training)
    return model, lambda: keras.ops.mean(loss(targets, model(inputs)))


def initial_weights(name, data):
    """Random weights for the small model, a list of arrays."""
    return randomised(small(name, data)[0], seed=3).get_weights()


def loss_and_gradients(name, data, weights):
    """The loss and the gradients of all trainable weights, NumPy, by their number and path."""
    model, loss = small(name, data)
    model.set_weights(weights)
    value, *gradients = gradients_of(lambda *_: loss(), model.trainable_variables)
    paths = (f"{number} {weight.path}" for number, weight in enumerate(model.trainable_variables))
    return {"loss": value, **dict(zip(paths, gradients, strict=True))}


def main(datasets, directory):
    for name, data in datasets.items():
        with np.load(directory / f"{name}-weights.npz") as stored:
            weights = [stored[f"arr_{number}"] for number in range(len(stored.files))]
        found = loss_and_gradients(name, data, weights)
        np.savez(
            directory / f"{name}-{keras.config.backend()}.npz",
            **{k: v for k, v in found.items() if v is not None},
        )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), pathlib.Path(sys.argv[2]))
