"""What models are trained for. A task's folder holds all that it has of its own; see `engine.task.Task`."""


def __getattr__(name):
    """`TASKS`, made when first asked for: tasks load TensorFlow, which preparing data and wrong flags need not."""
    if name != "TASKS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tasks.dialog.task import DialogTask
    from tasks.generation.task import GenerationTask
    from tasks.reading_comprehension.task import ReadingComprehensionTask
    from tasks.selection.task import SelectionTask

    tasks = globals()[name] = {
        "selection": SelectionTask(),
        "dialog": DialogTask(),
        "generation": GenerationTask(),
        "reading_comprehension": ReadingComprehensionTask(),
    }
    return tasks
