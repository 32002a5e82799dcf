"""Turns the raw files of a corpus into a dataset.

python prepare.py --corpus=smn --source=../shared/data/ubuntu-irc --out=build/ubuntu-irc
python prepare.py --corpus=babi-dialog --source=../shared/data/babi-dialog --out=build/babi
python prepare.py --corpus=squad --source=../shared/data/squad --out=build/squad
python prepare.py --corpus=dailydialog --source=../shared/data/dailydialog --out=build/dailydialog
"""

import importlib

from absl import flags

from colloquy.base import cli
from colloquy.base.config import make_config
from colloquy.data.corpora import CORPORA

FLAGS = flags.FLAGS
flags.DEFINE_enum("corpus", None, list(CORPORA), "Format of the files in --source.")
flags.DEFINE_string("source", None, "Directory of the corpus: train, dev and test files.")
flags.DEFINE_string("out", None, "Directory to write; missing or empty.")
flags.DEFINE_bool(
    "ray",
    False,
    "Selection: the Ray cluster RAY_ADDRESS, or this machine as one, reads the files: docs/large_corpora.md.",
)
flags.mark_flags_as_required(["corpus", "source", "out"])

TASKS = sorted({corpus.task for corpus in CORPORA.values()})
MODULES = {task: importlib.import_module(f"colloquy.tasks.{task}.prepare") for task in TASKS}
FIELDS = {task: module.Settings.model_fields for task, module in MODULES.items()}
"""`{task: fields of its settings}`; each is a flag."""
OF_VOCABULARY = (
    *(
        "min_count",
        "dimension",
        "window",
        "negative",
        "sample",
        "word2vec_epochs",
        "vectors",
        "hashed_words",
    ),
    *(
        "general_vectors",
        "word2vec_text",
        "words_of",
        "tokenizer",
        "lower",
        "turns",
        "vocabulary_size",
    ),
    "trained_words",
)
"""Flags that are not allowed with --vocabulary_of."""


def define_flags():
    """Defines a flag for each field of each task's settings."""
    for name in dict.fromkeys(name for fields in FIELDS.values() for name in fields):
        described = {}  # description: tasks
        for task, fields in FIELDS.items():
            if name in fields:
                field = fields[name]
                default = "" if field.default is None else f" Default: {field.default}."
                described.setdefault(" ".join(field.description.split()) + default, []).append(task)
        texts = [
            f"{', '.join(tasks)}: {text}" if tasks != TASKS else text
            for text, tasks in described.items()
        ]
        define = flags.DEFINE_bool if field.annotation is bool else flags.DEFINE_string
        define(name, None, "\n".join(texts))


define_flags()


def main():
    task = CORPORA[FLAGS.corpus].task
    if FLAGS.vocabulary_of:
        cli.refuse_flags(
            OF_VOCABULARY, "--vocabulary_of, which takes these settings from the run or dataset"
        )
    others = {name for fields in FIELDS.values() for name in fields} - FIELDS[task].keys()
    others |= set() if task == "selection" else {"ray"}
    cli.refuse_flags(
        sorted(others), f"--corpus={FLAGS.corpus}, whose flags are --{', --'.join(FIELDS[task])}"
    )
    given = {name: FLAGS[name].value for name in FIELDS[task] if FLAGS[name].present}
    settings = make_config(MODULES[task].Settings, given, "--")
    options = {"ray": True} if FLAGS.ray else {}
    MODULES[task].prepare(FLAGS.corpus, FLAGS.source, FLAGS.out, settings, **options)


if __name__ == "__main__":
    cli.run(main)
