"""Times the training of two dialog models side by side: same data, batches and dimension, in turn, in one process.

python -m benchmarks.dialog_speed --data='build/babi/task*'

The MEMMA paper says that its model trains in about half the time of the recurrent one (MEMR): 200 iterations, mean of
ten. Here each block is some steps of either model on the same batches; a row gives the medians over blocks, and the
ratio of the medians.
"""

import glob
import itertools
import json
import pathlib
import resource
import shlex
import statistics
import sys
import time

from absl import flags
from rich.console import Console
from rich.table import Table

import cli

FLAGS = flags.FLAGS
flags.DEFINE_string("data", "build/babi/task*", "Prepared dataset, or a quoted pattern of several.")
flags.DEFINE_list("models", ["memma", "memr"], "Two keys of models.MODELS.")
flags.DEFINE_integer("batch_size", 8, "Dialogs a step.", lower_bound=1)
flags.DEFINE_integer("blocks", 10, "Timed blocks of each model.", lower_bound=1)
flags.DEFINE_integer("steps", 20, "Steps a block.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Of weights and batches.", lower_bound=0)
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")


def main():
    import keras

    from evaluation import commit, hardware

    if len(FLAGS.models) != 2:
        raise cli.UserError(f"--models expects two. Received: {','.join(FLAGS.models)}")
    paths = [path for path in sorted(glob.glob(FLAGS.data)) if pathlib.Path(path).is_dir()]
    if not paths:
        raise cli.UserError(f"--data expects directories that prepare.py made. Received: {FLAGS.data}")
    one, other = FLAGS.models
    table = Table("", f"{one}, responses/s", f"{other}, responses/s", f"{one} needs of {other}'s time")
    rows = {}
    for path in paths:
        speeds = rows[pathlib.Path(path).name] = time_models(FLAGS.models, path)
        table.add_row(pathlib.Path(path).name, *(f"{v:,.0f}" for v in speeds), f"{speeds[1] / speeds[0]:.2f}")
        keras.utils.clear_session()
    Console(width=120).print(table)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of the process, all datasets and both models: {memory:.2f} GB")
    if FLAGS.out:
        record = {
            "command": shlex.join(["python", "-m", "benchmarks.dialog_speed", *sys.argv[1:]]),
            "models": FLAGS.models,
            "responses_per_second": rows,
            "peak_gigabytes": round(memory, 2),
            "hardware": hardware(),
            "commit": commit(),
        }
        with cli.atomic_file(FLAGS.out) as file:
            json.dump(record, file, indent=1)


def time_models(names, path):
    """Responses a second that each model trains on, medians over blocks.

    Args:
        names: Keys of `models.MODELS`.
        path: A prepared dialog dataset.
    """
    import keras
    import numpy as np

    from models import MODELS
    from runs import make_config
    from tasks import dialog

    dataset = dialog.load_dataset(path)
    split, training = dataset.splits["train"], dialog.Training()
    models = []
    for name in names:
        keras.utils.set_random_seed(FLAGS.seed)
        entry = MODELS[name]
        model = entry.build(make_config(entry.config, dialog.model_settings(dataset, {})))
        dialog.initialise(model, dataset, training)
        model.compile(optimizer=dialog.optimizer(training, 5e-3, 10_000), loss=dialog.loss(training), jit_compile=False)
        models.append(model)
    rng = np.random.default_rng(FLAGS.seed)
    rows = itertools.chain.from_iterable(
        dialog.training_batches(split, models[0].config, training, FLAGS.batch_size, rng) for _ in itertools.count()
    )

    def block(model, batches):
        started, responses = time.perf_counter(), 0
        for batch in batches:
            inputs, answers = dialog.collate(split, model.config, batch, 4)
            model.train_on_batch(inputs, answers)
            responses += (answers >= 0).sum()
        return responses / (time.perf_counter() - started)

    speeds = [[] for _ in models]
    for number in range(1 + FLAGS.blocks):
        batches = list(itertools.islice(rows, FLAGS.steps))
        for model, of_model in zip(models, speeds, strict=True):
            speed = block(model, batches)
            if number:  # the first block compiles
                of_model.append(speed)
    return [statistics.median(of_model) for of_model in speeds]


if __name__ == "__main__":
    cli.run(main)
