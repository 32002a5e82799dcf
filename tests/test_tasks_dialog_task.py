"""`tasks.dialog.task`: what the dataset decides, batches, optimizer and loss, what a run keeps."""

import types

import numpy as np
import pytest

from base.files import UserError
from engine.train import start
from models import MODELS
from tasks import TASKS
from tasks.dialog.data import World
from tasks.dialog.scoring import margin_loss, softmax_loss
from tasks.dialog.task import Training

dialog = TASKS["dialog"]


@pytest.fixture(scope="module")
def dataset(prepared_dialog):
    return dialog.load_dataset(prepared_dialog)


def test_the_dataset_decides_sizes(dataset):
    config, _ = dialog.configure(MODELS["memma"], dataset, dialog.divide(MODELS["memma"], {"hops": "2"}))
    world = dataset.world
    words = [len(text.split()) for text in world.candidates]
    longest = max(*words, *dataset.splits["train"].sentences.words.lengths)
    expected = {
        "hops": 2,
        "vocabulary_size": len(world.vocabulary.words),
        "candidates": (477, sum(words)),
        "entities": len(world.entities),
        "types": len({type for _, type, _ in world.entities}),
        "candidate_entities": (477, max(map(len, world.encoded_candidates.entities.lists()))),
        "match_groups": world.match_groups[0].shape,
        "match_candidates": world.match_groups[2].shape,
        "max_words": 32,  # the next multiple of 16
    }
    assert {name: getattr(config, name) for name in expected} == expected and 16 < longest <= 32
    for name in list(expected)[1:]:
        with pytest.raises(UserError, match=f"^--set {name}=3: .* decides {name}"):
            dialog.configure(MODELS["memma"], dataset, dialog.divide(MODELS["memma"], {name: "3"}))


def test_training_takes_no_eos_id(prepared_dialog, tmp_path):
    with pytest.raises(UserError, match="--eos_id=7 with memma"):
        start(dialog, "memma", prepared_dialog, tmp_path / "run", {}, eos_id=7)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["dialog", "generation"])
@pytest.mark.parametrize(
    ("settings", "clip", "rates"),
    [
        ({"decay": 0.25, "gradient_clip": 3.0}, 3.0, [0.08, 0.065, 0.05, 0.02, 0.02]),
        ({"decay": 1.0, "gradient_clip": 0.0}, None, [0.08] * 5),
    ],
)
def test_learning_rate_decays_linearly_to_a_fraction(name, settings, clip, rates):
    optimizer = TASKS[name].optimizer(TASKS[name].Training(learning_rate=0.08, **settings), 40)
    assert optimizer.global_clipnorm == clip and not optimizer.use_ema
    found = []
    for step in (0, 10, 20, 40, 70):
        optimizer.iterations.assign(step)
        found.append(float(optimizer.learning_rate))
    assert found == pytest.approx(rates, rel=1e-5)
    averaged = dialog.optimizer(Training(ema=0.75), 40)
    assert averaged.use_ema and averaged.ema_momentum == 0.75


def test_loss_is_the_one_that_the_settings_name():
    answers, logits = np.array([[2, -1]]), np.array([[[0.5, 1.0, 1.25], [9.0, 0.0, 0.0]]], "float32")
    np.testing.assert_array_equal(dialog.loss(Training())(answers, logits), softmax_loss(answers, logits))
    chosen = dialog.loss(Training(loss="margin", margin=1.7))
    np.testing.assert_array_equal(chosen(answers, logits), margin_loss(answers, logits, 1.7))


def test_a_run_keeps_its_world(dataset, tmp_path):
    dialog.save_assets(dataset, tmp_path)
    assert World.load(tmp_path) == dataset.world
    assert {file.name for file in tmp_path.iterdir()} == {*World.FILES, "action_mask.json", "phrases.txt"}
    assert (tmp_path / "phrases.txt").read_text().splitlines() == dataset.phrases()
    run = types.SimpleNamespace(dataset=dataset.facts())
    assert dialog.dataset_of(run).facts() == dialog.dataset_of(run, dataset.path).facts() == dataset.facts()
    with pytest.raises(UserError, match="is no directory"):
        dialog.dataset_of(run, tmp_path / "absent")
