"""Answers a file of instances with a trained model, or shows its attention on examples.

`python predict.py --help` lists the flags; the code is colloquy/commands/predict.py.
"""

from colloquy.commands import run_command

if __name__ == "__main__":
    run_command("predict")
