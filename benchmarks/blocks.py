"""What the sides of `benchmarks.turns.in_turn` compute: any model's training; DAM's training and ranking in steps."""

import itertools
import time

from benchmarks.turns import build, use_plain_layers
from engine.parallel import in_order, share_cores

COUNTED = {
    "dialog": ("responses", lambda answers: int((answers >= 0).sum())),
    "generation": ("target tokens", lambda target: int((target > 0).sum())),
    "reading_comprehension": ("questions", len),
    "selection": ("pairs", lambda labels: labels.size),
}
"""What is counted per second, and how many of a batch's targets these are."""


def training_block(side, path, batch_size, steps, seed, multiple=4):
    """In the process of a side: what trains as train.py does for a block and returns the examples per second.

    Args:
        side: See `benchmarks.turns.parse_side`.
        path: Prepared dataset.
        batch_size: Examples per step; `None`: the task's default.
        steps: Steps per block; a block goes on where the one before ended.
        seed: Of weights and batches.
        multiple: See `engine.train`: sizes are rounded up to it, by the task.
    """
    from data.batching import Epochs
    from engine.devices import OneDevice

    model, task, dataset, training = build(side, path, seed)
    model.optimizer.build(model.trainable_variables)
    split = dataset.splits["train"]
    training = training.replace(batch_size=batch_size or training.batch_size)
    epochs = Epochs(lambda rng: task.training_batches(split, model.config, training, rng), seed)

    def make_arrays(step):
        return task.collate(split, model.config, epochs.batch(step), multiple)

    _, count = COUNTED[task.name]
    device = OneDevice()
    batches = device.batches(make_arrays, 0, 10**9, task.loss_counts, training.batch_size)
    step, stream = device.step(model, batches), iter(batches)
    step(next(stream))  # traces

    def block():
        started, counted = time.perf_counter(), 0
        for inputs, targets in itertools.islice(stream, steps):
            step((inputs, targets))
            counted += count(targets.numpy())
        return counted / (time.perf_counter() - started)

    return block


def dam_block(side, without, what, lengths, path, batch_size, steps, seed):
    """In the process of a side: what trains or ranks for a block and returns the pairs per second."""
    import numpy as np

    if "at once" not in without:
        share_cores()
    if "plain" in without:
        use_plain_layers()
    model, task, dataset, training = build(side, path, seed)
    if "padded" in without:
        model.unpad = False
    rng = np.random.default_rng(seed)
    if what == "training":
        batches = _training_arrays(task, dataset.splits["train"], model.config, training, batch_size, steps, rng)
    else:
        batches = _ranking_arrays(dataset.splits["dev"], model.config, lengths, steps)
    if lengths == "full":
        batches = [(_filled(inputs, model.config, rng), others) for inputs, others in batches]

    def compute(batch):
        inputs, others = batch  # labels; or which candidates are real
        if what == "training":
            model.train_on_batch(inputs, others)
            return others.size
        model.predict_on_batch(inputs)
        return others.sum()

    compute(batches[0])  # compiles

    def block():
        started = time.perf_counter()
        pairs = sum(map(compute, batches) if "at once" in without else in_order(compute, batches, model))
        return pairs / (time.perf_counter() - started)

    return block


def _training_arrays(task, split, config, training, batch_size, steps, rng):
    size = batch_size // (1 + training.negatives_per_positive) if training.negatives == "fresh" else batch_size
    every = task.training_batches(split, config, training.replace(batch_size=size), rng)
    return [task.collate(split, config, batch, 4) for batch in _spread(every, split, config, steps)]


def _ranking_arrays(split, config, lengths, steps):
    import numpy as np

    from tasks.selection.scoring import ranking_batches
    from tasks.selection.split import inputs_of

    if lengths == "dataset":
        every = ranking_batches(split, config.replace(masking="exact"))
    else:  # ten candidates in a row, as where their lengths do not differ
        every = [(np.arange(8), np.arange(80).reshape(8, 10))]
    found = []
    for contexts, lines in _spread(every, split, config, steps):
        if config.masking == "release":  # it has no way to share a context
            contexts, lines = np.repeat(contexts, lines.shape[1]), lines.reshape(-1, 1)
        found.append((inputs_of(split, config, contexts, lines, 4), lines >= 0))
    return found


def _spread(every, split, config, steps):
    """As many batches as a block has steps, from the costliest, so that no core waits for one at the end, down."""
    import numpy as np

    sizes = [split.sizes(contexts, lines, config.max_turns, config.max_words) for contexts, lines, *_ in every]
    order = np.argsort([size.max(axis=0).prod() for size in sizes])
    return [every[i] for i in order[((np.arange(steps) + 0.5) / steps * len(every)).astype(int)][::-1]]


def _filled(inputs, config, rng):
    """The same batch with every turn and word there."""
    B, N = inputs["responses"].shape[:2]
    shapes = {"turns": (B, config.max_turns, config.max_words), "responses": (B, N, config.max_words)}
    return {name: rng.integers(3, config.vocabulary_size, shape, dtype="int32") for name, shape in shapes.items()}
