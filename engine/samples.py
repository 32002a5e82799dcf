"""The embedded sample of a task, made once for each state of the code that makes it."""

import hashlib
import inspect
import pathlib

from base.files import UserError, atomic_directory

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = pathlib.Path("build")


def sample_of(task):
    """The prepared sample of a task, made and prepared where there is none by this code yet.

    Two trainings that start at once may both make it; the first that is ready stays.

    Args:
        task: An `engine.task.Task`.

    Returns:
        The prepared directory, in `build/sample-TASK-HASH`.
    """
    directory = SAMPLES / f"sample-{task.name}-{fingerprint(task)}"
    if not directory.is_dir():
        try:
            with atomic_directory(directory) as temporary:
                task.make_sample(temporary)
        except (OSError, UserError):
            if not directory.is_dir():  # else another process was faster
                raise
    return directory / task.sample_path


def fingerprint(task):
    """A hash of the code that makes the sample of a task: of `data/`, its `prepare.py` and its `make_sample`.

    Args:
        task: An `engine.task.Task`.

    Returns:
        Ten hexadecimal digits.
    """
    found = hashlib.sha256(inspect.getsource(type(task).make_sample).encode())
    files = [file for ending in ("*.py", "*.txt") for file in (ROOT / "data").rglob(ending)]
    for file in [*sorted(files), pathlib.Path(inspect.getfile(type(task))).with_name("prepare.py")]:
        found.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:10]
