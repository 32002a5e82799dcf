"""Cuts the excerpt of dialog bAbI beside this file from the corpus.

python -m colloquy.data.samples.dialog_babi.cut --source=../shared/data/babi-dialog --out=build/cut

The first dialogs of each file are kept, the facts about all restaurants that they name, and the
candidates whose words all occur in these dialogs and facts.
"""

import pathlib
import shutil

from absl import flags

from colloquy.base.cli import run
from colloquy.base.files import atomic_directory
from colloquy.data.corpora.babi_dialog import find_tasks

FLAGS = flags.FLAGS
KEPT = {"train": 7, "dev": 3}
"""Dialogs of each file."""
LICENSE = "LICENSE.txt"


def cut(source, out):
    words_by_file = {}  # of a knowledge base or candidates file -> words of its tasks
    for task in find_tasks(source):
        words = set()
        for split, count in KEPT.items():
            file = task.splits[split]
            dialogs = file.read_text(encoding="utf-8").split("\n\n")[:count]
            text = "\n\n".join(dialogs) + "\n"
            (out / file.name).write_text(text, encoding="utf-8")
            words.update(text.split())
        words_by_file.setdefault((task.knowledge, task.candidates), set()).update(words)

    for (knowledge, candidates), words in words_by_file.items():
        facts = [line for line in read(knowledge) if line.split()[1] in words]
        write(out / knowledge.name, facts)
        words.update("\n".join(facts).split())
        responses = [line for line in read(candidates) if words.issuperset(line.split()[1:])]
        write(out / candidates.name, responses)
    shutil.copyfile(pathlib.Path(source) / LICENSE, out / LICENSE)


def read(path):
    return path.read_text(encoding="utf-8").splitlines()


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main():
    with atomic_directory(FLAGS.out) as out:
        cut(FLAGS.source, out)


if __name__ == "__main__":
    flags.DEFINE_string("source", None, "Directory of the corpus.", required=True)
    flags.DEFINE_string("out", None, "Directory to make.", required=True)
    run(main)
