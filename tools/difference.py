"""The difference of two dialog models in correct responses, with a bootstrap interval.

    python evaluate.py --run=runs/memma-1 --scores_out=build/memma-1.tsv
    python evaluate.py --run=runs/memr-1 --scores_out=build/memr-1.tsv
    python -m colloquy.tools.difference --of='build/memma-*.tsv' --minus='build/memr-*.tsv'

Each pattern names a model's answers to the same responses, a file per seed. The unit of the
bootstrap is a dialog, whose correct responses are averaged over seeds.
"""

import dataclasses
import glob

import numpy as np
from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError
from colloquy.data.text_files import read_lines, write_json

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "of", None, "Files of evaluate.py --scores_out, dialog models: a quoted pattern.", required=True
)
flags.DEFINE_string("minus", None, "The same of another model.", required=True)
flags.DEFINE_string("out", None, "JSON file to write.")
SAMPLES = 10_000  # of the bootstrap


@dataclasses.dataclass(frozen=True)
class Answers:
    """Answers of a model to the responses of some dialogs, averaged over seeds."""

    files: list
    responses: list  # dialog and correct text of each
    sizes: np.ndarray  # responses of each dialog
    correct: np.ndarray  # correct answers in each dialog


def main():
    one = read_answers(FLAGS.of)
    other = read_answers(FLAGS.minus)
    if one.responses != other.responses:
        raise UserError(
            f"expected answers to the same responses. Received: {one.files[0]}, {other.files[0]}"
        )
    points, low, high = difference(one.correct - other.correct, one.sizes)
    dialogs = len(one.sizes)
    print(
        f"{points:+.2f} points, 95 per cent interval {low:+.2f} to {high:+.2f}, "
        f"over {dialogs:,} dialogs"
    )
    if FLAGS.out:
        runtime.import_keras()

        from colloquy.engine.provenance import provenance

        record = {
            **provenance(),
            "points": points,
            "low": low,
            "high": high,
            "dialogs": dialogs,
            "seeds": [len(one.files), len(other.files)],
        }
        write_json(FLAGS.out, record)


def read_answers(pattern):
    """Reads the files of a pattern into `Answers`."""
    files = sorted(glob.glob(pattern))
    if not files:
        raise UserError(
            f"expected files of evaluate.py --scores_out for dialogs. Received: {pattern}"
        )
    responses = None
    correct_of_files = []
    for file in files:
        expected = []
        is_correct = []
        for _, line in read_lines(file, "responses"):
            fields = line.split("\t")
            if len(fields) != 3:
                raise UserError(
                    f"expected files of evaluate.py --scores_out for dialogs. Received: {file}"
                )
            dialog, answer, correct = fields
            expected.append((dialog, correct))
            is_correct.append(answer == correct)
        if responses is None:
            responses = expected
        if expected != responses:
            raise UserError(f"expected answers to the same responses. Received: {pattern}")
        correct_of_files.append(is_correct)

    dialogs = [dialog for dialog, _ in responses]
    _, numbers, sizes = np.unique(dialogs, return_inverse=True, return_counts=True)
    correct = np.bincount(numbers, weights=np.mean(correct_of_files, axis=0))
    return Answers(files, responses, sizes, correct)


def difference(gains, sizes):
    """Computes the mean gain per response and its interval, by a bootstrap over dialogs.

    Args:
        gains: Correct responses of one model minus those of the other, in each dialog.
        sizes: Responses in each dialog.

    Returns:
        Mean, lower and upper end of the 95 per cent interval, in points (per cent of responses).

    >>> difference(np.array([1.0, 1.0, 1.0]), np.array([4, 4, 4]))
    (25.0, 25.0, 25.0)
    """
    generator = np.random.default_rng(1)
    drawn = generator.integers(len(sizes), size=(SAMPLES, len(sizes)))
    points = 100 * gains[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(points, [2.5, 97.5])
    mean = 100 * gains.sum() / sizes.sum()
    return float(mean), float(low), float(high)


if __name__ == "__main__":
    cli.run(main)
