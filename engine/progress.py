"""How far a training is: one line that moves in a terminal, plain lines now and then in a file."""

import datetime
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn


class Display:
    """Shows steps of the whole training, loss, speed and remaining time; lines of text stay above.

    Args:
        step: Where training begins.
        total: Steps of the whole training.
        file: A terminal or any text file; default: standard output.
        every: Seconds between two lines where it is no terminal.
        clock: Returns seconds.
    """

    def __init__(self, step, total, file=None, every=30.0, clock=time.monotonic):
        file = file or sys.stdout
        self.console = Console(file=file, markup=False, highlight=False, soft_wrap=True)
        self.first, self.total, self.every, self.clock = step, total, every, clock
        self.started = self.shown = clock()
        self.bar = None
        if self.console.is_terminal:
            columns = BarColumn(), TextColumn("{task.description}", markup=False)
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.row = self.bar.add_task(self.status(step), total=total, completed=step)

    def __enter__(self):
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_):
        if self.bar:
            self.bar.stop()

    def update(self, step, loss):
        """Tells of a step that was done.

        Args:
            step: How many were done, over the whole training.
            loss: The latest.
        """
        if self.bar:
            self.bar.update(self.row, completed=step, description=self.status(step, loss))
        elif self.clock() - self.shown >= self.every:
            self.line(self.status(step, loss))

    def line(self, text):
        """Prints a line."""
        self.console.print(text)
        self.console.file.flush()
        self.shown = self.clock()

    def status(self, step, loss=None):
        """`step 120 of 1,200  loss 0.4321  3.10 steps/s  0:05:48 left`, as far as it is known."""
        parts = [f"step {step:,} of {self.total:,}"]
        if loss is not None:
            parts.append(f"loss {loss:.4f}")
        seconds, done = self.clock() - self.started, step - self.first
        if seconds > 0 and done:
            left = datetime.timedelta(seconds=round((self.total - step) * seconds / done))
            parts += [f"{done / seconds:.2f} steps/s", f"{left} left"]
        return "  ".join(parts)
