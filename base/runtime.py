"""Settings of TensorFlow that must be chosen before it loads: oneDNN, allocator, threads, log
lines; and precision.

`base.cli` and the tests' `conftest.py` call `prepare` when they are imported. The user's
environment wins. Measured: docs/experiments.md.
"""

import contextlib
import ctypes
import functools
import gc
import importlib.abc
import importlib.util
import logging
import math
import os
import pathlib
import re
import sys
import tempfile

# environment variable that lists the variables set by `prepare`, for child processes
CHOSEN = "RUNTIME_CHOSEN"
FASTER = {
    "TF_ENABLE_ONEDNN_OPTS": "1",  # off by default on CPUs without AVX-512 VNNI
    # malloc maps and unmaps large tensors: a page fault for every 4 KB
    "TF_CPU_ALLOCATOR_USE_BFC": "true",
}
# `ONEDNN_MAX_CPU_ISA` names the best instructions that oneDNN may use. With these it may use AMX,
# AVX512_BF16.
_AMX = (
    "ALL",
    "DEFAULT",
    "AVX512_CORE_AMX",
    "AVX512_CORE_AMX_FP16",
    "AVX10_1_512_AMX",
    "AVX10_1_512_AMX_FP16",
)
_BF16 = (*_AMX, "AVX512_CORE_BF16", "AVX512_CORE_FP16", "AVX10_1_512")


def prepare(threads=None, environ=os.environ, operations=None):
    """Chooses how TensorFlow computes in this process and those it starts; without effect once
    TensorFlow is loaded.

    An operation has `threads`, by default `available_cpus`; `operations` run at once, by default as
    many. The user's values in `environ` stay.
    """
    if "tensorflow" in sys.modules and environ is os.environ:
        return
    # glibc raises it to 32 MB: arrays of many sizes leave holes
    if "MALLOC_MMAP_THRESHOLD_" not in environ:
        _malloc("mallopt", -3, 2**20)
    cpus = str(threads or available_cpus())
    choices = {
        **FASTER,
        # not 64 GB
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        ),
        "TF_NUM_INTRAOP_THREADS": cpus,
        "TF_NUM_INTEROP_THREADS": str(operations or cpus),
        # an operation per tensor size: of the default 1,024 many are lost
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8192",
        "TF_CPP_MIN_LOG_LEVEL": "3",  # errors are raised; TensorFlow logs missing GPUs as errors
    }
    choices = {name: value for name, value in choices.items() if given(name, environ) is None}
    environ.update(choices)
    environ[CHOSEN] = ",".join(
        name for name in choices if not (threads and name.endswith("_THREADS"))
    )
    # else the user wants TensorFlow's log, Python's too
    if given("TF_CPP_MIN_LOG_LEVEL", environ) not in ("0", "1"):
        from absl import logging as absl_logging

        absl_logging.set_verbosity("error")
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        _wrapped["tensorflow"] = functools.partial(_load_quickly, _without_log_lines)
    sys.meta_path.insert(0, _WrappedImport())


def return_memory():
    """Returns to the system what was freed: of the objects that a dataset is read by, as much as it
    keeps.
    """
    _malloc("malloc_trim", 0)


def _malloc(name, *arguments):
    with contextlib.suppress(AttributeError, OSError, TypeError):  # of glibc alone
        getattr(ctypes.CDLL(None), name)(*arguments)


def given(name, environ=os.environ):
    """The user's value of an environment variable; `None` if `prepare` or nobody set it."""
    return None if name in environ.get(CHOSEN, "").split(",") else environ.get(name)


def describe(environ=os.environ, cpuinfo="/proc/cpuinfo"):
    """The choices in one line."""
    threads = environ.get("TF_NUM_INTRAOP_THREADS") or str(available_cpus())
    onednn = "on" if environ.get("TF_ENABLE_ONEDNN_OPTS", "").lower() in ("1", "true") else "off"
    allocator = (
        "BFC" if environ.get("TF_CPU_ALLOCATOR_USE_BFC", "").lower() in ("1", "true") else "malloc"
    )
    by = bfloat16_instructions(environ, cpuinfo)
    bfloat16 = f"in hardware ({by})" if by else "emulated"
    return f"{threads} threads, oneDNN {onednn}, {allocator} allocator, bfloat16 {bfloat16}"


@functools.cache
def announce(line):
    """Prints a line to stderr, once per process."""
    print(line, file=sys.stderr, flush=True)


class _WrappedImport(importlib.abc.MetaPathFinder):
    """Loads a module of `_wrapped` by the function that it names, once."""

    def find_spec(self, name, path, target=None):
        wrapper = _wrapped.pop(name, None)
        spec = wrapper and importlib.util.find_spec(name)
        if spec:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: wrapper(load, module)
            if not _wrapped:  # later imports need not pass here
                sys.meta_path[:] = [
                    finder for finder in sys.meta_path if not isinstance(finder, _WrappedImport)
                ]
        return spec


def _load_quickly(function, *arguments):
    """Calls a function that loads modules that stay; matplotlib and garbage collection take a third
    of Keras's time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with without("matplotlib"):
            return function(*arguments)
    finally:
        gc.freeze()
        if collects:
            gc.enable()


@contextlib.contextmanager
def without(module):
    """Makes the import of a module fail in the block, unless it is loaded already."""
    hides = module not in sys.modules
    if hides:
        sys.modules[module] = None
    try:
        yield
    finally:
        if hides:
            del sys.modules[module]


def _without_log_lines(function, *arguments):
    """Calls a function, and drops lines such as `I0000 00:00:17... port.cc:153]` that it writes to
    stderr, from C++.
    """
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


_wrapped = {"keras": _load_quickly, "tensorflow": _load_quickly}


def available_cpus(root="/"):
    """CPUs that this process may use: the least of its affinity and its control groups' quotas,
    rounded up.

    `root` holds `proc` and `sys`.
    """
    found = [
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    ]
    for group in _control_groups(pathlib.Path(root)):
        for files in (["cpu.cfs_quota_us", "cpu.cfs_period_us"], ["cpu.max"]):
            quota = " ".join(_read(group / file) for file in files).split()
            if len(quota) == 2 and quota[0].isdigit():  # `max` and -1: no limit
                found.append(math.ceil(int(quota[0]) / int(quota[1])))
    return max(1, min(found))


def _control_groups(root):
    """The directories of each control group (version 1 or 2) above this process; in a container
    some do not exist.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or "cpu" in controllers.split(","):
            mount = root / "sys/fs/cgroup" / controllers
            group = mount / path.lstrip("/")
            yield from {
                mount,
                group,
                *(parent for parent in group.parents if mount in parent.parents),
            }


def _read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def bfloat16_instructions(environ=os.environ, cpuinfo="/proc/cpuinfo"):
    """The instructions that compute bfloat16: `"AMX"`, `"AVX512_BF16"`, or `None` if it is
    emulated.

    `ONEDNN_MAX_CPU_ISA` may forbid instructions.
    """
    found = re.search(r"^flags\s*:(.*)", _read(cpuinfo), re.M)
    flags = found[1].split() if found else ()
    most = environ.get("ONEDNN_MAX_CPU_ISA", environ.get("DNNL_MAX_CPU_ISA", "ALL")).upper()
    if "amx_bf16" in flags and most in _AMX:
        return "AMX"
    return "AVX512_BF16" if "avx512_bf16" in flags and most in _BF16 else None


def choose_precision(asked, gains=True, gpu=False, environ=os.environ, cpuinfo="/proc/cpuinfo"):
    """The precision to compute in; warns once if the CPU would only emulate it.

    `"auto"` is bfloat16 if a `gpu` or the CPU (see `bfloat16_instructions`) computes it and the
    model `gains` by it.
    """
    native = gpu or bfloat16_instructions(environ, cpuinfo) is not None
    if asked == "auto":
        return "bfloat16" if gains and native else "float32"
    if asked == "bfloat16" and not native:
        announce(
            "warning: this CPU emulates bfloat16, several times slower than float32; --precision=auto avoids it"
        )
    if asked == "float16" and not gpu:
        announce(
            "warning: float16 is for GPUs; a CPU emulates most of it, several times slower than float32"
        )
    return asked
