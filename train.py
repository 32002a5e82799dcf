"""Trains a model on a prepared dataset into a run directory.

`python train.py --help` lists the flags; the code is colloquy/commands/train.py.
"""

from colloquy.commands import run_command

if __name__ == "__main__":
    run_command("train")
