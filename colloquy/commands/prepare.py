"""Turns the raw files of a corpus into a dataset.

python prepare.py --corpus=chitchat --out=build/chitchat
python prepare.py --corpus=smn --source=../shared/data/ubuntu-irc --out=build/ubuntu-irc
python prepare.py --corpus=babi-dialog --source=../shared/data/babi-dialog --out=build/babi
python prepare.py --corpus=squad --source=../shared/data/squad --out=build/squad
python prepare.py --corpus=dailydialog --source=../shared/data/dailydialog --out=build/dailydialog
"""

from absl import flags

import colloquy
from colloquy.base import cli, machine
from colloquy.base.files import UserError
from colloquy.commands.prepare_flags import TASKS, define_flags, read_flags
from colloquy.data.corpora import CORPORA

FLAGS = flags.FLAGS
flags.DEFINE_string("corpus", None, f"Format of the files in --source: {', '.join(CORPORA)}.")
flags.DEFINE_string(
    "source",
    None,
    "Directory of the corpus: train, dev and test files. For conversations also one file, of which "
    "dev and test are drawn. chitchat needs none.",
)
flags.DEFINE_string("out", None, "Directory to write; missing or empty.")
flags.DEFINE_float(
    "max_memory_gb",
    None,
    "Memory that preparing may take; default: three quarters of what there is.",
    lower_bound=0.3,  # with less, word2vec waits for threads that cannot start
    upper_bound=1e6,
)
flags.mark_flags_as_required(["corpus", "out"])

flags.DEFINE_enum(
    "task",
    None,
    TASKS,
    "Task to prepare conversations for: generation or selection. Default: selection for chitchat, "
    "else generation.",
)
define_flags()


def main() -> None:
    if FLAGS.corpus not in CORPORA:
        raise UserError(f"--corpus expects one of {', '.join(CORPORA)}. Received: {FLAGS.corpus}")
    task = FLAGS.task or CORPORA[FLAGS.corpus].task
    settings = read_flags(FLAGS.corpus, task)

    # A stranger's file may describe values that fill the memory of the machine. With a limit, they
    # only end this process.
    max_memory_gb = FLAGS.max_memory_gb or 0.75 * machine.available_memory() / 1e9
    try:
        with machine.limited_memory(int(max_memory_gb * 1e9)):
            colloquy.prepare(FLAGS.corpus, FLAGS.source, FLAGS.out, task=task, **settings)
    except MemoryError as error:
        raise UserError(
            f"preparing {FLAGS.source or FLAGS.corpus} takes more than {max_memory_gb:.3g} GB of "
            "memory: --max_memory_gb=N allows more"
        ) from error


if __name__ == "__main__":
    cli.run(main)
