"""The machine that this process runs on: CPUs, memory and instructions."""

import contextlib
import math
import os
import pathlib
import re
import resource
from collections.abc import Iterator

# Holds `proc` and `sys`.
ROOT = pathlib.Path("/")


def available_cpus() -> int:
    """Counts the CPUs that this process may use.

    It is the least of the process's affinity and of its control groups' quotas, rounded up.
    """
    if hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    else:
        cpus = os.cpu_count() or 1
    for group in _control_groups():
        limit, _, period = _read(group / "cpu.max").partition(" ")
        if limit.isdigit():  # `max`: no limit
            cpus = min(cpus, math.ceil(int(limit) / int(period)))
    return max(1, cpus)


def available_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its control groups' limit."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for group in _control_groups():
        limit = _read(group / "memory.max").strip()
        if limit.isdigit():  # `max`: no limit
            memory = min(memory, int(limit))
    return memory


@contextlib.contextmanager
def limited_memory(num_bytes: int) -> Iterator[None]:
    """Has Python raise a `MemoryError` where this process would take more memory in the block.

    `RLIMIT_DATA` does not count what is only reserved, or mapped from a file, as `RLIMIT_AS` does.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        num_bytes = min(num_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def has_amx() -> bool:
    """True if this CPU multiplies bfloat16 matrices by AMX.

    Without AMX, AVX512_BF16 included, TensorFlow is slower in bfloat16 than in float32.
    """
    line = re.search(r"^flags\s*:(.*)", _read(ROOT / "proc/cpuinfo"), re.MULTILINE)
    return line is not None and "amx_bf16" in line[1].split()


def _control_groups():
    """Yields the directories of the control groups, of version 2, that this process is in.

    In a container, some of them do not exist.
    """
    mount = ROOT / "sys/fs/cgroup"
    path = _read(ROOT / "proc/self/cgroup").strip().removeprefix("0::/")
    own_group = mount / path
    for group in (own_group, *own_group.parents):
        if group.is_relative_to(mount):
            yield group


def _read(path):
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
