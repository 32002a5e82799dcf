"""The embedded sample of a task: small data, prepared once for each state of the code."""

import hashlib
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
    directory = SAMPLES / f"sample-{task.name}-{code_digest()}"
    if not directory.is_dir():
        try:
            with atomic_directory(directory) as temporary:
                task.make_sample(temporary)
        except (OSError, UserError):
            if not directory.is_dir():  # else another process was faster
                raise
    return directory / "prepared"


def code_digest() -> str:
    """Ten hexadecimal digits: a hash of the code and the texts in `data/` and `tasks/`."""
    digest = hashlib.sha256()
    for room in ("data", "tasks"):
        for file in sorted((ROOT / room).rglob("*")):
            if file.suffix in (".py", ".txt"):
                name = file.relative_to(ROOT).as_posix()
                digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:10]
