"""A Ray cluster of several machines, as prepare.py and train.py ask for one; Ray is in requirements-ray.txt."""

import contextlib
import importlib.util
import logging
import pathlib

from base.files import UserError


@contextlib.contextmanager
def connected(flag, needed=("ray",), log=False, **environment):
    """Connects this process to the cluster of `RAY_ADDRESS`, or to one that it starts on this machine.

    Args:
        flag: The user's, for the message.
        needed: Modules that must be installed.
        log: Whether what the cluster's processes print appears here.
        **environment: Variables of the environment for the cluster's processes, which find this repository where it is
            on this machine.

    Yields:
        The module `ray`.

    Raises:
        UserError: where Ray is not installed, or the cluster does not answer.
    """
    if any(importlib.util.find_spec(name) is None for name in needed):
        raise UserError(f"{flag} needs Ray: python -m pip install -r requirements-ray.txt")
    import ray

    root = str(pathlib.Path(__file__).resolve().parent.parent)
    quiet = {"log_to_driver": log, "include_dashboard": False, "logging_level": logging.WARNING}
    try:
        ray.init(**quiet, runtime_env={"env_vars": {"PYTHONPATH": root, **environment}})
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"{flag}: the Ray cluster does not answer: {str(error)[:200]}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
