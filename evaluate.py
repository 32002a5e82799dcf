"""Scores a split with a trained model and prints the figures beside the floors and the paper's.

python evaluate.py --run=runs/dam --split=dev
"""

from absl import flags

import cli
from metrics.ranking import TIES

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory that train.py made.", required=True)
flags.DEFINE_enum("split", "dev", ["train", "dev", "test"], "Split to score.")
flags.DEFINE_string("data", None, "Prepared dataset; default: the one the run was trained on.")
flags.DEFINE_enum("ties", "loss", list(TIES), "What equal scores get: see metrics/ranking.py.")
flags.DEFINE_enum("precision", "float32", ["float32", "bfloat16", "float16"], "Of computation.")
flags.DEFINE_string("scores_out", None, "Also writes `score TAB label` lines, as the release does.")
flags.DEFINE_string("measured_out", None, "Also writes a results/measured JSON file.")
flags.DEFINE_enum("partial_batches", "keep", ["keep", "drop"], "drop: leave out the last lines as DAM's release does.")
flags.DEFINE_bool("floors", True, "Compute the floors too.")


def main():
    from evaluation import evaluate  # TensorFlow takes seconds to load

    evaluate(
        run_path=FLAGS.run,
        split=FLAGS.split,
        data=FLAGS.data,
        ties=FLAGS.ties,
        precision=FLAGS.precision,
        scores_out=FLAGS.scores_out,
        measured_out=FLAGS.measured_out,
        floors=FLAGS.floors,
        partial_batches=FLAGS.partial_batches,
    )


if __name__ == "__main__":
    cli.run(main)
