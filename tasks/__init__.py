"""The kinds of work. A task's folder holds all of its code; see `engine.task.Task`."""

from colloquy.tasks.dialog.recipes import RECIPES as DIALOG
from colloquy.tasks.generation.recipes import RECIPES as GENERATION
from colloquy.tasks.reading_comprehension.recipes import RECIPES as READING_COMPREHENSION
from colloquy.tasks.selection.recipes import RECIPES as SELECTION

# the recipes of all tasks, by name
RECIPES = {**DIALOG, **READING_COMPREHENSION, **SELECTION, **GENERATION}


def __getattr__(name):
    """`TASKS`, made when first asked for: tasks load TensorFlow, which preparing data and wrong
    flags need not.
    """
    if name != "TASKS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from colloquy.tasks.dialog.task import DialogTask
    from colloquy.tasks.generation.task import GenerationTask
    from colloquy.tasks.reading_comprehension.task import ReadingComprehensionTask
    from colloquy.tasks.selection.task import SelectionTask

    tasks = SelectionTask(), DialogTask(), GenerationTask(), ReadingComprehensionTask()
    found = globals()[name] = {task.name: task for task in tasks}
    return found
