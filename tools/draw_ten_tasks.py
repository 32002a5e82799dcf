"""Draws MEMMA against MEMR task by task, as figure 5 of its article, from results/measured.

python -m tools.draw_ten_tasks --out=docs/images/ten-tasks.png
"""

import pathlib

from absl import flags

from base import cli
from tools import ten_tasks

FLAGS = flags.FLAGS
flags.DEFINE_string("out", "build/ten-tasks.png", "The picture.")


def main():
    ten_tasks.draw(pathlib.Path(__file__).resolve().parent.parent / "results" / "measured", pathlib.Path(FLAGS.out))
    print(FLAGS.out)


if __name__ == "__main__":
    cli.run(main)
