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

from colloquy.base.machine import available_cpus

ROOT = pathlib.Path(__file__).resolve().parent.parent
"""Directory of the code, where git is asked for the commit."""
OUTPUT_FLAGS = ("--workdir", "--scores", "--out")
"""Flags that only name where results are written; rows leave them out."""


def provenance(command_line: str | None = None) -> dict[str, Any]:
    """Returns `command`, `hardware`, `commit`, `dirty` and `versions` of this process, for JSON.

    Args:
        command_line: Recorded as `command`; default: `command()`.
    """
    backend = keras.config.backend()
    # Keras has imported its backend. The package `colloquy` lies above `engine`, so that this file
    # may not import it.
    versions = {
        "colloquy": sys.modules["colloquy"].__version__,
        "python": platform.python_version(),
        "keras": keras.__version__,
        "backend": backend,
        backend: sys.modules[backend].__version__,
    }
    return {
        "command": command_line or command(),
        "hardware": hardware(),
        **revision(),
        "versions": versions,
    }


def command() -> str:
    """Returns the command line, such as `python train.py --model=dam` or `colloquy train ...`.

    Each flag is one word: `--data X` becomes `--data=X`.
    """
    program, *arguments = sys.argv
    arguments = _join_flags(arguments)
    # `colloquy.commands` sets argv[0] to the program and its command: `colloquy train`.
    if program.startswith("colloquy "):
        return shlex.join([*program.split(), *arguments])

    # `python -m NAME` sets argv[0] to the path of the module on this machine.
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.origin == program:
        return shlex.join(["python", "-m", spec.name, *arguments])
    return shlex.join(["python", program, *arguments])


def _join_flags(arguments):
    """Joins each flag and its value, which abseil takes as one word or as two.

    >>> _join_flags(["--data", "build/a", "--by=echo", "-run", "runs/a", "--force"])
    ['--data=build/a', '--by=echo', '--run=runs/a', '--force']
    """
    words = []
    for word in arguments:
        is_flag = re.match("--?[A-Za-z]", word)
        if is_flag:
            words.append(f"--{word.lstrip('-')}")
        elif words and words[-1].startswith("--") and "=" not in words[-1]:
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


def portable(command: str) -> str:
    """Removes the paths of this machine from a command line, for `results/scores.jsonl`.

    - The `OUTPUT_FLAGS` are dropped.
    - The run directories of `--run` become RUN; several become RUN1,RUN2.
    - Other absolute paths are cut to their last name.

    >>> portable("python train.py --recipe=babi-memma --data=/home/ann/task1 --workdir=runs/a")
    'python train.py --recipe=babi-memma --data=task1'
    >>> portable("python evaluate.py --run=runs/a,runs/b --split=dev --scores=mine.jsonl")
    'python evaluate.py --run=RUN1,RUN2 --split=dev'
    """
    words = []
    for word in shlex.split(command):
        if word.startswith("/"):
            words.append(pathlib.PurePath(word).name)
            continue
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
    """Returns the `commit` of the code, and `dirty`: whether tracked files differ from it.

    Both are `None` without git, or for an installed package. The first result is kept. Call it
    early: it describes the code that was imported, which later edits do not change.
    """
    # Git searches parent directories: an installed package may lie in a repository of another.
    if _git("rev-parse", "--show-prefix") != "":
        return {"commit": None, "dirty": None}
    commit = _git("rev-parse", "--short=7", "HEAD")
    changes = _git("status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return {"commit": commit or None, "dirty": None}
    return {"commit": commit, "dirty": changes != ""}


def _git(*arguments):
    """The output of a git command in `ROOT`; `None` if it fails or git is not installed."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def hardware() -> str:
    """Describes the hardware: `2 cores, AMD EPYC ...`, and the GPUs that the backend sees."""
    cores = available_cpus()
    parts = [f"{cores} cores" if cores > 1 else "1 core", _processor_name(), *_gpu_names()]
    return ", ".join(parts)


def _gpu_names():
    names = []
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        for device in tf.config.list_physical_devices("GPU"):
            details = tf.config.experimental.get_device_details(device)
            names.append(details.get("device_name", "GPU"))
    if keras.config.backend() == "jax":
        import jax

        for device in jax.devices():
            if device.platform == "gpu":
                names.append(device.device_kind)
    if keras.config.backend() == "torch":
        import torch

        for number in range(torch.cuda.device_count()):
            names.append(torch.cuda.get_device_name(number))
    return names


def _processor_name():
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        text = cpuinfo.read_text(encoding="utf-8")
        model = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
        if model:
            return model[1]
    return platform.processor() or platform.machine()
