"""Keras and its backend: the backend's name, whether it can be used, and the import of Keras.

Scripts call `import_keras` in their `main`, before the first import that needs Keras.
"""

import contextlib
import gc
import importlib
import importlib.util
import json
import logging
import os
import pathlib
import sys
from collections.abc import Iterator

from colloquy.base.files import UserError
from colloquy.base.runtime import user_value

BACKENDS = ("tensorflow", "jax", "torch")
"""The backends of Keras. TensorFlow is a requirement; the others are extras."""


def keras_backend() -> str:
    """Returns the name of the backend that Keras has or will have."""
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
    """Imports Keras, which takes seconds.

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

    # Importing Keras makes many objects and frees none: garbage collection would find nothing, and
    # take a fifth of the time. Matplotlib, which Keras imports for plots that nothing here draws,
    # would take a tenth.
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        with log_filter, without("matplotlib"):
            importlib.import_module("keras")
    finally:
        # These objects stay until the process ends, so later collections need not visit them.
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
