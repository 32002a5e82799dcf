"""Writes a trained model as a TensorFlow SavedModel, which takes raw strings.

    python export.py --run=runs/dam --out=build/dam-serving

What its endpoints take and give: see `tasks/<task>/export.py`.
"""

from absl import flags

import colloquy
from colloquy.base import cli, runtime

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory that train.py made.", required=True)
flags.DEFINE_string(
    "out", None, "Directory of the model; the export is its subdirectory --version.", required=True
)
flags.DEFINE_integer(
    "version", 1, "Unused version number; TensorFlow Serving serves the highest.", lower_bound=0
)
flags.DEFINE_string(
    "decode",
    None,
    "Generation: field=value,... of models.decoding.Decoding; default: the run's own, which its "
    "config.json names, or greedy search. beam=1: greedy search.",
)


def main() -> None:
    options = {}
    if FLAGS.decode is not None:
        options["decode"] = FLAGS.decode
    path = colloquy.export(FLAGS.run, FLAGS.out, FLAGS.version, **options)

    from colloquy.engine.export import call_lines
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    run = Run.open(FLAGS.run)
    lines = [f"{path}: to call it:", "", "import os", ""]
    for name, value in runtime.FASTER.items():
        lines.append(f'os.environ.setdefault("{name}", "{value}")')
    lines += [
        "",
        "import tensorflow as tf",
        "",
        f"model = tf.saved_model.load({str(path)!r})",
        call_lines(TASKS[run.task], run),
    ]
    print("\n".join(lines))


if __name__ == "__main__":
    cli.run(main)
