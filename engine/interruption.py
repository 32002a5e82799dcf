"""What may happen to a training from outside: a signal that ends it, a second one on the same run."""

import contextlib
import fcntl
import signal
import sys
import threading

from base.files import UserError

LOCK = ".lock"


class Interruption:
    """While it is entered, SIGINT and SIGTERM ask training to end at its next step instead of ending the process.

    A second signal ends it at once, as `KeyboardInterrupt`.

    Attributes:
        requested: Name of the signal that came, or `None`.
    """

    def __init__(self):
        self.requested = None

    def __enter__(self):
        self._before = {}
        if threading.current_thread() is threading.main_thread():  # signals come to it alone
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number, _):
        if self.requested:
            raise KeyboardInterrupt
        self.requested = signal.Signals(number).name
        print(f"\n{self.requested}: saving after this step; once more ends at once", file=sys.stderr)


@contextlib.contextmanager
def locked(directory):
    """Keeps a second process from writing into a directory while the block runs; the lock goes with its process.

    Args:
        directory: A `pathlib.Path` that exists.

    Raises:
        UserError: where another process has it.
    """
    with open(directory / LOCK, "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"{directory} is being trained by another process: wait for it, or end it") from error
        yield
