"""Talks to a trained model in the terminal.

`python chat.py --help` lists the flags; the code is colloquy/commands/chat.py.
"""

from colloquy.commands import run_command

if __name__ == "__main__":
    run_command("chat")
