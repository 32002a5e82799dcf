"""engine/progress.py: what a training shows in a terminal and in a file."""

import io

from engine.progress import Display


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_file_gets_a_line_now_and_then():
    clock, file = Clock(), io.StringIO()
    with Display(step=20, total=120, file=file, every=30.0, clock=clock) as display:
        for step in range(21, 61):
            clock.now += 2.0
            display.update(step, loss=1 / step)
        display.line("[laughs] validation")
    lines = file.getvalue().splitlines()
    assert lines == [
        "step 35 of 120  loss 0.0286  0.50 steps/s  0:02:50 left",
        "step 50 of 120  loss 0.0200  0.50 steps/s  0:02:20 left",
        "[laughs] validation",
    ]
    assert "\r" not in file.getvalue() and "\x1b" not in file.getvalue()


def test_a_line_begins_the_wait_for_the_next_anew():
    clock, file = Clock(), io.StringIO()
    display = Display(step=0, total=7, file=file, every=30.0, clock=clock)
    clock.now += 29.0
    display.line("validation")
    clock.now += 29.0
    display.update(2, 0.5)
    assert file.getvalue() == "validation\n"


def test_a_terminal_shows_steps_of_the_whole_training(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    clock, file = Clock(), Terminal()
    with Display(step=3, total=11, file=file, clock=clock) as display:
        clock.now += 5.0
        display.update(5, loss=0.25)
        display.line("validation")
    printed = file.getvalue()
    assert "step 5 of 11  loss 0.2500  0.40 steps/s  0:00:15 left" in printed
    assert "validation" in printed


def test_nothing_is_known_before_the_first_step():
    assert Display(step=5, total=1200, file=io.StringIO()).status(5) == "step 5 of 1,200"
