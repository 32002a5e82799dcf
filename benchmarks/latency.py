"""Times single requests to two exported models side by side, in turn, in one process.

python -m benchmarks.latency --one=build/reader/1 --other=build/talker/1

A reading-comprehension model is asked one question on a passage of 150 words, a generation model for a reply to 15
words, a selection model for the order of ten candidates of 15 words after nine turns of 15 words. A row gives the
median over requests.
"""

import statistics
import sys
import time

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from base.files import UserError
from benchmarks.turns import write_record

FLAGS = flags.FLAGS
flags.DEFINE_string("one", None, "A version that export.py wrote.", required=True)
flags.DEFINE_string("other", None, "What it is compared with.", required=True)
flags.DEFINE_integer("requests", 30, "Timed requests to each.", lower_bound=1)
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")
SENTENCE = "the cook of the old house by the river knows what her guests want ."  # 15 words


def main():
    import tensorflow as tf

    turn = tf.constant([[SENTENCE]])
    requests = {
        "answer": {
            "passage": tf.constant([" ".join([SENTENCE] * 10)]),
            "question": tf.constant(["What does she know ?"]),
        },
        "reply": {"turns": turn},
        "rank": {"turns": tf.repeat(turn, 9, axis=1), "candidates": tf.repeat(turn, 10, axis=1)},
    }
    models, names = [], []
    for path in (FLAGS.one, FLAGS.other):
        try:
            model = tf.saved_model.load(path)
        except OSError as error:
            raise UserError(f"{path}: expected a version that export.py wrote. {error}") from error
        names.append(next((name for name in requests if hasattr(model, name)), None))
        if names[-1] is None:
            raise UserError(f"{path}: expected one of the endpoints {', '.join(requests)}. Received: none of them")
        models.append(model)
    times = [[], []]
    for number in range(3 + FLAGS.requests):
        for model, name, found in zip(models, names, times, strict=True):
            started = time.perf_counter()
            getattr(model, name)(**requests[name])
            if number >= 3:  # the first ones trace and compile
                found.append(1000 * (time.perf_counter() - started))
    milliseconds = [statistics.median(found) for found in times]
    table = Table("", "endpoint", "ms per request", "slowest")
    for path, name, median, found in zip((FLAGS.one, FLAGS.other), names, milliseconds, times, strict=True):
        table.add_row(path, name, f"{median:.1f}", f"{max(found):.1f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    print(f"one takes {milliseconds[0] / milliseconds[1]:.2f} of the other's time")
    write_record(FLAGS.out, "latency", models=[FLAGS.one, FLAGS.other], endpoints=names, milliseconds=milliseconds)


if __name__ == "__main__":
    cli.run(main)
