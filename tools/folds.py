"""Splits the train and dev dialogs of a dialog bAbI task anew, for cross-validation: every dialog is once in dev.

python -m tools.folds --source=../shared/data/babi-dialog --task=6 --folds=4 --seen=0.821 --out=build/folds

OUT/fold1, OUT/fold2 and so on are corpora for prepare.py. OUT/seen is one more: so many of its dev responses occur in
its train, a share lower than that of dialogs split by chance.
"""

import itertools
import pathlib
import shutil

import numpy as np
from absl import flags

from base import cli
from base.files import UserError, atomic_directory
from data.corpora import babi_dialog

FLAGS = flags.FLAGS


def main():
    tasks = {task.number: task for task in babi_dialog.find_tasks(FLAGS.source)}
    if FLAGS.task not in tasks:
        raise UserError(f"--task expects one of {', '.join(map(str, tasks))}. Received: {FLAGS.task}")
    task = tasks[FLAGS.task]
    files = [task.splits[split] for split in ("train", "dev") if split in task.splits]
    dialogs = list(itertools.chain.from_iterable(map(babi_dialog.read_dialogs, files)))
    if len(dialogs) < FLAGS.folds:
        raise UserError(f"--folds expects at most {len(dialogs)}, the number of dialogs. Received: {FLAGS.folds}")
    responses = [[entry.bot for entry in dialog if isinstance(entry, babi_dialog.Turn)] for dialog in dialogs]
    order = np.random.default_rng(FLAGS.seed).permutation(len(dialogs))
    parts = {f"fold{i}": set(part.tolist()) for i, part in enumerate(np.array_split(order, FLAGS.folds), 1)}
    if FLAGS.seen is not None:
        parts["seen"] = part_with_share(responses, order, len(dialogs) // FLAGS.folds, FLAGS.seen)
    with atomic_directory(FLAGS.out) as directory:
        for name, dev in parts.items():
            _write(directory / name, task, dialogs, dev)
            seen = seen_share(responses, dev)
            print(f"{FLAGS.out}/{name}: {len(dev):,} dialogs in dev, {seen:.1%} of their responses in train")


def seen_share(responses, dev):
    """The share of the responses of some dialogs that occur in the others.

    Args:
        responses: A list of texts for each dialog.
        dev: Set of numbers of dialogs.

    Returns:
        In [0, 1].

    >>> seen_share([["hi", "bye"], ["hi"], ["yes"]], {0})
    0.5
    """
    elsewhere = {text for i, texts in enumerate(responses) if i not in dev for text in texts}
    said = [text in elsewhere for i in dev for text in responses[i]]
    return sum(said) / max(len(said), 1)


def part_with_share(responses, order, size, share):
    """The part of some dialogs whose share of seen responses is the first that is not above a given one.

    Dialogs whose responses occur in few others take the place of those that chance drew, one by one.

    Args:
        responses, share: As of `seen_share`.
        order: Every dialog's number, in the order in which chance draws them.
        size: Dialogs of the part.

    Raises:
        UserError: where no part has so few.
    """
    counts = {}
    for text in itertools.chain.from_iterable(map(set, responses)):
        counts[text] = counts.get(text, 0) + 1
    rare = sorted(order.tolist(), key=lambda i: -sum(counts[text] == 1 for text in responses[i]))
    for n in range(size + 1):
        part = set(rare[:n])
        part |= set(itertools.islice((i for i in order.tolist() if i not in part), size - n))
        if seen_share(responses, part) <= share:
            return part
    lowest = seen_share(responses, set(rare[:size]))
    raise UserError(f"--seen expects at least {lowest:.3f} for parts of {size} dialogs. Received: {share}")


def _write(directory, task, dialogs, dev):
    """Writes a corpus of one task: its train and dev, candidates and knowledge base."""
    directory.mkdir()
    for file in (task.candidates, task.knowledge):
        shutil.copyfile(file, directory / pathlib.Path(file).name)
    for ending, chosen in (("trn", False), ("dev", True)):
        texts = (_text(dialog) for i, dialog in enumerate(dialogs) if (i in dev) == chosen)
        (directory / f"dialog-babi-task{task.number}-fold-{ending}.txt").write_text("\n".join(texts), encoding="utf-8")


def _text(dialog):
    lines = (f"{entry.user}\t{entry.bot}" if isinstance(entry, babi_dialog.Turn) else entry.text for entry in dialog)
    return "".join(f"{number} {line}\n" for number, line in enumerate(lines, 1))


if __name__ == "__main__":
    flags.DEFINE_string("source", None, "Directory of the corpus.", required=True)
    flags.DEFINE_integer("task", 6, "Number of the task.", lower_bound=1, upper_bound=6)
    flags.DEFINE_integer("folds", 4, "Parts, each of which is dev once.", lower_bound=2)
    flags.DEFINE_float("seen", None, "Share of the responses of OUT/seen's dev that its train has; default: none made.")
    flags.DEFINE_integer("seed", 1, "Seed of the order of the dialogs.", lower_bound=0)
    flags.DEFINE_string("out", None, "Directory to make.", required=True)
    cli.run(main)
