"""The display of a training: lines in the terminal, curves for TensorBoard."""

import datetime
import time
from collections.abc import Callable, Mapping
from typing import Any

import keras
from rich.console import Console

from colloquy.base.files import PathLike

LINE_SECONDS = 30
"""Time between two lines where there is no terminal."""


class Progress:
    """Shows steps, loss, speed and remaining time.

    In a terminal it is a moving line, elsewhere a line every `LINE_SECONDS`.
    """

    def __init__(self, step: int, total: int) -> None:
        self.console = Console(markup=False, highlight=False, soft_wrap=True)
        self.first_step = step
        self.total = total
        self.started_at = time.monotonic()
        self.printed_at = self.started_at
        self.status = self.console.status(f"step {step:,} of {total:,}")

    def __enter__(self):
        self.status.start()
        return self

    def __exit__(self, *_):
        self.status.stop()

    def update(self, step: int, loss: float) -> None:
        """Shows the steps done, over the whole training, and the latest loss."""
        seconds = max(time.monotonic() - self.started_at, 1e-6)
        speed = (step - self.first_step) / seconds
        left = datetime.timedelta(seconds=round((self.total - step) / speed))
        text = f"step {step:,} of {self.total:,}  loss {loss:.4f}  {speed:.2f} steps/s  {left} left"
        self.status.update(text)
        is_due = time.monotonic() - self.printed_at >= LINE_SECONDS
        if is_due and not self.console.is_terminal:
            self.line(text)

    def line(self, text: str) -> None:
        """Prints a line that stays."""
        self.console.print(text)
        self.console.file.flush()
        self.printed_at = time.monotonic()


def open_curves(path: PathLike) -> Callable[[int, Mapping[str, Any]], None]:
    """Returns a function of a step and `{name: value}` that adds points to TensorBoard's curves.

    On other backends than TensorFlow it does nothing.
    """
    if keras.config.backend() != "tensorflow":
        return lambda step, values: None
    import tensorflow as tf

    writer = tf.summary.create_file_writer(str(path))

    def add_points(step, values):
        with writer.as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        writer.flush()

    return add_points
