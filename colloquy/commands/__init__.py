"""The commands, one file each: flags, then a call. Programs for research are in `colloquy.tools`.

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

TOOLS = {
    "sweep": "Trains and scores recipes on several datasets with several seeds.",
    "build_index": "Builds an index of responses for a model of selection.",
    "import_release": "Turns a checkpoint of DAM's original release into a run.",
}


def run_command(name: str) -> None:
    """Runs the file of a command as a program, which may define flags that others have, too."""
    runpy.run_module(f"{__name__}.{name}", run_name="__main__")


def main() -> None:
    """The program `colloquy`, which an installed package has."""
    from colloquy import __version__

    programs = {**COMMANDS, **TOOLS}
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name == "--version":
        print(__version__)
        return
    if name in ("--help", "-h"):
        print("colloquy COMMAND --help lists the flags of a command:\n")
        for command, meaning in programs.items():
            print(f"  {command:15} {meaning}")
        return
    if name not in programs:
        sys.exit(f"error: colloquy expects one of {', '.join(programs)}. Received: {name}")
    sys.argv = [f"colloquy {name}", *sys.argv[2:]]
    folder = "colloquy.tools" if name in TOOLS else __name__
    runpy.run_module(f"{folder}.{name}", run_name="__main__")
