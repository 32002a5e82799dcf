"""What the machine computes with, decided before TensorFlow loads: oneDNN, allocator, threads, log lines, precision.

`base.cli` calls `prepare` when it is imported, so scripts and benchmarks import it before anything that loads
TensorFlow; tests go through `conftest.py`. What the user has set in the environment wins. Measured:
results/benchmarks/runtime.json.
"""

import importlib.abc
import importlib.util
import logging
import math
import os
import pathlib
import re
import sys
import tempfile

CHOSEN = "RUNTIME_CHOSEN"
"""Environment variable with the names of those that `prepare` set, for processes that inherit them."""

FASTER = {
    "TF_ENABLE_ONEDNN_OPTS": "1",  # off by default on CPUs without AVX-512 VNNI
    "TF_CPU_ALLOCATOR_USE_BFC": "true",  # malloc maps and unmaps large tensors: a page fault for every 4 KB
}
"""What TensorFlow does not choose by itself on every CPU."""

# `ONEDNN_MAX_CPU_ISA` names the best instructions that oneDNN may use. With these it may use AMX, AVX512_BF16.
_AMX = ("ALL", "DEFAULT", "AVX512_CORE_AMX", "AVX512_CORE_AMX_FP16", "AVX10_1_512_AMX", "AVX10_1_512_AMX_FP16")
_BF16 = (*_AMX, "AVX512_CORE_BF16", "AVX512_CORE_FP16", "AVX10_1_512")

_said = set()


def prepare(threads=None, environ=os.environ):
    """Chooses how TensorFlow will compute in this process and those it starts; without effect once it is loaded.

    Args:
        threads: Threads of an operation, where the caller knows better than `available_cpus`: one of several processes.
        environ: The environment; what the user set there stays.
    """
    if "tensorflow" in sys.modules and environ is os.environ:
        return
    choices = {
        **FASTER,
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20),  # not 64 GB
        "TF_NUM_INTRAOP_THREADS": str(threads or available_cpus()),
        "TF_NUM_INTEROP_THREADS": str(threads or available_cpus()),
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8192",  # an operation per tensor size: of the default 1,024 many are lost
        "TF_CPP_MIN_LOG_LEVEL": "3",  # errors are raised; what TensorFlow logs as one are missing GPUs
    }
    choices = {name: value for name, value in choices.items() if given(name, environ) is None}
    environ.update(choices)
    environ[CHOSEN] = ",".join(name for name in choices if not (threads and name.endswith("_THREADS")))
    if given("TF_CPP_MIN_LOG_LEVEL", environ) not in ("0", "1"):  # who wants TensorFlow's log wants Python's part too
        from absl import logging as absl_logging

        absl_logging.set_verbosity("error")
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        sys.meta_path.insert(0, _QuietImport())


def given(name, environ=os.environ):
    """The value of an environment variable that the user set, `None` where `prepare` did or nobody."""
    return None if name in environ.get(CHOSEN, "").split(",") else environ.get(name)


def client_lines():
    """Python lines that choose as much for a program that has nothing of this project."""
    lines = (f'os.environ.setdefault("{name}", "{value}")\n' for name, value in FASTER.items())
    return "".join(["import os\n\n", *lines, "\n"])


def announce(precision):
    """Says on stderr what was chosen, once per process: `runtime: 2 threads, oneDNN on, ...; computing in float32`."""
    _say(f"runtime: {describe()}; computing in {precision}")


def describe(environ=os.environ, cpuinfo="/proc/cpuinfo"):
    """What was chosen, in one line."""
    threads = environ.get("TF_NUM_INTRAOP_THREADS") or str(available_cpus())
    onednn = "on" if environ.get("TF_ENABLE_ONEDNN_OPTS", "").lower() in ("1", "true") else "off"
    allocator = "BFC" if environ.get("TF_CPU_ALLOCATOR_USE_BFC", "").lower() in ("1", "true") else "malloc"
    by = bfloat16_instructions(environ, cpuinfo)
    bfloat16 = f"in hardware ({by})" if by else "emulated"
    return f"{threads} threads, oneDNN {onednn}, {allocator} allocator, bfloat16 {bfloat16}"


def _say(line):
    if line not in _said:
        _said.add(line)
        print(line, file=sys.stderr, flush=True)


# === Log lines ===


class _QuietImport(importlib.abc.MetaPathFinder):
    """Loads TensorFlow without the lines that it logs before it looks at `TF_CPP_MIN_LOG_LEVEL`."""

    def find_spec(self, name, path, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: _without_log_lines(load, module)
        return spec


def _without_log_lines(function, *arguments):
    """Calls a function; of what it writes to stderr, also from C++, lines like `I0000 00:00:17... port.cc:153]` go."""
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            return function(*arguments)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            for line in file:
                if not re.match(rb"[IWE]\d{4} \d\d:|WARNING: All log messages before absl", line):
                    os.write(2, line)


# === Threads ===


def available_cpus(root="/"):
    """CPUs that this process may use: its affinity, and the quota of its control groups, rounded up.

    Args:
        root: Directory that holds `proc` and `sys`.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affinity, *map(math.ceil, _quotas(pathlib.Path(root)))]))


def memory_limit(root="/"):
    """Bytes, page cache included, that this process's control groups allow it; `None`: no limit.

    Args:
        root: Directory that holds `proc` and `sys`.
    """
    limits = []
    for directory in _control_groups(pathlib.Path(root), "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _read(directory / name).strip()
            limits += [int(limit)] if limit.isdigit() and int(limit) < 2**60 else []
    return min(limits, default=None)


def _quotas(root):
    """CPUs that each control group above this process grants."""
    for directory in _control_groups(root, "cpu"):
        one = [_read(directory / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        for quota in (one, _read(directory / "cpu.max").split()):
            if len(quota) == 2 and quota[0].isdigit() and quota[1].isdigit():  # `max` and -1: no limit
                yield int(quota[0]) / int(quota[1])


def _control_groups(root, controller):
    """The directories of each control group (version 1 or 2) above this process; in a container some do not exist."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            mount = root / "sys/fs/cgroup" / controllers
            group = mount / path.lstrip("/")
            yield from {mount, group, *(parent for parent in group.parents if mount in parent.parents)}


# === Precision ===


def bfloat16_instructions(environ=os.environ, cpuinfo="/proc/cpuinfo"):
    """What computes bfloat16 here: `"AMX"`, `"AVX512_BF16"`, or `None` where it is emulated.

    Args:
        environ: The environment; its `ONEDNN_MAX_CPU_ISA` may forbid instructions.
        cpuinfo: File with the CPU's flags.
    """
    lines = _read(cpuinfo).splitlines()
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    most = environ.get("ONEDNN_MAX_CPU_ISA", environ.get("DNNL_MAX_CPU_ISA", "ALL")).upper()
    if "amx_bf16" in flags and most in _AMX:
        return "AMX"
    return "AVX512_BF16" if "avx512_bf16" in flags and most in _BF16 else None


def choose_precision(asked, gains=True, gpu=False, environ=os.environ, cpuinfo="/proc/cpuinfo"):
    """The precision to compute in; warns once where the CPU would only emulate what is asked for.

    Args:
        asked: `"float32"`, `"bfloat16"`, `"float16"`, or `"auto"`: bfloat16 where it is computed and gains.
        gains: Whether bfloat16 is faster for what is to be computed, where the machine computes it.
        gpu: Whether a GPU computes.
        environ, cpuinfo: See `bfloat16_instructions`.
    """
    native = gpu or bfloat16_instructions(environ, cpuinfo) is not None
    if asked == "auto":
        return "bfloat16" if gains and native else "float32"
    if asked == "bfloat16" and not native:
        _say("warning: this CPU only emulates bfloat16, several times slower than float32; --precision=auto avoids it")
    if asked == "float16" and not gpu:
        _say("warning: float16 is for GPUs; a CPU emulates most of it, several times slower than float32")
    return asked


def _read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
