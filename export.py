"""Writes a trained model as a TensorFlow SavedModel that takes raw strings, vocabulary inside.

    python export.py --run=runs/dam --out=build/dam-serving

What its endpoints take and give: see `engine.export.export`.
"""

import logging

from absl import flags

from base import cli

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory that train.py made.", required=True)
flags.DEFINE_string("out", None, "The model's directory; gets a folder --version.", required=True)
flags.DEFINE_integer("version", 1, "Must be free; TensorFlow Serving serves the highest.", lower_bound=0)
flags.DEFINE_string("decode", None, "Generation: field=value,... of models.decoding.Decoding; default: greedy search.")


def main():
    from engine.export import example, export  # TensorFlow takes seconds to load

    logging.getLogger("tensorflow").setLevel(logging.WARNING)  # it names the temporary directory
    path = export(run_path=FLAGS.run, out=FLAGS.out, version=FLAGS.version, decode=FLAGS.decode)
    print(f"{path}: to call it:\n\n{example(FLAGS.run, path)}")


if __name__ == "__main__":
    cli.run(main)
