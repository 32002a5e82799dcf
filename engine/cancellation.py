"""Places at which a long computation can be interrupted, such as between two batches of a model.

There a server gives up a request for which no client waits.
"""

import contextlib
import contextvars
from collections.abc import Callable
from typing import Any

_action: contextvars.ContextVar = contextvars.ContextVar("action", default=None)


def checkpoint() -> None:
    """Calls the action that `at_checkpoints` has set for this thread, if there is one.

    The action may raise an exception, which ends the computation.
    """
    action = _action.get()
    if action is not None:
        action()


@contextlib.contextmanager
def at_checkpoints(action: Callable[[], None]) -> Any:
    """Makes `checkpoint` call `action()` on this thread, inside the `with` block.

    >>> with at_checkpoints(lambda: print("a step is done")):
    ...     checkpoint()
    a step is done
    """
    token = _action.set(action)
    try:
        yield
    finally:
        _action.reset(token)
