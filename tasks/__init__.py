"""The kinds of work. A task's folder holds all of its code; see `engine.task.Task`."""

from tasks.dialog.recipes import RECIPES as DIALOG
from tasks.generation.recipes import RECIPES as GENERATION
from tasks.reading_comprehension.recipes import RECIPES as READING_COMPREHENSION
from tasks.selection.recipes import RECIPES as SELECTION

RECIPES = {**DIALOG, **READING_COMPREHENSION, **SELECTION, **GENERATION}  # the recipes of all tasks, by name


def __getattr__(name):
    """`TASKS`, made when first asked for: tasks load TensorFlow, which preparing data and wrong flags need not."""
    if name != "TASKS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tasks.dialog.task import DialogTask
    from tasks.generation.task import GenerationTask
    from tasks.reading_comprehension.task import ReadingComprehensionTask
    from tasks.selection.task import SelectionTask

    tasks = SelectionTask(), DialogTask(), GenerationTask(), ReadingComprehensionTask()
    found = globals()[name] = {task.name: task for task in tasks}
    return found
