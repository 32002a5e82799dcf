"""Settings of TensorFlow that must be chosen before it loads.

`base.cli` and the tests' `conftest.py` call `prepare` when they are imported. The user's
environment wins. Scripts call `import_keras` in their `main`. Measurements: docs/experiments.md.
"""

import contextlib
import ctypes
import functools
import gc
import importlib.util
import json
import logging
import os
import pathlib
import sys
from collections.abc import Iterator

from colloquy.base import machine
from colloquy.base.files import UserError

# Environment variable that lists the variables set by `prepare`, for child processes.
CHOSEN = "RUNTIME_CHOSEN"
FASTER = {
    # Off by default on CPUs without AVX-512 VNNI.
    "TF_ENABLE_ONEDNN_OPTS": "1",
    # malloc maps and unmaps memory for each large tensor, with a page fault for every 4 KB. The BFC
    # allocator keeps the memory.
    "TF_CPU_ALLOCATOR_USE_BFC": "true",
}
# The backends of Keras. TensorFlow is a requirement; the others are extras.
BACKENDS = ("tensorflow", "jax", "torch")
# The number of this parameter in `mallopt`.
M_MMAP_THRESHOLD = -3


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
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        # glibc raises this threshold up to 32 MB. Smaller arrays come from the heap, where
        # many sizes leave holes.
        with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 2**20)

    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    cpus = str(threads or machine.available_cpus())
    choices = {
        **FASTER,
        # TensorFlow's default is 64 GB, whatever the machine has.
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(megabytes),
        "TF_NUM_INTRAOP_THREADS": cpus,
        "TF_NUM_INTEROP_THREADS": str(operations or cpus),
        # oneDNN compiles an operation for each tensor size. Its default of 1,024 forgets many of
        # them before they are used again.
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8192",
        # TensorFlow logs missing GPUs as errors. Real errors are raised, too.
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    chosen = []
    for name, value in choices.items():
        if user_value(name) is not None:
            continue
        os.environ[name] = value
        # A number of threads that the caller asked for counts as the user's.
        if threads is None or not name.endswith("_THREADS"):
            chosen.append(name)
    os.environ[CHOSEN] = ",".join(chosen)


def user_value(name: str) -> str | None:
    """Returns the user's value of an environment variable, `None` if only `prepare` set it."""
    if name in os.environ.get(CHOSEN, "").split(","):
        return None
    return os.environ.get(name)


def keras_backend() -> str:
    """Returns the name of the backend that Keras has or will have; it loads nothing."""
    if os.environ.get("KERAS_BACKEND"):
        return os.environ["KERAS_BACKEND"]
    folder = pathlib.Path(os.environ.get("KERAS_HOME") or pathlib.Path.home() / ".keras")
    try:
        settings = (folder / "keras.json").read_text(encoding="utf-8")
        return json.loads(settings)["backend"]
    except (OSError, ValueError, KeyError, TypeError):
        return "tensorflow"


def check_devices(devices: str) -> None:
    """Refuses unknown devices, as a `UserError`, and `all` on a backend that cannot use them."""
    if devices not in ("one", "all"):
        raise UserError(f"devices: expected one or all. Received: {devices}")
    backend = keras_backend()
    if devices == "all" and backend != "jax":
        raise UserError(f"devices=all needs KERAS_BACKEND=jax. Received: {backend}")


def check_backend() -> None:
    """Refuses a backend of Keras that is unknown or not installed, before Keras is loaded.

    Keras itself ends with a long traceback.

    Raises:
        UserError: One sentence, with the extra to install.
    """
    if "keras" in sys.modules:
        return
    backend = keras_backend()
    if backend not in BACKENDS:
        raise UserError(f"KERAS_BACKEND expects one of {', '.join(BACKENDS)}. Received: {backend}")
    if importlib.util.find_spec(backend) is None:
        raise UserError(
            f"KERAS_BACKEND={backend} needs a package: pip install 'colloquy[{backend}]', "
            f"in the clone pip install -e '.[{backend}]'"
        )


def import_keras() -> None:
    """Imports Keras, which takes seconds. Scripts call it before the first import that needs it.

    What TensorFlow writes to stderr meanwhile is dropped, unless the user set
    `TF_CPP_MIN_LOG_LEVEL` to 0 or 1.

    Raises:
        UserError: The backend is unknown, or not installed.
    """
    if "keras" in sys.modules:
        return
    check_backend()
    log_filter: contextlib.AbstractContextManager = contextlib.nullcontext()
    if user_value("TF_CPP_MIN_LOG_LEVEL") not in ("0", "1"):
        _silence_python_loggers()
        log_filter = _stderr_dropped()

    # Importing Keras makes many objects and frees none, so garbage collection only costs: a fifth
    # of the time. Matplotlib, which Keras imports for plots that nothing here draws, costs a tenth.
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        with log_filter, without("matplotlib"):
            importlib.import_module("keras")
    finally:
        gc.freeze()
        if is_collecting:
            gc.enable()


def _silence_python_loggers():
    from absl import logging as absl_logging

    absl_logging.set_verbosity("error")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


@contextlib.contextmanager
def _stderr_dropped():
    """Drops what C++ writes to stderr, such as `I0000 00:00:17... port.cc:153]`."""
    stderr = os.dup(2)
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


@contextlib.contextmanager
def without(module: str) -> Iterator[None]:
    """Makes the import of a module fail in the block, unless it is loaded already."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]  # Python's own way to hide a module
    try:
        yield
    finally:
        del sys.modules[module]


def describe() -> str:
    """Describes the choices in one line."""
    threads = os.environ.get("TF_NUM_INTRAOP_THREADS") or machine.available_cpus()
    onednn = "on" if _is_on("TF_ENABLE_ONEDNN_OPTS") else "off"
    allocator = "BFC" if _is_on("TF_CPU_ALLOCATOR_USE_BFC") else "malloc"
    instructions = machine.bfloat16_instructions()
    bfloat16 = f"in hardware ({instructions})" if instructions else "emulated"
    return f"{threads} threads, oneDNN {onednn}, {allocator} allocator, bfloat16 {bfloat16}"


def _is_on(name):
    return os.environ.get(name, "").lower() in ("1", "true")


@functools.cache
def announce(line: str) -> None:
    """Prints a line to stderr, once per process."""
    print(line, file=sys.stderr, flush=True)
