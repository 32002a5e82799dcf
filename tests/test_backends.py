"""Models on JAX and PyTorch give what they give on TensorFlow, and train there without it."""

import importlib.util
import json

import numpy as np
import pytest
from gradients_program import initial_weights, loss_and_gradients
from helpers import check_same_training, evaluate, ran, run_process

from colloquy.engine.run import Run
from colloquy.models import MODELS
from colloquy.tasks import TASKS

pytestmark = pytest.mark.slow


def needs(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed: pip install -e '.[{backend}]'")


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_models_have_the_same_loss_and_gradients_on_other_backends(backend, data, tmp_path):
    needs(backend)
    datasets, expected = {name: str(data[entry.task]) for name, entry in MODELS.items()}, {}
    for name in MODELS:
        weights = initial_weights(name, datasets[name])
        np.savez(tmp_path / f"{name}-weights.npz", *weights)
        expected[name] = loss_and_gradients(name, datasets[name], weights)
    ran(
        "tests/gradients_program.py",
        json.dumps(datasets),
        tmp_path,
        by=run_process,
        KERAS_BACKEND=backend,
    )
    for name, values in expected.items():
        found = np.load(tmp_path / f"{name}-{backend}.npz")
        for key, value in values.items():
            if value is None:  # which JAX gives as zeros
                assert key not in found or not found[key].any()
                continue
            scale = max(np.abs(value).max(), 1e-3)
            np.testing.assert_allclose(
                found[key] / scale, value / scale, atol=2e-4, err_msg=f"{name} {key}"
            )


@pytest.mark.parametrize("task", TASKS)
def test_models_train_resume_and_score_on_jax_without_tensorflow(task, data, tmp_path):
    needs("jax")
    whole, interrupted = tmp_path / "whole", tmp_path / "interrupted"
    runs = [
        {"path": str(whole), "devices": "one"},
        {"path": str(interrupted), "devices": "all", "interrupt": 7},
    ]
    epochs = {"selection": 1.0, "dialog": 3.0, "generation": 1.0, "reading_comprehension": 7.0}
    plan = {
        "data": {task: str(data[task])},
        "settings": {},
        "epochs": epochs,
        "runs": runs,
        "evaluate": True,
    }
    done = ran("tests/training_program.py", json.dumps(plan), by=run_process, KERAS_BACKEND="jax")
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["modules"] == ["jax"]
    runs = [found["runs"][str(path / task)] for path in (whole, interrupted)]
    assert runs[0]["metrics"] == runs[1]["metrics"]
    check_same_training(Run.open(interrupted / task), Run.open(whole / task))
    with_tensorflow = evaluate(
        TASKS[task], whole / task, "dev", precision="float32", baselines=False
    )
    assert with_tensorflow["metrics"] == pytest.approx(runs[0]["metrics"], rel=1e-4)
