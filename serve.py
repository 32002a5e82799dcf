"""Serves trained models: REST for programs, pages for people.

`python serve.py --help` lists the flags; the code is colloquy/commands/serve.py.
"""

from colloquy.commands import run_command

if __name__ == "__main__":
    run_command("serve")
