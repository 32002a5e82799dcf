"""Where a number comes from: what was called, by which code, on what."""

import functools
import pathlib
import platform
import shlex
import subprocess
import sys

import keras

from base.runtime import available_cpus

ROOT = pathlib.Path(__file__).resolve().parent.parent


def provenance():
    """What a run or a record remembers of the process that made it.

    Returns:
        A dict ready for JSON: `command`, `hardware`, `commit` and `dirty` (whether tracked files differ from it; both
        `None` outside of a git repository), `versions`.
    """
    return {
        "command": command(),
        "hardware": hardware(),
        **revision(),
        "versions": {
            "python": platform.python_version(),
            "keras": keras.__version__,
            "backend": keras.config.backend(),
            keras.config.backend(): _backend_version(),
        },
    }


def command():
    """What was called, for a shell: `python train.py --model=dam`, `python -m tools.sweep --recipe=bidaf-short`."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    by_name = spec is not None and spec.origin == sys.argv[0]  # python -m NAME, whose argv[0] is a path of this machine
    return shlex.join(["python", *(["-m", spec.name] if by_name else sys.argv[:1]), *sys.argv[1:]])


@functools.cache
def revision():
    """The commit of the code and whether tracked files differ from it: `{"commit", "dirty"}`, `None` without git."""
    commit, changes = _git("rev-parse", "--short", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit or None, "dirty": None if not commit or changes is None else bool(changes)}


def _git(*arguments):
    try:
        git = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:  # no git
        return None
    return None if git.returncode else git.stdout.strip()


def hardware():
    """What this process computes with: `2 cores, AMD EPYC ...`, and after it the GPUs."""
    return ", ".join([f"{available_cpus()} cores, {_processor()}", *_gpus()])


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def _gpus():
    """The names of the GPUs that TensorFlow sees."""
    if keras.config.backend() != "tensorflow":
        return []
    import tensorflow as tf

    found = tf.config.list_physical_devices("GPU")
    return [tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name) for gpu in found]


def _backend_version():
    return sys.modules[keras.config.backend()].__version__
