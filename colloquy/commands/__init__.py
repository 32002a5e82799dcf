"""The commands, one file each: flags, then a call.

`colloquy train ...`, of an installed package, and `python train.py ...`, in a clone, run the same
file.
"""

import runpy
import sys

COMMANDS = {
    "prepare": "Turns the raw files of a corpus into a dataset.",
    "train": "Trains a model on a prepared dataset into a run directory.",
    "evaluate": "Scores splits with trained models, beside the baselines and the papers.",
    "predict": (
        "Answers a file of instances with a trained model, or shows its attention on examples."
    ),
    "export": "Writes a trained model as a TensorFlow SavedModel, which takes raw strings.",
    "chat": "Talks to a trained model in the terminal.",
    "serve": "Serves trained models: REST for programs, pages for people.",
}


def run_command(name):
    """Runs the file of a command as a program, which may define flags that others have, too."""
    runpy.run_module(f"{__name__}.{name}", run_name="__main__")


def main():
    """The program `colloquy`, which an installed package has."""
    from colloquy import __version__

    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name == "--version":
        print(__version__)
        return
    if name in ("--help", "-h"):
        print("colloquy COMMAND --help lists the flags of a command:\n")
        for command, meaning in COMMANDS.items():
            print(f"  {command:10}{meaning}")
        return
    if name not in COMMANDS:
        sys.exit(f"error: colloquy expects one of {', '.join(COMMANDS)}. Received: {name}")
    sys.argv = [f"colloquy {name}", *sys.argv[2:]]
    run_command(name)
