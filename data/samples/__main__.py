"""Writes the embedded sample of a task: simulated conversations as the raw files that prepare.py
reads.

python -m colloquy.data.samples --task=selection --out=build/sample/raw --seed=1
"""

from absl import flags

from colloquy.base.cli import run
from colloquy.data.samples.dialog import write_babi
from colloquy.data.samples.reading_comprehension import write_squad
from colloquy.data.samples.selection import write_smn
from colloquy.data.samples.talk import simulate
from colloquy.data.samples.world import write_entries


def write_conversations(directory, count=2500, seed=1, held_out=250):
    """Writes conversations to `train.txt` and `dev.txt` in the format of
    `data.corpora.conversations`.
    """
    lines = ["\t".join(turn.text for turn in turns) + "\n" for turns in simulate(count, seed)]
    return write_entries(directory, {"train.txt": lines[:-held_out], "dev.txt": lines[-held_out:]})


SAMPLES = {
    "selection": write_smn,
    "dialog": write_babi,
    "generation": write_conversations,
    "reading_comprehension": write_squad,
}

FLAGS = flags.FLAGS


def main():
    written = SAMPLES[FLAGS.task](FLAGS.out, seed=FLAGS.seed)
    print(
        f"Wrote {FLAGS.out}: " + ", ".join(f"{name} {count:,}" for name, count in written.items())
    )


if __name__ == "__main__":
    flags.DEFINE_enum("task", None, list(SAMPLES), "Task of the sample.", required=True)
    flags.DEFINE_string("out", None, "Directory to write the files to.", required=True)
    flags.DEFINE_integer("seed", 1, "The same seed writes the same files.")
    run(main)
