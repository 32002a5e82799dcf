"""Turns the raw files of a corpus into a dataset.

python prepare.py --corpus=chitchat --out=build/chitchat
python prepare.py --corpus=smn --source=../shared/data/ubuntu-irc --out=build/ubuntu-irc
python prepare.py --corpus=babi-dialog --source=../shared/data/babi-dialog --out=build/babi
python prepare.py --corpus=squad --source=../shared/data/squad --out=build/squad
python prepare.py --corpus=dailydialog --source=../shared/data/dailydialog --out=build/dailydialog
"""

import importlib
from typing import Any

from absl import flags

import colloquy
from colloquy.base import cli, machine, script_flags
from colloquy.base.config import make_config
from colloquy.base.files import UserError
from colloquy.data.corpora import CORPORA
from colloquy.data.prepared import VOCABULARY_SETTINGS

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
    lower_bound=0.1,
    upper_bound=1e6,
)
flags.mark_flags_as_required(["corpus", "out"])

TASKS = sorted({task for corpus in CORPORA.values() for task in corpus.tasks})
flags.DEFINE_enum(
    "task",
    None,
    TASKS,
    "Task to prepare conversations for: generation or selection. Default: selection for chitchat, "
    "else generation.",
)
MODULES = {task: importlib.import_module(f"colloquy.tasks.{task}.prepare") for task in TASKS}
FIELDS = {task: module.Settings.model_fields for task, module in MODULES.items()}
"""`{task: fields of its settings}`; each is a flag."""


def define_flags() -> None:
    """Defines a flag for each field of each task's settings."""
    names = dict.fromkeys(name for fields in FIELDS.values() for name in fields)  # in order
    for name in names:
        tasks_by_text: dict[str, list[str]] = {}
        for task, fields in FIELDS.items():
            if name in fields:
                text = describe_field(fields[name])
                tasks_by_text.setdefault(text, []).append(task)
                is_bool = fields[name].annotation is bool
        texts = []
        for text, tasks in tasks_by_text.items():
            texts.append(text if tasks == TASKS else f"{', '.join(tasks)}: {text}")
        define = flags.DEFINE_bool if is_bool else flags.DEFINE_string
        define(name, None, "\n".join(texts))


def describe_field(field: Any) -> str:
    description = " ".join(field.description.split())
    if field.default is None:
        return description
    return f"{description} Default: {field.default}."


define_flags()


def main() -> None:
    if FLAGS.corpus not in CORPORA:
        raise UserError(f"--corpus expects one of {', '.join(CORPORA)}. Received: {FLAGS.corpus}")
    task = FLAGS.task or CORPORA[FLAGS.corpus].task
    if FLAGS.vocabulary_of:
        script_flags.refuse_flags(
            VOCABULARY_SETTINGS,
            "--vocabulary_of, which takes these settings from the run or dataset",
        )
    names = FIELDS[task]
    others = {name for fields in FIELDS.values() for name in fields if name not in names}
    script_flags.refuse_flags(
        sorted(others), f"--corpus={FLAGS.corpus}, whose flags are --{', --'.join(names)}"
    )
    values = {name: FLAGS[name].value for name in names if FLAGS[name].present}
    make_config(MODULES[task].Settings, values, "--")  # whose messages name the flag
    # A file of a stranger may describe values that fill the memory.
    max_memory_gb = FLAGS.max_memory_gb or 0.75 * machine.available_memory() / 1e9
    try:
        with machine.limited_memory(int(max_memory_gb * 1e9)):
            colloquy.prepare(FLAGS.corpus, FLAGS.source, FLAGS.out, task=task, **values)
    except MemoryError as error:
        raise UserError(
            f"preparing {FLAGS.source or FLAGS.corpus} takes more than {max_memory_gb:.3g} GB of "
            "memory: --max_memory_gb=N allows more"
        ) from error


if __name__ == "__main__":
    cli.run(main)
