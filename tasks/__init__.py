"""The kinds of work. A task's folder holds all of its code; see `engine.task.Task`."""

from colloquy.base.files import UserError
from colloquy.tasks.dialog.recipes import RECIPES as DIALOG
from colloquy.tasks.generation.recipes import RECIPES as GENERATION
from colloquy.tasks.reading_comprehension.recipes import RECIPES as READING_COMPREHENSION
from colloquy.tasks.selection.recipes import RECIPES as SELECTION

RECIPES = {**DIALOG, **READING_COMPREHENSION, **SELECTION, **GENERATION}
"""The recipes of all tasks, by name."""


def __getattr__(name):
    """Makes `TASKS` when first asked for.

    Tasks load TensorFlow, which takes seconds; preparing data and wrong flags need not wait.
    """
    if name != "TASKS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from colloquy.tasks.dialog.task import DialogTask
    from colloquy.tasks.generation.task import GenerationTask
    from colloquy.tasks.reading_comprehension.task import ReadingComprehensionTask
    from colloquy.tasks.selection.task import SelectionTask

    global TASKS
    tasks = [SelectionTask(), DialogTask(), GenerationTask(), ReadingComprehensionTask()]
    TASKS = {task.name: task for task in tasks}
    return TASKS


def load_predictor(run, index=None, candidates=None):
    """Loads the model of an `engine.run.Run` as an `engine.predictor.Predictor`.

    Args:
        run: The run.
        index, candidates: Selection: see `retrieval.answers.add_responses`.
    """
    from colloquy.tasks import TASKS

    task = TASKS[run.task]
    if run.task == "selection":
        from colloquy.tasks.selection.retrieval.answers import add_responses

        return add_responses(task.predictor(run), run, index, candidates)
    if index is not None or candidates is not None:
        raise UserError(
            f"{run.path}: an index or candidates are for a model of selection. Received: {run.task}"
        )
    return task.predictor(run)
