"""The display of a training: lines in the terminal, curves for TensorBoard."""

import datetime
import math
import time
from collections.abc import Callable, Mapping

import keras
from rich.console import Console

from colloquy.base.files import PathLike
from colloquy.engine.records import TrainState

LINE_SECONDS = 30
"""Seconds between two lines where the output is not a terminal."""
ENOUGH_STEPS = 500
"""`recommend_epochs` recommends at least this many steps."""


class Progress:
    """Shows steps, loss, speed and remaining time.

    A terminal shows one line that is updated. Elsewhere, for example in a file, a line is added
    every `LINE_SECONDS`.

    Args:
        first_step: Steps done before this process started.
        total_steps: Steps of the whole training.
    """

    def __init__(self, first_step: int, total_steps: int) -> None:
        self.console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
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
        # Validations and saves count too, since the remaining time includes them;
        # `describe_validation` shows the speed without them.
        seconds = max(time.monotonic() - self.started_at, 1e-6)
        speed = (step - self.first_step) / seconds
        remaining = datetime.timedelta(seconds=round((self.total_steps - step) / speed))
        text = (
            f"step {step:,} of {self.total_steps:,}  loss {loss:.4f}  {speed:.2f} steps/s  "
            f"{remaining} left"
        )
        self.status.update(text)
        is_due = time.monotonic() - self.printed_at >= LINE_SECONDS
        if is_due and not self.console.is_interactive:
            self.print_line(text)

    def print_line(self, text: str) -> None:
        """Prints a permanent line; the next one of `update` follows after `LINE_SECONDS`."""
        self.console.print(text)
        self.printed_at = time.monotonic()


def open_curves(path: PathLike) -> Callable:
    """Returns a function of a step and `{name: value}` that adds points to TensorBoard's curves.

    Only TensorFlow writes the curves. Other backends do not load it, and the function does nothing.
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


# === Texts ===


def recommend_epochs(total_steps: int, steps_per_epoch: int) -> str:
    """Returns advice for a training of few steps: the epochs that make `ENOUGH_STEPS`."""
    epochs = math.ceil(ENOUGH_STEPS / steps_per_epoch)
    steps = "1 step" if total_steps == 1 else f"{total_steps:,} steps"
    return (
        f"{steps} in all, with which a model may learn next to nothing: "
        f"--epochs={epochs} makes {epochs * steps_per_epoch:,} steps"
    )


def describe_validation(row: dict, metrics: Mapping[str, float], state: TrainState) -> str:
    """Returns the line of a validation, and a second one if early stopping ends the training.

    Args:
        row: Its row of the history.
        metrics: `{name: value}`.
        state: The state after it.
    """
    shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
    text = (
        f"step {row['step']:,}  epoch {row['epoch']:.2f}  loss {row['loss']:.4f}  "
        f"{row['steps_per_second']:.2f} steps/s  dev: {shown}"
    )
    is_best = state.waited == 0
    if is_best:
        text += "  (best)"
    if not state.stopped:
        return text
    if is_best:
        return f"{text}\nthe best possible score was reached: training stopped"
    validations = "validation" if state.waited == 1 else "validations"
    return f"{text}\nno improvement for {state.waited} {validations}: training stopped"
