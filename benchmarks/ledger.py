"""The ledgers: arithmetic that real words need, beside what the machine computes at its peak, and time by part."""

import collections
import pathlib
import re
import tempfile
import time

import numpy as np

from base import runtime
from benchmarks.turns import timed

GFLOP = {"dense layers": 0.187, "convolutions": 0.027, "attention and matches": 0.014}
"""Arithmetic of a pair's real words: the paper's network, dev of ubuntu-irc. Training needs three times as much."""
PRODUCTS = {
    "bidaf": {
        "characters": "character_cnn/convolution",
        "words": "highway",
        "context": "contextual|modelling|end|logit",
        "query": "contextual",
    },
    "seq2seq": {"source": "encoder", "target_in": "decoder|logits"},
}
"""Layers whose weights each real entry of an input is multiplied by. Attention is left out: in these models it is less
than a hundredth."""
PARTS = {
    "dense layers": r"(?<!Batch)MatMul",
    "convolutions": "Conv3D|MaxPool|Elu",
    "attention and matches": "Einsum|BatchMatMul|Softmax",
    "layer normalisation": "Norm",
    "optimizer": "ResourceApply|L2Loss",
    "moved memory": "Gather|Concat|Pack|Pad|Transpose|Slice|Tile|BroadcastTo|Cast|Where|Scatter|Segment",
}
"""Operations of each part, the first that fits; all others are `element-wise and sums`. The products of recurrent
layers count as dense layers."""
AROUND = "Iterator|Dataset|PartitionedCall|While|_Recv|_Send|^(Process|Run|Record)$|Region"
"""Events that are not operations, or contain some."""


def ledger_block(block, peak):
    """The row of a block that counts needed GFLOP, run three times: to compile it, for its time, for its parts.

    `peak` is that of `peak_gflops`, from a process of its own: where batches share the cores, an operation has one.
    """
    block()
    found = timed(block)
    row = {"needed GFLOP/s": found.per_second, "peak GFLOP/s": peak, "fraction of the limit": found.per_second / peak}
    row["fraction by CPU time"] = found.per_cpu_second * runtime.available_cpus() / peak  # as if nothing else ran
    return row | fractions_by_part(block)


def training_gflop(name, weights, inputs):
    """GFLOP that the real words of a training batch need: the products of `PRODUCTS`, forward and both gradients."""
    sizes = {weight.path: np.prod(weight.shape) for weight in weights if len(weight.shape) > 1}
    return 6e-9 * sum(
        np.count_nonzero(inputs[name]) * sum(size for path, size in sizes.items() if re.search(pattern, path))
        for name, pattern in PRODUCTS[name].items()
    )


def peak_gflops(dtype, rows=6000, size=200, seconds=1.0):
    """The fastest product of the feed-forward nets' shape, `(rows, size) x (size, size)`, on all cores."""
    import tensorflow as tf

    x, w = tf.ones((rows, size), dtype), tf.ones((size, size), dtype)
    product = tf.function(lambda: tf.matmul(x, w)[0, 0])
    product()
    best, end = float("inf"), time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        product().numpy()
        best = min(best, time.perf_counter() - started)
    return 2e-9 * rows * size * size / best


def fractions_by_part(block):
    """`{part: fraction}` of the time of TensorFlow's operations while a block runs, by its profiler, largest first."""
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    with tempfile.TemporaryDirectory() as directory:
        with tf.profiler.experimental.Profile(directory):
            block()
        [path] = pathlib.Path(directory).rglob("*.xplane.pb")
        [plane] = (each for each in xplane_pb2.XSpace.FromString(path.read_bytes()).planes if each.name == "/host:CPU")
    parts = collections.Counter()
    for event in (event for line in plane.lines for event in line.events):
        name, _, operation = plane.event_metadata[event.metadata_id].name.rpartition(":")
        if name and re.fullmatch(r"\w+", operation) and not re.search(AROUND, operation):
            part = (part for part, pattern in PARTS.items() if re.search(pattern, operation))
            parts[next(part, "element-wise and sums")] += event.duration_ps
    return {name: duration / parts.total() for name, duration in parts.most_common()}
