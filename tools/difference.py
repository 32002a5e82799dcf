"""The difference of two models in per cent of correct responses, with a bootstrap interval over
dialogs.

python evaluate.py --run=runs/memma-1 --scores_out=build/memma-1.tsv
python evaluate.py --run=runs/memr-1 --scores_out=build/memr-1.tsv
python -m colloquy.tools.difference --of='build/memma-*.tsv' --minus='build/memr-*.tsv'
--out=build/difference.json

Each pattern names a model's answers to the same responses, a file per seed; a dialog counts with
its mean over them.
"""

import glob

import numpy as np
from absl import flags

from colloquy.base import cli
from colloquy.base.files import UserError
from colloquy.data.text_files import read_lines, write_json

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "of", None, "Files of evaluate.py --scores_out, dialog models: a quoted pattern.", required=True
)
flags.DEFINE_string("minus", None, "The same of another model.", required=True)
flags.DEFINE_string("out", None, "JSON file to write.")
SAMPLES = 10_000


def main():
    from colloquy.engine.provenance import provenance  # Keras takes seconds to load

    (files, responses, sizes, of), (others, same, _, minus) = read(FLAGS.of), read(FLAGS.minus)
    if responses != same:
        raise UserError(
            f"expected answers to the same responses. Received: {files[0]}, {others[0]}"
        )
    points, low, high = difference(of - minus, sizes)
    print(
        f"{points:+.2f} points, 95 per cent interval {low:+.2f} to {high:+.2f}, over {len(sizes):,} dialogs"
    )
    if FLAGS.out:
        found = {
            "points": points,
            "low": low,
            "high": high,
            "dialogs": len(sizes),
            "seeds": [len(files), len(others)],
        }
        write_json(FLAGS.out, {**provenance(), **found})


def read(pattern):
    """The files of a pattern; dialog and correct text of each response; responses and correct
    answers per dialog.
    """
    files = sorted(glob.glob(pattern))
    tables = [
        [tuple(line.split("\t")) for _, line in read_lines(file, "responses")] for file in files
    ]
    if not files or any(len(row) != 3 for table in tables for row in table):
        raise UserError(
            f"expected files of evaluate.py --scores_out for dialogs. Received: {pattern}"
        )
    responses = [[(dialog, correct) for dialog, _, correct in table] for table in tables]
    if any(each != responses[0] for each in responses):
        raise UserError(f"expected answers to the same responses. Received: {pattern}")
    _, dialog, sizes = np.unique(
        [dialog for dialog, _ in responses[0]], return_inverse=True, return_counts=True
    )
    right = np.mean([[said == correct for _, said, correct in table] for table in tables], axis=0)
    return files, responses[0], sizes, np.bincount(dialog, right)


def difference(gains, sizes):
    """The mean gain per response in points, and the ends of its 95 per cent interval: `SAMPLES`
    draws of dialogs.

    `gains` are the correct responses of one model minus those of the other in each dialog, `sizes`
    its responses.

    >>> difference(np.array([1.0, 1.0, 1.0]), np.array([4, 4, 4]))
    (25.0, 25.0, 25.0)
    """
    drawn = np.random.default_rng(1).integers(len(sizes), size=(SAMPLES, len(sizes)))
    points = 100 * gains[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return tuple(map(float, (100 * gains.sum() / sizes.sum(), *np.percentile(points, [2.5, 97.5]))))


if __name__ == "__main__":
    cli.run(main)
