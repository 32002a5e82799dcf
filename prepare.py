"""Turns the raw files of a corpus into a dataset.

`python prepare.py --help` lists the flags; the code is colloquy/commands/prepare.py.
"""

from colloquy.commands import run_command

if __name__ == "__main__":
    run_command("prepare")
