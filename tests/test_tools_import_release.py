"""`import_release`: against what the release itself computed, and against loops written from its description.

`../shared/golden/dam` holds checkpoints that the release wrote and what it returned. Where that is absent, a checkpoint
of the same kind with random numbers stands in.
"""

import dataclasses
import json
import math
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import ROOT, run_script
from reference import block_in_loops, conv3d_in_loops, same_max_pool_in_loops, signal_in_loops

from base.files import UserError
from data import pickles
from data.batching import epochs_of
from data.vocabulary import EOS_ID, SPECIALS, UNK_ID, Vocabulary
from engine import export as exporting
from engine.evaluation import evaluate
from engine.runs import VOCABULARY, Run
from engine.training import Fit, train
from tasks import TASKS
from tools.import_release import import_checkpoint, release_names

selection = TASKS["selection"]
GOLDEN = ROOT.parent / "shared" / "golden" / "dam"
NETWORKS = (
    "small_positional",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("small", "small_last", "small_self", "small_cross", "released")
    ),
)
VARIANTS = {"net": "full", "last_net": "last", "self_match_net": "self", "cross_match_net": "cross"}

# The stand-in: pairwise different primes. 7 turns and 11 words let SAME pooling pad on both sides and on the right.
L, B, D, T, K, V, FILTERS = 2, 3, 5, 7, 11, 13, (17, 19)
STEP = 23
CONF = {"max_turn_num": T, "max_turn_len": K, "_EOS_": 1, "learning_rate": 0.01, "batch_size": 2}

# Words of each turn and response: empty turns inside and at the end, full ones.
TURNS = ((11, 0, 4, 1), (5, 11, 2, 7, 11, 3, 6), (1,))
RESPONSES = (3, 11, 8)


# === The release's outputs ===


@dataclasses.dataclass(frozen=True)
class Golden:
    """A network of the release, and the run that its checkpoint became."""

    name: str
    conf: dict
    arrays: dict
    tensors: dict
    run: Run

    def inputs(self, prefix):
        return {
            "turns": self.arrays[f"{prefix}/turns"],
            "responses": self.arrays[f"{prefix}/response"][:, None],
        }, self.arrays[f"{prefix}/label"][:, None]


@pytest.fixture(scope="module", params=NETWORKS)
def golden(request, tmp_path_factory):
    folder = GOLDEN / request.param
    if not folder.is_dir():
        pytest.skip(f"{folder} with what the release computed is not on this machine")
    run = import_checkpoint(folder / "model.ckpt", folder / "config.json", tmp_path_factory.mktemp("golden") / "run")
    with np.load(folder / "golden.npz") as file:
        arrays = {name: file[name] for name in file.files}
    conf = json.loads((folder / "config.json").read_text())
    reader = tf.train.load_checkpoint(str(folder / "model.ckpt"))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    return Golden(request.param, conf, arrays, tensors, run)


def test_config_is_the_checkpoints(golden):
    conf, config = golden.conf, golden.run.config
    assert config["settings"] == {
        "vocabulary_size": conf["vocab_size"],
        "embedding_dim": conf["emb_size"],
        "max_turns": conf["max_turn_num"],
        "max_words": conf["max_turn_len"],
        "levels": conf["stack_num"],
        "variant": VARIANTS[conf["variant"]],
        "conv_filters": [32, 16],
        "positional": conf["is_positional"],
        "embedding_dropout": 0.0,
        "train_embedding": True,
        "lazy_embedding": False,
        "masking": "release",
        "scalar_bias": True,
        "match_divisor": math.sqrt(200),
        "response_rows": conf["variant"] == "last_net",
        "hashed_words": 0,
        "unknown_id": 0,
        "lexical": False,
    }
    assert config["training"]["loss_clip"] == 10.0
    assert config["fit"]["batch_size"] == conf["batch_size"]
    assert config["fit"]["learning_rate"] == conf["learning_rate"]
    assert config["dataset"]["eos_id"] == conf["_EOS_"]


def test_logits_and_loss_are_the_releases(golden, record_property):
    inputs, labels = golden.inputs("eval")
    logits = np.asarray(golden.run.load_model()(inputs))
    error = np.abs(logits[:, 0] - golden.arrays["eval_logits"]).max()
    record_property("logits", float(error))
    assert error < 1e-5
    loss = selection.loss(selection.Training(**golden.run.config["training"]))(labels, logits)
    assert float(np.mean(loss)) == pytest.approx(float(golden.arrays["eval_loss"]), abs=1e-6)


def compiled(run):
    """A model of the run with fresh weights, as training.py compiles it."""
    training = selection.Training(**run.config["training"])
    model = run.build_model()
    model.compile(
        optimizer=selection.optimizer(training, run.config["fit"]["learning_rate"]),
        loss=selection.loss(training),
        jit_compile=False,
    )
    return model


def restored(run):
    """As `compiled`, with the run's state; also `{path: (weight, momentum, velocity)}` and the position."""
    model = compiled(run)
    position = run.restore_state(model)
    averages = {variable.path.split("/")[-1]: np.asarray(variable) for variable in model.optimizer.variables}
    state = {}
    for weight in model.trainable_variables:
        name = weight.path.replace("/", "_")
        state[weight.path] = (np.asarray(weight), averages[f"{name}_momentum"], averages[f"{name}_velocity"])
    return model, state, position


def test_optimizer_state_is_the_checkpoints(golden):
    model, state, position = restored(golden.run)
    tensors, L = golden.tensors, golden.conf["stack_num"]
    names = {
        "word_embedding/embeddings": "word_embedding",
        f"self_attention_{L - 1}/W2": f"self_stack_{L - 1}/FFN_2/weights",
        "self_attention_0/b1": "self_stack_0/FFN_1/bias",
        "self_attention_0/attention_norm/gamma": "self_stack_0/attention_layer_norm/scale",
        "self_attention_0/ffn_norm/beta": "self_stack_0/FFN_layer_norm/bias",
        "aggregation/conv_1/kernel": "cnn_aggregation/filter_1",
        "aggregation/conv_0/bias": "cnn_aggregation/bias_0",
        "aggregation/W3": "loss/weights",
        "aggregation/b3": "loss/bias",
    }
    if golden.conf["is_positional"]:
        names["positional/lambda"] = "positional/lambda"
    if golden.conf["variant"] == "last_net":
        names[f"cross_match_{L}/utterance_attends/W1"] = f"u_attentd_r_{L - 1}/FFN_1/weights"
        names[f"cross_match_{L}/response_attends/W1"] = f"r_attend_u_{L - 1}/FFN_1/weights"
    elif golden.conf["variant"] != "self_match_net":
        names[f"cross_match_{L}/utterance_attends/W1"] = f"t_attend_r_{L}/FFN_1/weights"
        names["cross_match_0/response_attends/W1"] = "r_attend_t_0/FFN_1/weights"
    for path, name in names.items():
        for ours, theirs in zip(state[path], (name, f"loss/{name}/Adam", f"loss/{name}/Adam_1"), strict=True):
            np.testing.assert_array_equal(ours, tensors[theirs], err_msg=theirs)
    assert len(state) == len(golden.conf["vars"])
    step = len(golden.arrays["train_losses"])
    assert position == {"step": step, "seconds": 0.0, "best": -1.0, "waited": 0}
    assert int(model.optimizer.iterations) == step == tensors["loss/Variable"]


# How far the weights may end from the release's, as a median; a step moves a weight by up to 1e-3. Adam divides each
# gradient by its own size, so a rounding shows wherever it sends a tiny gradient elsewhere: another of two nearly equal
# cells wins a max pooling, or a ReLU opens, on all padded rows at once. From equal weights our gradients are the
# release's to 1e-4 until such a place is met, in `small` in step 3, in `released` in step 1. There, changing the
# initial weights by 1e-7 of themselves moves our result by a median of 2.9e-6, and to 1.6e-6 from the release; in
# float64 our layers end 2.0e-7 from it (`small`: 1.0e-8). A wrong formula shows more: an epsilon of 1e-7 in Adam gives
# 1.9e-4 (`small_self`: 8e-5).
LARGEST_MEDIAN = {"released": 5e-6}


@tf.function
def gradient_of_max(cells):
    """What the cells of one pooled window get of its gradient."""
    with tf.GradientTape() as tape:
        tape.watch(cells)
        pooled = keras.ops.max_pool(cells, 3, 3)
    return tape.gradient(pooled, cells)


def test_training_follows_the_release(golden, record_property):
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

    errors = {names[w.path]: np.abs(np.asarray(w) - golden.tensors[names[w.path]]) for w in model.trainable_variables}
    median = float(np.median(np.concatenate([error.ravel() for error in errors.values()])))
    worst = max(errors, key=lambda name: errors[name].max())
    loss = np.abs(losses / golden.arrays["train_losses"] - 1).max()
    shown = f"loss {loss:.1e}, weights median {median:.1e}, largest {errors[worst].max():.1e} in {worst}"
    record_property("training", shown)
    print(f"{golden.name}: {shown}")
    assert median < LARGEST_MEDIAN.get(golden.name, 1e-6)


@pytest.mark.parametrize("golden", ["small_positional"], indirect=True)
def test_export_takes_strings(golden, tmp_path):
    inputs, _ = golden.inputs("eval")
    rows = [
        b
        for b in range(len(inputs["turns"]))
        if all((ids != EOS_ID).all() for ids in (inputs["turns"][b], inputs["responses"][b]))
    ]
    assert len(rows) >= 3  # text cannot say `_EOS_`, which the random turns hold
    check_export(
        golden.run, inputs["turns"][rows], inputs["responses"][rows, 0], golden.arrays["eval_logits"][rows], tmp_path
    )


def check_export(run, turns, responses, expected, out):
    """Exports a run and gives the SavedModel the words of some ids, none of them `_EOS_`."""
    size = run.config["settings"]["vocabulary_size"]
    vocabulary = Vocabulary((*SPECIALS, *(f"word{id}" for id in range(len(SPECIALS) + 1, size + 1))))
    vocabulary.save(run.path / VOCABULARY)

    def text(ids):
        return " ".join("never-seen" if id == UNK_ID else vocabulary.words[id - 1] for id in ids if id)

    served = tf.saved_model.load(str(exporting.export(selection, run, out)))
    turns = tf.constant([[text(ids) for ids in context] for context in turns])
    responses = tf.constant([text(ids) for ids in responses])
    for b in range(len(expected)):  # alone, where padding must not be cut
        logit = served.score(turns[b : b + 1], responses[b : b + 1])["logit"]
        np.testing.assert_allclose(logit, expected[b : b + 1], atol=1e-5)
    ranked = served.rank(turns, responses[:, None])
    np.testing.assert_allclose(ranked["logits"][:, 0], expected, atol=1e-5)
    np.testing.assert_allclose(ranked["scores"][:, 0], 1 / (1 + np.exp(-expected)), atol=1e-5)


# === The stand-in ===


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
        shapes |= {f"cnn_aggregation/filter_{i}": (3, 3, 3, before, after), f"cnn_aggregation/bias_{i}": (after,)}
    cells = 1 * 2 * 2  # 7 x 11 x 11 after two poolings
    return shapes | {"loss/weights": (cells * FILTERS[1], 1), "loss/bias": (1,)}


def release_tensors(network="net", positional=True):
    """A checkpoint of the release with random numbers: weights, Adam's slots, its betas' powers, the step."""
    rng = np.random.default_rng(1)
    tensors = {}
    for name, shape in release_shapes(network, positional).items():
        inputs = math.prod(shape[:-1]) if len(shape) > 1 and name != "word_embedding" else 1
        weights = rng.normal(size=shape) / math.sqrt(inputs)
        tensors[name] = weights + 1 if name.endswith("scale") else weights
        tensors[f"loss/{name}/Adam"] = rng.normal(size=shape) * 1e-3
        tensors[f"loss/{name}/Adam_1"] = rng.random(shape) * 1e-5
    tensors = {name: value.astype("float32") for name, value in tensors.items()}
    powers = {f"loss/beta{i}_power": np.float32(beta**STEP) for i, beta in ((1, 0.9), (2, 0.999))}
    return {**tensors, **powers, "loss/Variable": np.int32(STEP)}


def write_checkpoint(prefix, tensors):
    """Writes what `tf.compat.v1.train.Saver` does."""
    names, values = zip(*tensors.items(), strict=True)
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(v) for v in values],
    )
    return prefix


@dataclasses.dataclass(frozen=True)
class StandIn:
    tensors: dict
    checkpoint: pathlib.Path
    config: pathlib.Path


def stand_in(path, **network):
    tensors = release_tensors(**network)
    (path / "conf.json").write_text(json.dumps(CONF))
    return StandIn(tensors, write_checkpoint(path / "model.ckpt", tensors), path / "conf.json")


@pytest.fixture
def released(tmp_path):
    return stand_in(tmp_path)


def import_stand_in(released, out, **options):
    return import_checkpoint(released.checkpoint, released.config, out, **options)


def ids_of(rng, count):
    return np.pad(rng.integers(1, V + 1, count), (0, K - count))


def some_inputs():
    """Contexts `(B, T, K)` and a response for each, `(B, K)`."""
    rng = np.random.default_rng(2)
    turns = np.zeros((B, T, K), "int32")
    for b, counts in enumerate(TURNS):
        for t, count in enumerate(counts):
            turns[b, t] = ids_of(rng, count)
    return turns, np.array([ids_of(rng, count) for count in RESPONSES], "int32")


# === The release's forward pass, in loops ===


def block_weights(w, name):
    """The variables of an attentive module of the release as `reference.block_in_loops` takes them."""
    norms = {ours: (w[f"{name}/{theirs}/scale"], w[f"{name}/{theirs}/bias"]) for ours, theirs in NORMS.items()}
    return norms | {
        f"{ours}{i}": w[f"{name}/FFN_{i}/{it}"] for i in (1, 2) for ours, it in (("W", "weights"), ("b", "bias"))
    }


NORMS = {"attention_norm": "attention_layer_norm", "ffn_norm": "FFN_layer_norm"}


def represent(ids, w):
    """The word vectors with positions, and what each self-attention layer makes of them."""
    x = w["word_embedding"][ids]
    if "positional/lambda" in w:
        x = x + w["positional/lambda"][:, None] * signal_in_loops(K, D, 10.0)
    found = [x]
    for l in range(L):
        block = block_weights(w, f"self_stack_{l}")
        found.append(block_in_loops(*[found[-1]] * 3, block, pairs=np.outer(ids, ids) > 0))
    return found


def release_logit(turns, response, network, tensors):
    """The logit of one context (T, K) and one response (K,), 0 = padding. The number of turns is not used."""
    w = {name: value.astype("float64") for name, value in tensors.items()}
    R = represent(response, w)
    image = []
    for ids in turns:
        U, real = represent(ids, w), np.outer(ids, response) > 0
        pairs = []
        for l in [L] if network == "last_net" else range(L + 1):
            u_block, r_block = f"t_attend_r_{l}", f"r_attend_t_{l}"
            if network == "last_net":
                u_block, r_block = f"u_attentd_r_{l - 1}", f"r_attend_u_{l - 1}"
            if network != "self_match_net":
                u_r = block_in_loops(U[l], R[l], R[l], block_weights(w, u_block), pairs=real)
                pairs.append((u_r, block_in_loops(R[l], U[l], U[l], block_weights(w, r_block), pairs=real.T)))
        if network == "last_net":
            pairs.append((U[L], R[L]))
        elif network != "cross_match_net":
            pairs += zip(U, R, strict=True)
        if network == "last_net":  # the rows of its image are the response's words
            pairs = [(r, u) for u, r in pairs]
        cells = [[[x[k] @ y[j] for x, y in pairs] for j in range(K)] for k in range(K)]
        image.append(np.array(cells) / math.sqrt(200))
    x = np.array(image)
    for i in (0, 1):
        kernel, bias = w[f"cnn_aggregation/filter_{i}"], w[f"cnn_aggregation/bias_{i}"]
        x = same_max_pool_in_loops(conv3d_in_loops(x, kernel, bias))
    return x.ravel() @ w["loss/weights"][:, 0] + w["loss/bias"][0]


@pytest.mark.parametrize(
    ("network", "positional"),
    [("net", True), ("last_net", True), ("self_match_net", False), ("cross_match_net", False)],
)
def test_stand_in_matches_loops(network, positional, tmp_path):
    released = stand_in(tmp_path, network=network, positional=positional)
    run = import_stand_in(released, tmp_path / "run")
    assert run.config["settings"]["variant"] == VARIANTS[network]
    turns, responses = some_inputs()
    expected = [release_logit(*pair, network, released.tensors) for pair in zip(turns, responses, strict=True)]
    assert np.ptp(expected) > 0.05
    logits = np.asarray(run.load_model()({"turns": turns, "responses": responses[:, None]}))
    np.testing.assert_allclose(logits[:, 0], expected, atol=1e-5)


def test_stand_in_brings_every_variable(released, tmp_path):
    run = import_stand_in(released, tmp_path / "run")
    model, state, position = restored(run)
    names = {tensor.tobytes(): name for name, tensor in released.tensors.items()}
    found = set()
    for weight, momentum, velocity in state.values():
        name = names[weight.tobytes()]
        np.testing.assert_array_equal(momentum, released.tensors[f"loss/{name}/Adam"])
        np.testing.assert_array_equal(velocity, released.tensors[f"loss/{name}/Adam_1"])
        found.add(name)
    assert found == release_shapes("net", True).keys()
    assert int(model.optimizer.iterations) == position["step"] == STEP
    best = {weight.path: np.asarray(weight) for weight in run.load_model().trainable_variables}
    for path, (weight, _, _) in state.items():
        np.testing.assert_array_equal(best[path], weight)


def test_stand_in_exports(tmp_path):
    released = stand_in(tmp_path, network="last_net")
    run = import_stand_in(released, tmp_path / "run")
    with pytest.raises(UserError, match=r"cannot be exported: strings need a vocabulary\.txt"):
        exporting.export(selection, run, tmp_path / "out")
    turns, responses = (np.where(ids == EOS_ID, V, ids) for ids in some_inputs())
    expected = np.array(
        [release_logit(*pair, "last_net", released.tensors) for pair in zip(turns, responses, strict=True)]
    )
    check_export(run, turns, responses, expected, tmp_path / "out")


# === With a dataset ===


@pytest.fixture
def dataset(tmp_path):
    return write_dataset(tmp_path / "prepared")


def write_dataset(path, dimension=D):
    """A prepared dataset with as many words as the stand-in."""
    rng = np.random.default_rng(3)

    def lines(contexts, candidates):
        y, c, r = [], [], []
        for _ in range(contexts):
            context = [id for _ in range(3) for id in (*rng.integers(2, V + 1, 4).tolist(), EOS_ID)]
            for n in range(candidates):
                y.append(int(n == 0))
                c.append(context)
                r.append(rng.integers(2, V + 1, 5).tolist())
        return {"y": y, "c": c, "r": r}

    path.mkdir()
    with open(path / "data.pkl", "wb") as file:
        pickles.dump((lines(20, 2), lines(3, 10), lines(0, 10)), file)
    with open(path / "word_embedding.pkl", "wb") as file:
        pickles.dump(np.zeros((V + 1, dimension), "float32"), file)
    Vocabulary((*SPECIALS, *(f"word{id}" for id in range(3, V + 1)))).save(path / "vocabulary.txt")
    facts = {"task": "selection", "name": "tiny", "eos_id": EOS_ID, "unk_id": UNK_ID}
    (path / "dataset.json").write_text(json.dumps(facts))
    return path


def test_a_dataset_gives_vocabulary_and_path(released, dataset, tmp_path):
    run = import_stand_in(released, tmp_path / "run", data=dataset)
    text = {"tokenizer": "whitespace", "lower": False}
    expected = {
        "path": str(dataset),
        "name": "tiny",
        "eos_id": EOS_ID,
        "unk_id": UNK_ID,
        "hashed_words": 0,
        "text": text,
    }
    assert run.config["dataset"] == expected
    assert (run.path / VOCABULARY).read_text() == (dataset / "vocabulary.txt").read_text()


def test_evaluate_scores_with_the_release(dataset, tmp_path):
    released = stand_in(tmp_path, network="self_match_net")
    run = import_stand_in(released, tmp_path / "run")
    evaluate(selection, run.path, "dev", data=dataset, scores_out=tmp_path / "scores", baselines=False)
    scores = [float(line.split("\t")[0]) for line in (tmp_path / "scores").read_text().splitlines()]
    split = selection.load_dataset(dataset).splits["dev"]
    assert len(scores) == len(split.label) == 30
    for line in (0, 12):
        inputs = split.collate(split.context[[line]], np.array([[line]]), T, K, cut=False)
        expected = release_logit(inputs["turns"][0], inputs["responses"][0, 0], "self_match_net", released.tensors)
        assert scores[line] == pytest.approx(expected, abs=1e-5)


def test_resume_goes_on_from_the_releases_step(dataset, tmp_path):
    run = import_stand_in(stand_in(tmp_path, network="self_match_net"), tmp_path / "run")
    model, _, _ = restored(run)
    data = selection.load_dataset(dataset)
    training = selection.Training(**run.config["training"])
    fit = Fit(**run.config["fit"])

    def make_batches(rng):
        return selection.training_batches(data.splits["train"], model.config, training, fit.batch_size, rng)

    losses = []
    for batch, _ in zip(epochs_of(make_batches, fit.seed, start=STEP), range(3), strict=False):
        losses.append(model.train_on_batch(*selection.collate(data.splits["train"], model.config, batch, 4)))
        model.reset_metrics()

    # 20 steps per epoch, a validation every 2: the first is after step 24, and epoch 1.3 ends with step 26.
    train(selection, None, dataset, run.path, Fit(epochs=1.3), {}, resume=True)
    assert [row["step"] for row in run.history()] == [STEP + 1, 26]
    assert [row["loss"] for row in run.history()] == pytest.approx([losses[0], np.mean(losses[1:])], rel=1e-5)
    resumed, _, position = restored(run)
    assert int(resumed.optimizer.iterations) == position["step"] == STEP + 3
    pairs = zip(resumed.trainable_variables, model.trainable_variables, strict=True)
    errors = [np.abs(np.asarray(ours) - np.asarray(theirs)).ravel() for ours, theirs in pairs]
    assert np.mean(np.concatenate(errors)) < 1e-5  # of three steps of 0.01


# === Errors ===


def refused(tmp_path, match, checkpoint, config, **options):
    """Importing fails with a sentence, and leaves the directory as it was."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=match):
        import_checkpoint(checkpoint, config, tmp_path / "run", **options)
    assert sorted(tmp_path.rglob("*")) == before


def test_all_variables_that_do_not_fit_are_listed(released, tmp_path):
    tensors = dict(released.tensors)
    del tensors["self_stack_1/FFN_1/bias"], tensors["loss/loss/bias/Adam_1"]
    tensors["t_attend_r_2/FFN_2/weights"] = np.zeros((D, 2), "float32")
    tensors["loss/weights"] = np.zeros((77, 1), "float32")
    tensors["self_stack_0/third"] = tensors["loss/epoch"] = np.float32(0)
    write_checkpoint(tmp_path / "broken", tensors)
    with pytest.raises(UserError) as caught:
        import_checkpoint(tmp_path / "broken", released.config, tmp_path / "run")
    start, listed = str(caught.value).split(": ", 1)
    assert start == f"{tmp_path / 'broken'} does not fit {released.config}"
    assert sorted(listed.split("; ")) == [
        "loss/epoch is unknown",
        "loss/loss/bias/Adam_1 is missing",
        "loss/weights has shape (77, 1) where (76, 1) is expected",
        "self_stack_0/third is unknown",
        "self_stack_1/FFN_1/bias is missing",
        f"t_attend_r_2/FFN_2/weights has shape ({D}, 2) where ({D}, {D}) is expected",
    ]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("word_embedding", None),
        ("word_embedding", np.zeros(3, "float32")),
        ("cnn_aggregation/filter_1", np.zeros((3, 3), "float32")),
    ],
)
def test_refuses_a_checkpoint_of_something_else(released, tmp_path, name, value):
    tensors = {**released.tensors, name: value}
    checkpoint = write_checkpoint(tmp_path / "other", {n: v for n, v in tensors.items() if v is not None})
    refused(tmp_path, f"none of DAM's release: it has no {name} with", checkpoint, released.config)


def test_refuses_a_missing_or_broken_checkpoint(released, tmp_path):
    refused(tmp_path, r"nowhere: no such checkpoint; expected \S+nowhere\.index", tmp_path / "nowhere", released.config)
    data = tmp_path / "model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    refused(tmp_path, r"model\.ckpt: the checkpoint cannot be read\. ", released.checkpoint, released.config)
    (tmp_path / "model.ckpt.index").write_bytes(b"no index")
    refused(tmp_path, r"model\.ckpt: the checkpoint cannot be read\. ", released.checkpoint, released.config)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, "conf.json cannot be read: No such file"),
        ("{'batch_size': 2}", r"conf\.json: expected JSON\. "),
        ("[]", r"conf\.json: expected the release's conf, a JSON object\. Received: list"),
        ('{"batch_size": 2, "_EOS_": 1}', "expected .* with max_turn_num, max_turn_len, learning_rate$"),
        (json.dumps({**CONF, "max_turn_len": "11"}), "max_turn_len to be a positive whole number. Received: '11'"),
        (json.dumps({**CONF, "batch_size": 2.5}), "batch_size to be a positive whole number. Received: 2.5"),
        (json.dumps({**CONF, "learning_rate": 0}), "learning_rate to be a positive number. Received: 0"),
        # What the conf says and the weights do not show must still fit them.
        (json.dumps({**CONF, "max_turn_num": 13}), r"loss/weights has shape \(76, 1\) where \(152, 1\) is expected"),
    ],
)
def test_refuses_a_wrong_conf(released, tmp_path, text, match):
    released.config.unlink()
    if text is not None:
        released.config.write_text(text)
    refused(tmp_path, match, released.checkpoint, released.config)


def test_refuses_a_used_directory(released, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("mine")
    refused(tmp_path, "run must not exist yet, or be an empty directory", released.checkpoint, released.config)


def test_a_run_appears_whole_or_not_at_all(released, tmp_path, monkeypatch):
    def full(run, *_):
        (run.path / "last.npz").write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(Run, "save_state", full)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError, match="No space"):
        import_stand_in(released, tmp_path / "run")
    assert sorted(tmp_path.rglob("*")) == before


def test_refuses_another_dataset(released, tmp_path):
    other = write_dataset(tmp_path / "other", dimension=3)
    match = f"other: the run has embedding_dim {D}, here it is 3: they come from different preparations"
    refused(tmp_path, match, released.checkpoint, released.config, data=other)


# === The script ===


def test_script_makes_a_run(released, tmp_path):
    arguments = [f"--checkpoint={released.checkpoint}", f"--config={released.config}", f"--out={tmp_path / 'run'}"]
    result = run_script("tools/import_release.py", *arguments)
    assert (result.returncode, result.stdout) == (0, f"{tmp_path / 'run'}: the release's checkpoint as a run\n")
    assert Run.open(tmp_path / "run").load_model().config.levels == L
