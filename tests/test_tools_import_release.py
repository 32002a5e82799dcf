"""`import_release` on checkpoints with random numbers, against the logits of the release's
networks.
"""

import json
import math
import pickle
import types

import numpy as np
import pytest
import tensorflow as tf
from helpers import splits_of_release

from colloquy.base.files import UserError
from colloquy.data.vocabulary import EOS_ID, SPECIALS, UNK_ID, Vocabulary
from colloquy.engine.run import Run
from colloquy.engine.train import resume
from colloquy.tasks import TASKS
from colloquy.tasks.selection.arrays import write_split
from colloquy.tasks.selection.data import SPLITS
from colloquy.tasks.selection.split import SelectionSplit
from colloquy.tools.import_release import import_checkpoint

selection = TASKS["selection"]

# The stand-in: pairwise different primes. 7 turns and 11 words let SAME pooling pad on both sides
# and on the right.
L, B, D, T, K, V, FILTERS = 2, 3, 5, 7, 11, 13, (17, 19)
STEP = 23
VARIANTS = {"net": "full", "last_net": "last", "self_match_net": "self", "cross_match_net": "cross"}
CONF = {"max_turn_num": T, "max_turn_len": K, "_EOS_": 1, "learning_rate": 0.01, "batch_size": 2}

# Words of each turn and response: empty turns inside and at the end, full ones.
TURNS = ((11, 0, 4, 1), (5, 11, 2, 7, 11, 3, 6), (1,))
RESPONSES = (3, 11, 8)
LOGITS = {
    "net": [0.976186, 0.848002, 1.110276],
    "last_net": [0.081785, 0.289143, 0.125225],
    "self_match_net": [-1.716826, -2.114893, -1.678522],
    "cross_match_net": [0.910958, 0.837269, 0.909362],
}
"""Of `some_inputs`, by loops written from the release's description (commit c967326); the first two
add positions.
"""


def compiled(run):
    """A model of the run with fresh weights, as engine/train.py compiles it."""
    training = selection.Training.of(run.record["training"])
    model = run.build_model()
    model.compile(selection.optimizer(training), selection.loss(training), jit_compile=False)
    return model


def restored(run):
    """A `compiled` model with the run's state, `{path: (weight, momentum, velocity)}` of it, and
    its progress.
    """
    model = compiled(run)
    progress = run.restore(model)
    averages = {
        variable.path.split("/")[-1]: np.asarray(variable) for variable in model.optimizer.variables
    }
    state = {}
    for weight in model.trainable_variables:
        name = weight.path.replace("/", "_")
        state[weight.path] = (
            np.asarray(weight),
            averages[f"{name}_momentum"],
            averages[f"{name}_velocity"],
        )
    return model, state, progress


def release_shapes(network, positional):
    """Shapes of the variables of one of the release's networks, by their names."""
    shapes = {"word_embedding": (V + 1, D)}
    if positional:
        shapes["positional/lambda"] = (K,)
    blocks = [f"self_stack_{l}" for l in range(L)]
    if network == "last_net":
        blocks += [f"u_attentd_r_{L - 1}", f"r_attend_u_{L - 1}"]
    elif network != "self_match_net":
        blocks += [f"{block}_{l}" for l in range(L + 1) for block in ("t_attend_r", "r_attend_t")]
    for block in blocks:
        for norm in ("attention_layer_norm", "FFN_layer_norm"):
            shapes |= {f"{block}/{norm}/scale": (D,), f"{block}/{norm}/bias": (D,)}
        for i in (1, 2):
            shapes |= {f"{block}/FFN_{i}/weights": (D, D), f"{block}/FFN_{i}/bias": (1,)}
    channels = {"net": 2 * (L + 1), "last_net": 2}.get(network, L + 1)
    for i, (before, after) in enumerate(((channels, FILTERS[0]), FILTERS)):
        shapes |= {
            f"cnn_aggregation/filter_{i}": (3, 3, 3, before, after),
            f"cnn_aggregation/bias_{i}": (after,),
        }
    cells = 1 * 2 * 2  # 7 x 11 x 11 after two poolings
    return shapes | {"loss/weights": (cells * FILTERS[1], 1), "loss/bias": (1,)}


def release_tensors(network="net", positional=True):
    """Random variables of a checkpoint: weights, Adam's averages, powers of its betas, the step."""
    rng = np.random.default_rng(1)
    tensors = {}
    for name, shape in release_shapes(network, positional).items():
        weights = rng.normal(size=shape)
        is_matrix = len(shape) > 1 and name != "word_embedding"
        if is_matrix:
            weights /= math.sqrt(math.prod(shape[:-1]))
        if name.endswith("scale"):
            weights += 1
        tensors[name] = weights.astype("float32")
        tensors[f"loss/{name}/Adam"] = (1e-3 * rng.normal(size=shape)).astype("float32")
        tensors[f"loss/{name}/Adam_1"] = (1e-5 * rng.random(shape)).astype("float32")
    tensors["loss/beta1_power"] = np.float32(0.9**STEP)
    tensors["loss/beta2_power"] = np.float32(0.999**STEP)
    tensors["loss/Variable"] = np.int32(STEP)
    return tensors


def write_checkpoint(prefix, tensors):
    """Writes what `tf.compat.v1.train.Saver` does."""
    names, values = zip(*tensors.items(), strict=True)
    values = [tf.constant(value) for value in values]
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=values
    )
    return prefix


def stand_in(path, **network):
    tensors = release_tensors(**network)
    (path / "conf.json").write_text(json.dumps(CONF))
    checkpoint = write_checkpoint(path / "model.ckpt", tensors)
    return types.SimpleNamespace(tensors=tensors, checkpoint=checkpoint, config=path / "conf.json")


def import_stand_in(released, out, **options):
    return import_checkpoint(released.checkpoint, released.config, out, **options)


def some_inputs():
    """Contexts `(B, T, K)` and a response for each, `(B, K)`."""
    rng = np.random.default_rng(2)
    turns = np.zeros((B, T, K), "int32")
    responses = np.zeros((B, K), "int32")
    for b, counts in enumerate(TURNS):
        for t, count in enumerate(counts):
            turns[b, t, :count] = rng.integers(1, V + 1, count)
    for b, count in enumerate(RESPONSES):
        responses[b, :count] = rng.integers(1, V + 1, count)
    return turns, responses


# === Without a dataset ===


@pytest.fixture
def released(tmp_path):
    return stand_in(tmp_path)


@pytest.mark.parametrize(
    "network",
    [
        "last_net",
        pytest.param("net", marks=pytest.mark.slow),
        pytest.param("self_match_net", marks=pytest.mark.slow),
        pytest.param("cross_match_net", marks=pytest.mark.slow),
    ],
)
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
        np.testing.assert_array_equal(
            velocity, released.tensors[f"loss/{found[weight.path]}/Adam_1"]
        )


# === With a dataset ===


def write_dataset(path, dimension=D):
    """A prepared dataset with as many words as the stand-in."""
    splits = splits_of_release(
        np.random.default_rng(3), range(2, V + 1), EOS_ID, [(20, 2), (3, 10), (0, 10)]
    )
    path.mkdir()
    (path / "arrays").mkdir()
    for name, lists in zip(SPLITS, splits, strict=True):
        split = SelectionSplit.of(lists["c"], lists["r"], lists["y"], EOS_ID)
        write_split(split, path / "arrays", name, V + 1)
    with open(path / "word_embedding.pkl", "wb") as file:
        pickle.dump(np.zeros((V + 1, dimension), "float32"), file)
    Vocabulary((*SPECIALS, *(f"word{id}" for id in range(3, V + 1)))).save(path / "vocabulary.txt")
    facts = {"task": "selection", "name": "tiny", "eos_id": EOS_ID, "unk_id": UNK_ID}
    (path / "dataset.json").write_text(json.dumps(facts))
    return path


@pytest.mark.slow
def test_resume_continues_from_the_releases_step(tmp_path):
    """20 steps per epoch, a validation every 2: the first is after step 24, and epoch 1.3 ends with
    step 26.
    """
    dataset = write_dataset(tmp_path / "prepared")
    run = import_stand_in(stand_in(tmp_path, network="self_match_net"), tmp_path / "run")
    resume(selection, run.path, data=dataset, epochs=1.3)
    assert [row["step"] for row in run.history()] == [STEP + 1, 26]
    resumed, _, progress = restored(run)
    assert int(resumed.optimizer.iterations) == progress.step == STEP + 3


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


@pytest.mark.parametrize(("name", "axes"), [("word_embedding", 2), ("cnn_aggregation/filter_1", 5)])
@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "one axis"])
def test_a_checkpoint_of_something_else_is_refused(released, tmp_path, name, axes, is_there):
    tensors = dict(released.tensors)
    del tensors[name]
    if is_there:
        tensors[name] = np.zeros(3, "float32")
    broken = write_checkpoint(tmp_path / "broken", tensors)
    message = f"not a checkpoint of the DAM release: {name} with {axes} axes is missing"
    refused(tmp_path, message, broken, released.config)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"batch_size": 2, "_EOS_": 1}', "max_turn_num is missing"),
        (json.dumps({**CONF, "max_turn_len": 10**7}), "max_turn_len.*1000.* 10000000"),
        (json.dumps({**CONF, "max_turn_num": 10**7}), "max_turn_num.*1000.* 10000000"),
        (json.dumps({**CONF, "_EOS_": 0}), "_EOS_.*greater than or equal to 1.* 0"),
        # What the conf says and the weights do not show must still fit them.
        (
            json.dumps({**CONF, "max_turn_num": 13}),
            r"loss/weights has shape \(76, 1\) where \(152, 1\) is expected",
        ),
    ],
)
def test_refuses_a_wrong_conf(released, tmp_path, text, match):
    released.config.write_text(text)
    refused(tmp_path, rf"conf\.json.*{match}", released.checkpoint, released.config)


def test_a_run_appears_whole_or_not_at_all(released, tmp_path, monkeypatch):
    files = released.checkpoint, released.config
    refused(
        tmp_path,
        r"nowhere: no such checkpoint; .*nowhere\.index",
        tmp_path / "nowhere",
        released.config,
    )
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
    for file, content in (
        (data, data.read_bytes()[:100]),
        (tmp_path / "model.ckpt.index", b"no index"),
    ):
        file.write_bytes(content)
        refused(tmp_path, r"model\.ckpt: the checkpoint cannot be read\. ", *files)
