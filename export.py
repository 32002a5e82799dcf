"""Writes a trained model as a TensorFlow SavedModel, which takes raw strings.

`python export.py --help` lists the flags; the code is colloquy/commands/export.py.
"""

from colloquy.commands import run_command

if __name__ == "__main__":
    run_command("export")
