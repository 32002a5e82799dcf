"""What models are trained for. A task's folder holds all that it has of its own; see `engine.task.Task`."""

from tasks.dialog.task import DialogTask
from tasks.generation.task import GenerationTask
from tasks.reading_comprehension.task import ReadingComprehensionTask
from tasks.selection.task import SelectionTask

TASKS = {
    "selection": SelectionTask(),
    "dialog": DialogTask(),
    "generation": GenerationTask(),
    "reading_comprehension": ReadingComprehensionTask(),
}
