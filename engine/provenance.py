"""Provenance of a run or a score: command, commit, hardware, versions."""

import functools
import pathlib
import platform
import re
import shlex
import subprocess
import sys
from typing import Any

import keras

from colloquy.base.runtime import available_cpus

ROOT = pathlib.Path(__file__).resolve().parent.parent


def provenance(repeated_by: str | None = None) -> dict[str, Any]:
    """Returns `command`, `hardware`, `commit`, `dirty` and `versions` of this process, for JSON.

    Args:
        repeated_by: The `command`, if it is not that of this process.
    """
    backend = keras.config.backend()
    versions = {
        "colloquy": sys.modules["colloquy"].__version__,
        "python": platform.python_version(),
        "keras": keras.__version__,
        "backend": backend,
        backend: sys.modules[backend].__version__,
    }
    return {
        "command": repeated_by or command(),
        "hardware": hardware(),
        **revision(),
        "versions": versions,
    }


def command() -> str:
    """Returns the command line, as `python train.py --model=dam` or `colloquy train ...`."""
    words = sys.argv
    if words[0].startswith("colloquy "):
        return shlex.join([*words[0].split(), *words[1:]])
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    # After `python -m NAME`, argv[0] is a path of this machine.
    if spec is not None and spec.origin == sys.argv[0]:
        words = ["-m", spec.name, *sys.argv[1:]]
    return shlex.join(["python", *words])


OUTPUT_FLAGS = ("--workdir", "--scores", "--scores_out", "--out")


def portable(command: str) -> str:
    """A command line without the paths of this machine, for rows that others read.

    Outputs are left out, runs are called RUN, and of other absolute paths the last name is left.

    >>> portable("python train.py --recipe=babi-memma --data=/home/ann/task1 --workdir=runs/a")
    'python train.py --recipe=babi-memma --data=task1'
    >>> portable("python evaluate.py --run=runs/a,runs/b --split=dev --scores=mine.jsonl")
    'python evaluate.py --run=RUN1,RUN2 --split=dev'
    """
    words = []
    for word in shlex.split(command):
        flag, equals, value = word.partition("=")
        if flag in OUTPUT_FLAGS:
            continue
        if flag == "--run":
            value = _run_names(value.count(",") + 1)
        elif value.startswith("/"):
            value = pathlib.PurePath(value).name
        words.append(f"{flag}{equals}{value}")
    return shlex.join(words)


def _run_names(count):
    if count == 1:
        return "RUN"
    return ",".join(f"RUN{number}" for number in range(1, count + 1))


@functools.cache
def revision() -> dict[str, Any]:
    """Returns the `commit` of the code and `dirty`, whether tracked files differ from it.

    Both are `None` without git.
    """
    commit = _git("rev-parse", "--short=7", "HEAD")
    changes = _git("status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return {"commit": commit or None, "dirty": None}
    return {"commit": commit, "dirty": changes != ""}


def _git(*arguments):
    command = ["git", *arguments]
    try:
        git = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:  # no git
        return None
    return git.stdout.strip() if git.returncode == 0 else None


def hardware() -> str:
    """Describes the hardware: `2 cores, AMD EPYC ...`, and the GPUs that the backend sees."""
    parts = [f"{available_cpus()} cores", _processor_name()]
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        for device in tf.config.list_physical_devices("GPU"):
            details = tf.config.experimental.get_device_details(device)
            parts.append(details.get("device_name", "GPU"))
    if keras.config.backend() == "jax":
        import jax

        for device in jax.devices():
            if device.platform == "gpu":
                parts.append(device.device_kind)
    return ", ".join(parts)


def _processor_name():
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        text = cpuinfo.read_text(encoding="utf-8")
        model = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
        if model:
            return model[1]
    return platform.processor() or platform.machine()
