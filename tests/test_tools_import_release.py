"""`import_release` on checkpoints with random numbers, against the logits of the release's networks."""

import json

import numpy as np
import pytest
from helpers import run_script, splits_of_release
from release import (
    CONF,
    LOGITS,
    STEP,
    VARIANTS,
    D,
    L,
    V,
    import_stand_in,
    release_shapes,
    restored,
    some_inputs,
    stand_in,
    write_checkpoint,
)

from base.files import UserError
from data import pickles
from data.batching import Epochs
from data.vocabulary import EOS_ID, SPECIALS, UNK_ID, Vocabulary
from engine.evaluate import evaluate
from engine.run import VOCABULARY, Run
from engine.train import resume
from tasks import TASKS
from tools.import_release import import_checkpoint

selection = TASKS["selection"]


@pytest.fixture
def released(tmp_path):
    return stand_in(tmp_path)


@pytest.mark.parametrize("network", LOGITS)
def test_every_variable_of_a_stand_in_has_its_place(network, tmp_path):
    positional = network in ("net", "last_net")
    released = stand_in(tmp_path, network=network, positional=positional)
    run = import_stand_in(released, tmp_path / "run")
    assert run.config.variant == VARIANTS[network]
    turns, responses = some_inputs()
    best = run.load_model()
    logits = np.asarray(best({"turns": turns, "responses": responses[:, None]}))
    np.testing.assert_allclose(logits[:, 0], LOGITS[network], atol=1e-5)

    model, state, progress = restored(run)
    assert int(model.optimizer.iterations) == progress.step == STEP
    names = {tensor.tobytes(): name for name, tensor in released.tensors.items()}
    found = {path: names[weight.tobytes()] for path, (weight, _, _) in state.items()}
    assert sorted(found.values()) == sorted(release_shapes(network, positional))
    for weight in best.trainable_variables:
        ours, momentum, velocity = state[weight.path]
        np.testing.assert_array_equal(weight, ours)
        np.testing.assert_array_equal(momentum, released.tensors[f"loss/{found[weight.path]}/Adam"])
        np.testing.assert_array_equal(velocity, released.tensors[f"loss/{found[weight.path]}/Adam_1"])


# === With a dataset ===


def write_dataset(path, dimension=D):
    """A prepared dataset with as many words as the stand-in."""
    splits = splits_of_release(np.random.default_rng(3), range(2, V + 1), EOS_ID, [(20, 2), (3, 10), (0, 10)])
    path.mkdir()
    with open(path / "data.pkl", "wb") as file:
        pickles.dump(splits, file)
    with open(path / "word_embedding.pkl", "wb") as file:
        pickles.dump(np.zeros((V + 1, dimension), "float32"), file)
    Vocabulary((*SPECIALS, *(f"word{id}" for id in range(3, V + 1)))).save(path / "vocabulary.txt")
    facts = {"task": "selection", "name": "tiny", "eos_id": EOS_ID, "unk_id": UNK_ID}
    (path / "dataset.json").write_text(json.dumps(facts))
    return path


def test_a_run_with_a_dataset_is_scored(tmp_path):
    dataset = write_dataset(tmp_path / "prepared")
    run = import_stand_in(stand_in(tmp_path, network="self_match_net"), tmp_path / "run", data=dataset)
    facts = {"path": str(dataset), "name": "tiny", "eos_id": EOS_ID, "unk_id": UNK_ID, "hashed_words": 0}
    assert run.dataset == {**facts, "text": {"tokenizer": "whitespace", "lower": False}}
    assert (run.path / VOCABULARY).read_text() == (dataset / "vocabulary.txt").read_text()
    evaluate(selection, run.path, "dev", scores_out=tmp_path / "scores", baselines=False)
    scores = [float(line.split("\t")[0]) for line in (tmp_path / "scores").read_text().splitlines()]
    split, model = selection.load_dataset(dataset).splits["dev"], run.load_model()
    assert len(scores) == len(split.label) == 30
    for line in (0, 12):
        inputs = split.collate(split.context[[line]], np.array([[line]]), 7, 11, cut=False)
        assert scores[line] == pytest.approx(float(model(inputs)[0, 0]), abs=1e-5)


def test_resume_continues_from_the_releases_step(tmp_path):
    dataset = write_dataset(tmp_path / "prepared")
    run = import_stand_in(stand_in(tmp_path, network="self_match_net"), tmp_path / "run")
    model, _, _ = restored(run)
    train, training = selection.load_dataset(dataset).splits["train"], selection.Training.of(run.record["training"])
    losses = []
    epochs = Epochs(lambda rng: selection.training_batches(train, model.config, training, rng), training.seed)
    for step in range(STEP, STEP + 3):
        losses.append(model.train_on_batch(*selection.collate(train, model.config, epochs.batch(step), 4)))
        model.reset_metrics()

    # 20 steps per epoch, a validation every 2: the first is after step 24, and epoch 1.3 ends with step 26.
    resume(selection, run.path, data=dataset, epochs=1.3)
    assert [row["step"] for row in run.history()] == [STEP + 1, 26]
    assert [row["loss"] for row in run.history()] == pytest.approx([losses[0], np.mean(losses[1:])], rel=1e-5)
    resumed, _, progress = restored(run)
    assert int(resumed.optimizer.iterations) == progress.step == STEP + 3
    pairs = zip(resumed.trainable_variables, model.trainable_variables, strict=True)
    errors = [np.abs(np.asarray(ours) - np.asarray(theirs)).ravel() for ours, theirs in pairs]
    assert np.mean(np.concatenate(errors)) < 1e-5  # of three steps of 0.01


# === Errors ===


def refused(tmp_path, match, checkpoint, config, error=UserError, **options):
    """Importing fails with a sentence, and leaves the directory as it was."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error, match=match) as caught:
        import_checkpoint(checkpoint, config, tmp_path / "run", **options)
    assert sorted(tmp_path.rglob("*")) == before
    return str(caught.value)


def test_all_variables_that_do_not_fit_are_listed(released, tmp_path):
    tensors = dict(released.tensors)
    del tensors["self_stack_1/FFN_1/bias"], tensors["loss/loss/bias/Adam_1"]
    tensors["t_attend_r_2/FFN_2/weights"] = np.zeros((D, 2), "float32")
    tensors["loss/weights"] = np.zeros((77, 1), "float32")
    tensors["self_stack_0/third"] = tensors["loss/epoch"] = np.float32(0)
    broken = write_checkpoint(tmp_path / "broken", tensors)
    start, listed = refused(tmp_path, "broken", broken, released.config).split(": ", 1)
    assert start == f"{broken} does not fit {released.config}"
    assert sorted(listed.split("; ")) == [
        "loss/epoch is unknown",
        "loss/loss/bias/Adam_1 is missing",
        "loss/weights has shape (77, 1) where (76, 1) is expected",
        "self_stack_0/third is unknown",
        "self_stack_1/FFN_1/bias is missing",
        f"t_attend_r_2/FFN_2/weights has shape ({D}, 2) where ({D}, {D}) is expected",
    ]


def test_refuses_a_checkpoint_of_something_else(released, tmp_path):
    other = write_checkpoint(tmp_path / "other", {**released.tensors, "word_embedding": np.zeros(3, "float32")})
    refused(tmp_path, "not a checkpoint of the DAM release: word_embedding ", other, released.config)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{'batch_size': 2}", "expected JSON"),
        ('{"batch_size": 2, "_EOS_": 1}', "max_turn_num is missing"),
        (json.dumps({**CONF, "_EOS_": 0}), "_EOS_.*greater than or equal to 1.* 0"),
        # What the conf says and the weights do not show must still fit them.
        (json.dumps({**CONF, "max_turn_num": 13}), r"loss/weights has shape \(76, 1\) where \(152, 1\) is expected"),
    ],
)
def test_refuses_a_wrong_conf(released, tmp_path, text, match):
    released.config.write_text(text)
    refused(tmp_path, rf"conf\.json.*{match}", released.checkpoint, released.config)


def test_a_run_appears_whole_or_not_at_all(released, tmp_path, monkeypatch):
    files = released.checkpoint, released.config
    refused(tmp_path, r"nowhere: no such checkpoint; .*nowhere\.index", tmp_path / "nowhere", released.config)
    other = write_dataset(tmp_path / "other", dimension=3)
    refused(tmp_path, f"other: the run has embedding_dim {D}, here it is 3", *files, data=other)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("mine")
    refused(tmp_path, "run must not exist yet, or be an empty directory", *files)
    (tmp_path / "run" / "mine").unlink()

    def full(run, *_):
        (run.path / "last.npz").write_bytes(b"half")
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", full)
        refused(tmp_path, "No space", *files, error=OSError)
    data = tmp_path / "model.ckpt.data-00000-of-00001"
    for file, content in ((data, data.read_bytes()[:100]), (tmp_path / "model.ckpt.index", b"no index")):
        file.write_bytes(content)
        refused(tmp_path, r"model\.ckpt: the checkpoint cannot be read\. ", *files)


def test_script_makes_a_run(released, tmp_path):
    arguments = [f"--checkpoint={released.checkpoint}", f"--config={released.config}", f"--out={tmp_path / 'run'}"]
    result = run_script("tools/import_release.py", *arguments)
    assert (result.returncode, result.stdout) == (0, f"{tmp_path / 'run'}: the release's checkpoint as a run\n")
    assert Run.open(tmp_path / "run").load_model().config.levels == L
