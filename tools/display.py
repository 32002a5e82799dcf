"""Shows examples of a prepared dataset as a model sees them: words that are cut, words that it does not know.

python -m tools.display --data=build/ubuntu-irc
python -m tools.display --data=build/squad --split=dev --count=1 --run=runs/squad
"""

import dataclasses
import importlib

from absl import flags
from rich.console import Console

from base import cli
from base.files import UserError

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset.", required=True)
flags.DEFINE_string("run", None, "Run whose model reads it: how much of an example; default: as models do by default.")
flags.DEFINE_string("split", "train", "Split to show.")
flags.DEFINE_integer("count", 3, "Examples, at equal distances.", lower_bound=1)


def main():
    from data.prepared import task_of
    from engine.runs import Run  # TensorFlow takes seconds to load
    from engine.view import legend, render
    from tasks import TASKS

    console = Console()
    run = Run.open(FLAGS.run) if FLAGS.run else None
    name = run.entry.task if run else task_of(FLAGS.data)
    if name not in TASKS:
        raise UserError(f"{FLAGS.data}: expected a dataset that prepare.py made, or its model's --run")
    task = TASKS[name]
    dataset = task.dataset_of(run, FLAGS.data) if run else task.open_dataset(FLAGS.data)
    view = importlib.import_module(f"tasks.{name}.view")
    total = view.count(dataset.splits[FLAGS.split]) if FLAGS.split in dataset.splits else 0
    if not total:
        has = ", ".join(name for name, split in dataset.splits.items() if len(split))
        raise UserError(f"{dataset.path} has no examples in the split {FLAGS.split}. It has {has}")
    settings = dataclasses.asdict(task.Training())
    if run:
        settings |= {**run.config["training"], **run.config["settings"]}
    console.print(legend(console.is_terminal))
    for place in range(min(FLAGS.count, total)):
        number = (2 * place + 1) * total // (2 * min(FLAGS.count, total))
        console.print(f"\n{FLAGS.split}, example {number + 1:,} of {total:,}", style="bold", highlight=False)
        lines = render(view.lines_of(dataset, FLAGS.split, number, settings), console.is_terminal)
        console.print(lines, soft_wrap=not console.is_terminal)


if __name__ == "__main__":
    cli.run(main)
