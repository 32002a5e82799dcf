"""`import_release` against what the release itself computed.

`../shared/golden/dam` holds checkpoints that the release wrote and what it returned.
"""

import json
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import ROOT
from test_tools_import_release import compiled

from colloquy.tasks import TASKS
from colloquy.tools.import_release import import_checkpoint
from colloquy.tools.release_checkpoint import release_names

selection = TASKS["selection"]
GOLDEN = ROOT.parent / "shared" / "golden" / "dam"
SLOW = ("small", "small_last", "small_self", "small_cross", "released")
NETWORKS = ("small_positional", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW))


@pytest.fixture(scope="module", params=NETWORKS)
def golden(request, tmp_path_factory):
    """A network of the release, and the run that its checkpoint became."""
    folder = GOLDEN / request.param
    if not folder.is_dir():
        pytest.skip(f"{folder} with what the release computed is not on this machine")
    run = import_checkpoint(
        folder / "model.ckpt", folder / "config.json", tmp_path_factory.mktemp("golden") / "run"
    )
    with np.load(folder / "golden.npz") as file:
        arrays = {name: file[name] for name in file.files}
    conf = json.loads((folder / "config.json").read_text())
    reader = tf.train.load_checkpoint(str(folder / "model.ckpt"))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}

    def inputs(prefix):
        turns, response, label = (
            arrays[f"{prefix}/{name}"] for name in ("turns", "response", "label")
        )
        return {"turns": turns, "responses": response[:, None]}, label[:, None]

    facts = {"name": request.param, "conf": conf, "arrays": arrays, "tensors": tensors}
    return types.SimpleNamespace(**facts, run=run, inputs=inputs)


def test_logits_and_loss_are_the_releases(golden):
    assert golden.run.dataset["eos_id"] == golden.conf["_EOS_"]
    inputs, labels = golden.inputs("eval")
    logits = np.asarray(golden.run.load_model()(inputs))
    np.testing.assert_allclose(logits[:, 0], golden.arrays["eval_logits"], rtol=0, atol=1e-5)
    loss = selection.loss(selection.Training.of(golden.run.record["training"]))(labels, logits)
    assert float(np.mean(loss)) == pytest.approx(float(golden.arrays["eval_loss"]), abs=1e-6)


# Largest median distance of the weights from the release's; a step moves a weight by up to 1e-3.
# Adam divides each gradient by its own size, so rounding shows where a tiny gradient takes another
# path: another of two nearly equal cells wins a max pooling, or a ReLU opens. Until then (`small`:
# step 3, `released`: step 1) our gradients are the release's to 1e-4. In `released`, changing the
# initial weights by 1e-7 moves ours by a median of 2.9e-6; in float64 they end 2.0e-7 from the
# release's. A wrong formula shows more: an epsilon of 1e-7 in Adam gives 1.9e-4.
LARGEST_MEDIAN = {"released": 5e-6}


@tf.function
def gradient_of_max(cells):
    """What the cells of one pooled window get of its gradient."""
    with tf.GradientTape() as tape:
        tape.watch(cells)
        pooled = keras.ops.max_pool(cells, 3, 3)
    return tape.gradient(pooled, cells)


@pytest.mark.slow
def test_training_follows_the_release(golden):
    # Without oneDNN TensorFlow gives each of several equal maxima the whole gradient.
    assert tf.reduce_sum(gradient_of_max(tf.ones((1, 3, 3, 3, 1)))) == 1.0
    model = compiled(golden.run)
    names = release_names(model.config)
    for weight in model.trainable_variables:
        weight.assign(golden.arrays[f"initial/{names[weight.path]}"])
    losses, rates = [], []
    for i in range(len(golden.arrays["train_losses"])):
        rates.append(float(model.optimizer.learning_rate))
        losses.append(model.train_on_batch(*golden.inputs(f"train/{i}")))
        model.reset_metrics()
    np.testing.assert_allclose(losses, golden.arrays["train_losses"], rtol=1e-4)
    np.testing.assert_allclose(rates, golden.arrays["learning_rates"], rtol=1e-7)

    errors = [np.asarray(w) - golden.tensors[names[w.path]] for w in model.trainable_variables]
    median = np.median(np.abs(np.concatenate([error.ravel() for error in errors])))
    assert median < LARGEST_MEDIAN.get(golden.name, 1e-6)
