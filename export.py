"""Writes a trained model as a TensorFlow SavedModel that takes raw strings, vocabulary inside.

    python export.py --run=runs/dam --out=build/dam-serving

What its endpoints take and give: see `tasks/<task>/export.py`.
"""

from absl import flags

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
    "Generation: field=value,... of models.decoding.Decoding; default: greedy search.",
)


def main():
    runtime.import_keras()

    from colloquy.engine.export import example, export
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    run = Run.open(FLAGS.run)
    task = TASKS[run.task]
    options = {}
    if FLAGS.decode is not None:
        options["decode"] = FLAGS.decode
    path = export(task, run, FLAGS.out, FLAGS.version, **options)
    lines = [f"{path}: to call it:", "", "import os", ""]
    for name, value in runtime.FASTER.items():
        lines.append(f'os.environ.setdefault("{name}", "{value}")')
    lines += [
        "",
        "import tensorflow as tf",
        "",
        f"model = tf.saved_model.load({str(path)!r})",
        example(task, run),
    ]
    print("\n".join(lines))


if __name__ == "__main__":
    cli.run(main)
