"""Provenance of a run or a score: command, commit, hardware, versions."""

import functools
import pathlib
import platform
import re
import shlex
import subprocess
import sys

import keras

from colloquy.base.runtime import available_cpus

ROOT = pathlib.Path(__file__).resolve().parent.parent


def provenance():
    """Returns `command`, `hardware`, `commit`, `dirty` and `versions` of this process, for JSON."""
    backend = keras.config.backend()
    versions = {
        "python": platform.python_version(),
        "keras": keras.__version__,
        "backend": backend,
        backend: sys.modules[backend].__version__,
    }
    return {"command": command(), "hardware": hardware(), **revision(), "versions": versions}


def command():
    """Returns the command line, as `python train.py --model=dam` or `colloquy train ...`."""
    words = sys.argv
    if words[0].startswith("colloquy "):
        return shlex.join([*words[0].split(), *words[1:]])
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    # After `python -m NAME`, argv[0] is a path of this machine.
    if spec is not None and spec.origin == sys.argv[0]:
        words = ["-m", spec.name, *sys.argv[1:]]
    return shlex.join(["python", *words])


@functools.cache
def revision():
    """Returns the `commit` of the code and `dirty`, whether tracked files differ from it.

    Both are `None` without git.
    """
    commit = _git("rev-parse", "--short", "HEAD")
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


def hardware():
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
