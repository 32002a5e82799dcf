"""Scores splits with trained models, beside the baselines and the papers.

`python evaluate.py --help` lists the flags; the code is colloquy/commands/evaluate.py.
"""

from colloquy.commands import run_command

if __name__ == "__main__":
    run_command("evaluate")
