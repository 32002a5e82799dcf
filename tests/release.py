"""The DAM release: checkpoints as it writes them, with random numbers, and the logits that its networks give."""

import json
import math
import types

import numpy as np
import tensorflow as tf

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
LOGITS = {
    "net": [0.976186, 0.848002, 1.110276],
    "last_net": [0.081785, 0.289143, 0.125225],
    "self_match_net": [-1.716826, -2.114893, -1.678522],
    "cross_match_net": [0.910958, 0.837269, 0.909362],
}
"""Of `some_inputs`, by loops written from the release's description (commit c967326); the first two add positions."""


def compiled(run):
    """A model of the run with fresh weights, as training.py compiles it."""
    training = selection.Training.of(run.record["training"])
    model = run.build_model()
    model.compile(selection.optimizer(training), selection.loss(training), jit_compile=False)
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
    values = [tf.constant(value) for value in values]
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)
    return prefix


def stand_in(path, **network):
    tensors = release_tensors(**network)
    (path / "conf.json").write_text(json.dumps(CONF))
    checkpoint = write_checkpoint(path / "model.ckpt", tensors)
    return types.SimpleNamespace(tensors=tensors, checkpoint=checkpoint, config=path / "conf.json")


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
