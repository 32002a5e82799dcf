"""The backend of Keras: its name, and whether it can be used. Nothing here loads it."""

import importlib.util
import json
import os
import pathlib
import sys

from colloquy.base.files import UserError

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
