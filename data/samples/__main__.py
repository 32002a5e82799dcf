"""Writes the embedded sample of a task, as the raw files that prepare.py reads.

python -m colloquy.data.samples --task=reading_comprehension --out=build/sample/raw --seed=1
"""

from absl import flags

from colloquy.base.cli import run
from colloquy.data.samples.reading_comprehension import write_squad

SAMPLES = {
    "reading_comprehension": write_squad,
}

FLAGS = flags.FLAGS


def main():
    written = SAMPLES[FLAGS.task](FLAGS.out, seed=FLAGS.seed)
    counts = [f"{name} {count:,}" for name, count in written.items()]
    print(f"Wrote {FLAGS.out}: {', '.join(counts)}")


if __name__ == "__main__":
    flags.DEFINE_enum("task", None, list(SAMPLES), "Task of the sample.", required=True)
    flags.DEFINE_string("out", None, "Directory to write the files to.", required=True)
    flags.DEFINE_integer("seed", 1, "The same seed writes the same files.")
    run(main)
