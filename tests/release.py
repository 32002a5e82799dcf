"""The DAM release: checkpoints as it writes them, with random numbers, and its forward pass in loops."""

import dataclasses
import json
import math
import pathlib

import numpy as np
import tensorflow as tf
from reference import block_in_loops, conv3d_in_loops, same_max_pool_in_loops, signal_in_loops

from data.vocabulary import SPECIALS, UNK_ID, Vocabulary
from engine import export as exporting
from engine.run import VOCABULARY
from tasks import TASKS
from tools.import_release import import_checkpoint

selection = TASKS["selection"]

# The stand-in: pairwise different primes. 7 turns and 11 words let SAME pooling pad on both sides and on the right.
L, B, D, T, K, V, FILTERS = 2, 3, 5, 7, 11, 13, (17, 19)
STEP = 23
VARIANTS = {"net": "full", "last_net": "last", "self_match_net": "self", "cross_match_net": "cross"}
CONF = {"max_turn_num": T, "max_turn_len": K, "_EOS_": 1, "learning_rate": 0.01, "batch_size": 2}

# Words of each turn and response: empty turns inside and at the end, full ones.
TURNS = ((11, 0, 4, 1), (5, 11, 2, 7, 11, 3, 6), (1,))
RESPONSES = (3, 11, 8)


def compiled(run):
    """A model of the run with fresh weights, as training.py compiles it."""
    training = selection.Training.of(run.record["training"])
    model = run.build_model()
    model.compile(
        optimizer=selection.optimizer(training),
        loss=selection.loss(training),
        jit_compile=False,
    )
    return model


def restored(run):
    """As `compiled`, with the run's state; also `{path: (weight, momentum, velocity)}` and the `State`."""
    model = compiled(run)
    progress = run.restore(model)
    averages = {variable.path.split("/")[-1]: np.asarray(variable) for variable in model.optimizer.variables}
    state = {}
    for weight in model.trainable_variables:
        name = weight.path.replace("/", "_")
        state[weight.path] = (np.asarray(weight), averages[f"{name}_momentum"], averages[f"{name}_velocity"])
    return model, state, progress


def check_export(run, turns, responses, expected, out):
    """Exports a run and gives the SavedModel the words of some ids, none of them `_EOS_`."""
    size = run.config.vocabulary_size
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
