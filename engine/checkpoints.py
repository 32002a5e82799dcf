"""Places at which a long computation can be interrupted: between two batches of a model.

A server gives up there what nobody waits for.
"""

import contextlib
import contextvars
from collections.abc import Callable
from typing import Any

_action: contextvars.ContextVar = contextvars.ContextVar("action", default=None)


def checkpoint() -> None:
    """Calls what `at_checkpoints` has set for this thread, if anything; that may raise."""
    action = _action.get()
    if action is not None:
        action()


@contextlib.contextmanager
def at_checkpoints(action: Callable[[], None]) -> Any:
    """For the block, lets `checkpoint` call `action()` on this thread.

    >>> with at_checkpoints(lambda: print("a step is done")):
    ...     checkpoint()
    a step is done
    """
    token = _action.set(action)
    try:
        yield
    finally:
        _action.reset(token)
