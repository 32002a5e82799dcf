"""Handles signals and locks the directory of a training."""

import contextlib
import fcntl
import pathlib
import signal
import sys
import threading
from collections.abc import Iterator

from colloquy.base.files import PathLike, UserError, writing

LOCK = ".lock"


@contextlib.contextmanager
def signals_received() -> Iterator[list[str]]:
    """Yields a list that SIGINT or SIGTERM is noted in, so that training saves and ends.

    A second signal interrupts at once.
    """
    received: list[str] = []

    def receive(number, _):
        if received:
            raise KeyboardInterrupt
        received.append(signal.Signals(number).name)
        # Ctrl-C in `train.py 2>&1 | tee log` ends `tee`, too: nobody reads this message.
        with contextlib.suppress(OSError):
            print(
                f"\n{received[0]}: saving after this step; a second signal ends without saving",
                file=sys.stderr,
            )

    handlers_before = {}
    if threading.current_thread() is threading.main_thread():  # no other thread gets signals
        for number in (signal.SIGINT, signal.SIGTERM):
            handlers_before[number] = signal.signal(number, receive)
    try:
        yield received
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def locked(directory: PathLike) -> Iterator[None]:
    """Keeps other processes, by a `UserError`, from training into a directory.

    The lock ends with the block, or with its process. A link or a pipe of its name is refused.
    """
    path = pathlib.Path(directory) / LOCK
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UserError(f"{path} is not a regular file")
    with writing(path):
        file = open(path, "a", encoding="utf-8")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"another process is training {directory}: wait for it, or end it"
            ) from error
        except OSError as error:  # a file system without locks
            raise UserError(f"{path} cannot be locked: {error.strerror}") from error
        yield
