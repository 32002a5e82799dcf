"""Runs colloquy/commands/evaluate.py, which explains the flags."""

from colloquy.commands import run_command

if __name__ == "__main__":
    run_command("evaluate")
