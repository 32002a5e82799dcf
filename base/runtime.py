"""Settings of TensorFlow that must be chosen before it loads, in environment variables.

`base.cli` and the tests' `conftest.py` call `prepare` when they are imported. The user's variables
win. Measurements: docs/experiments.md.
"""

import contextlib
import ctypes
import functools
import os
import sys

from colloquy.base import machine

CHOSEN = "RUNTIME_CHOSEN"
"""Environment variable with the names of the variables that `prepare` has set. Child processes
inherit it, so in them, too, `user_value` returns only what the user has set."""
FASTER = {
    # Off by default on CPUs without AVX-512 VNNI.
    "TF_ENABLE_ONEDNN_OPTS": "1",
    # malloc maps and unmaps memory for each large tensor, with a page fault for every 4 KB. The BFC
    # allocator keeps the memory.
    "TF_CPU_ALLOCATOR_USE_BFC": "true",
}
"""Variables that make TensorFlow faster; export.py names them to users of an exported model."""
M_MMAP_THRESHOLD = -3
"""The number of this parameter in `mallopt`."""


def prepare(threads: int | None = None, operations: int | None = None) -> None:
    """Chooses how TensorFlow computes in this process and its children.

    It sets environment variables, which have no effect once TensorFlow is loaded. Those that the
    user set stay.

    Args:
        threads: Threads of one operation. Default: `machine.available_cpus`.
        operations: Operations at once. Default: `threads`.
    """
    if "tensorflow" in sys.modules:
        return
    _return_freed_arrays()

    choices = {
        **FASTER,
        # TensorFlow's default is 64 GB, whatever the machine has.
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(machine.available_memory() // 2**20),
        # oneDNN compiles an operation for each tensor size. Its default of 1,024 forgets many of
        # them before they are used again.
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8192",
        # TensorFlow logs missing GPUs as errors. Real errors are raised, too.
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    num_threads = str(threads or machine.available_cpus())
    thread_choices = {
        "TF_NUM_INTRAOP_THREADS": num_threads,
        "TF_NUM_INTEROP_THREADS": str(operations or num_threads),
    }
    chosen = _set_variables(choices)
    chosen_threads = _set_variables(thread_choices)
    # A number of threads that the caller asks for counts as set by the user: `engine.parallel` does
    # not change it.
    if threads is None:
        chosen += chosen_threads
    os.environ[CHOSEN] = ",".join(chosen)


def _return_freed_arrays():
    """Has glibc return each freed array of 1 MB or more to the system.

    By default glibc raises this limit step by step up to 32 MB. It takes arrays below the limit
    from the heap, where freed arrays of many sizes leave holes.
    """
    if "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 2**20)


def _set_variables(choices):
    """Sets the environment variables that the user has not set; returns their names."""
    names = []
    for name, value in choices.items():
        if user_value(name) is None:
            os.environ[name] = value
            names.append(name)
    return names


def user_value(name: str) -> str | None:
    """Returns the user's value of an environment variable, `None` if only `prepare` set it."""
    if name in os.environ.get(CHOSEN, "").split(","):
        return None
    return os.environ.get(name)


def describe() -> str:
    """Describes in one line what `prepare` or the user has chosen."""
    threads = os.environ.get("TF_NUM_INTRAOP_THREADS") or machine.available_cpus()
    onednn = "on" if _is_on("TF_ENABLE_ONEDNN_OPTS") else "off"
    allocator = "BFC" if _is_on("TF_CPU_ALLOCATOR_USE_BFC") else "malloc"
    bfloat16 = ", bfloat16 by AMX" if machine.has_amx() else ""
    return f"{threads} threads, oneDNN {onednn}, {allocator} allocator{bfloat16}"


def _is_on(name):
    return os.environ.get(name, "").lower() in ("1", "true")


@functools.cache
def announce(line: str) -> None:
    """Prints a line to stderr, once per process: for a line it had before, the cache answers."""
    print(line, file=sys.stderr, flush=True)
