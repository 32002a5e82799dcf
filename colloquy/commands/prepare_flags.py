"""The settings of preparing as flags of prepare.py. Each task has its own settings."""

import importlib
from typing import Any

from absl import flags

from colloquy.base.config import make_config
from colloquy.base.script_flags import refuse_flags, show_in_help
from colloquy.data.corpora import CORPORA
from colloquy.data.prepared import VOCABULARY_SETTINGS

FLAGS = flags.FLAGS
TASKS = sorted({task for corpus in CORPORA.values() for task in corpus.tasks})
SETTINGS = {
    task: importlib.import_module(f"colloquy.tasks.{task}.prepare").Settings for task in TASKS
}
"""`{task: the class of its settings}`."""


def define_flags() -> None:
    """Defines a flag for each field of each task's settings; fields of one name share a flag."""
    tasks_by_name: dict[str, list[str]] = {}
    for task, settings in SETTINGS.items():
        for name in settings.model_fields:
            tasks_by_name.setdefault(name, []).append(task)
    for name, tasks in tasks_by_name.items():
        field = SETTINGS[tasks[0]].model_fields[name]
        define = flags.DEFINE_bool if field.annotation is bool else flags.DEFINE_string
        define(name, None, _describe(name, tasks))
        show_in_help(name)


def _describe(name, tasks):
    """Describes a field of some tasks: each text once, after the names of its tasks."""
    tasks_by_text = {}
    for task in tasks:
        field = SETTINGS[task].model_fields[name]
        text = " ".join(field.description.split())
        if field.default is not None:
            text = f"{text} Default: {field.default}."
        tasks_by_text.setdefault(text, []).append(task)
    lines = []
    for text, tasks_of_text in tasks_by_text.items():
        is_for_all = tasks_of_text == TASKS
        lines.append(text if is_for_all else f"{', '.join(tasks_of_text)}: {text}")
    return "\n".join(lines)


def read_flags(corpus: str, task: str) -> dict[str, Any]:
    """Returns `{field: value}` of the flags that were given.

    Raises:
        UserError: A flag is for other tasks, or not for --vocabulary_of; or a value is wrong.
    """
    if FLAGS.vocabulary_of:
        refuse_flags(
            VOCABULARY_SETTINGS,
            beside="--vocabulary_of, which takes these settings from the run or dataset",
        )
    names = SETTINGS[task].model_fields
    all_names = {name for settings in SETTINGS.values() for name in settings.model_fields}
    refuse_flags(
        sorted(all_names - set(names)),
        beside=f"--corpus={corpus} --task={task}, whose flags are --{', --'.join(names)}",
    )
    values = {name: FLAGS[name].value for name in names if FLAGS[name].present}
    make_config(SETTINGS[task], values, "--")  # whose messages name the flag
    return values
