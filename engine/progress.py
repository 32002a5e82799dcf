"""The display of a training: lines in the terminal, curves for TensorBoard."""

import datetime
import time
from collections.abc import Callable, Mapping
from typing import Any

import keras
from rich.console import Console

from colloquy.base.files import PathLike

LINE_SECONDS = 30
"""Seconds between two lines where the output is no terminal."""


class Progress:
    """Shows steps, loss, speed and remaining time.

    A terminal shows one line that is updated. Elsewhere, for example in a file, a line is added
    every `LINE_SECONDS`.

    Args:
        first_step: Steps that an interrupted training has done.
        total_steps: Steps of the whole training.
    """

    def __init__(self, first_step: int, total_steps: int) -> None:
        self.console = Console(markup=False, highlight=False, soft_wrap=True)
        self.first_step = first_step
        self.total_steps = total_steps
        self.started_at = time.monotonic()
        self.printed_at = self.started_at
        self.status = self.console.status(f"step {first_step:,} of {total_steps:,}")

    def __enter__(self):
        self.status.start()
        return self

    def __exit__(self, *_):
        self.status.stop()

    def update(self, step: int, loss: float) -> None:
        """Shows `step`, which counts from the beginning of the training, and the latest loss."""
        # The time of validations and saves counts, too: it is part of the time that is left.
        seconds = max(time.monotonic() - self.started_at, 1e-6)
        speed = (step - self.first_step) / seconds
        left = datetime.timedelta(seconds=round((self.total_steps - step) / speed))
        done = f"step {step:,} of {self.total_steps:,}"
        text = f"{done}  loss {loss:.4f}  {speed:.2f} steps/s  {left} left"
        self.status.update(text)
        is_due = time.monotonic() - self.printed_at >= LINE_SECONDS
        if is_due and not self.console.is_interactive:
            self.print_line(text)

    def print_line(self, text: str) -> None:
        """Prints a line that stays, and begins to wait for the next one."""
        self.console.print(text)
        self.printed_at = time.monotonic()


def open_curves(path: PathLike) -> Callable[[int, Mapping[str, Any]], None]:
    """Returns a function of a step and `{name: value}` that adds points to TensorBoard's curves.

    Other backends do not load TensorFlow, which writes the curves: there the function does nothing.
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
