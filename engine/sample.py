"""The embedded sample of a task: small data, prepared once for each state of the code."""

import hashlib
import inspect
import pathlib
from typing import Any

from colloquy.base.files import UserError, atomic_directory

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = pathlib.Path("build")


def prepare_sample(task: Any) -> pathlib.Path:
    """Prepares the sample of a task in `build/sample-TASK-HASH/`, unless it exists.

    Two processes may both make it; the first one to finish wins.

    Returns:
        The path of the prepared dataset.
    """
    directory = SAMPLES / f"sample-{task.name}-{code_digest(task)}"
    if not directory.is_dir():
        try:
            with atomic_directory(directory) as temporary:
                task.make_sample(temporary)
        except (OSError, UserError):
            if not directory.is_dir():  # else another process was faster
                raise
    return directory / task.sample_path


def code_digest(task: Any) -> str:
    """Ten hexadecimal digits: a hash of the code that makes a sample.

    This is the code in `data/`, in the task's `prepare.py`, and `make_sample`.
    """
    data = ROOT / "data"
    files = sorted([*data.rglob("*.py"), *data.rglob("*.txt")])
    task_file = pathlib.Path(inspect.getfile(type(task)))
    files.append(task_file.with_name("prepare.py"))

    digest = hashlib.sha256(inspect.getsource(type(task).make_sample).encode())
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:10]
