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
    """The provenance of this process, ready for JSON: `command`, `hardware`, `commit`, `dirty`,
    `versions`.
    """
    backend = keras.config.backend()
    versions = {"python": platform.python_version(), "keras": keras.__version__, "backend": backend}
    versions[backend] = sys.modules[backend].__version__
    return {"command": command(), "hardware": hardware(), **revision(), "versions": versions}


def command():
    """The command line: `python train.py --model=dam`, `python -m colloquy.tools.sweep
    --recipe=bidaf-short`.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    # python -m NAME, whose argv[0] is a path of this machine
    by_name = spec is not None and spec.origin == sys.argv[0]
    return shlex.join(["python", *(["-m", spec.name] if by_name else sys.argv[:1]), *sys.argv[1:]])


@functools.cache
def revision():
    """The commit of the code and whether tracked files differ from it: `{"commit", "dirty"}`,
    `None` without git.
    """
    commit, changes = (
        _git("rev-parse", "--short", "HEAD"),
        _git("status", "--porcelain", "--untracked-files=no"),
    )
    return {
        "commit": commit or None,
        "dirty": None if not commit or changes is None else bool(changes),
    }


def _git(*arguments):
    try:
        git = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:  # no git
        return None
    return None if git.returncode else git.stdout.strip()


def hardware():
    """The hardware of this process: `2 cores, AMD EPYC ...`, and after it the GPUs that TensorFlow
    or JAX sees.
    """
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    names = (
        re.findall(r"^model name\s*: (.*)", cpuinfo.read_text(encoding="utf-8"), re.M)
        if cpuinfo.exists()
        else []
    )
    found = [
        f"{available_cpus()} cores, {names[0] if names else platform.processor() or platform.machine()}"
    ]
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        details = map(
            tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU")
        )
        found += [gpu.get("device_name", "GPU") for gpu in details]
    if keras.config.backend() == "jax":
        import jax

        found += [device.device_kind for device in jax.devices() if device.platform == "gpu"]
    return ", ".join(found)
