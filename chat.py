"""Talks to a trained model in the terminal.

python chat.py --run=runs/memma
python chat.py --run=runs/bidaf        # then: /read notes.txt
"""

from absl import flags
from rich.console import Console

from base import cli
from base.files import UserError

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory that train.py made.", required=True)


def main():
    from engine.runs import Run  # TensorFlow takes seconds to load
    from tasks import TASKS
    from tasks.dialog.chat import DialogChat
    from tasks.generation.chat import GenerationChat
    from tasks.reading_comprehension.chat import ReadingComprehensionChat

    chats = {
        "dialog": DialogChat,
        "generation": GenerationChat,
        "reading_comprehension": ReadingComprehensionChat,
    }
    run = Run.open(FLAGS.run)
    if run.entry.task not in chats:
        raise UserError(f"{run.path}: models of {run.entry.task} rank what others said, they do not talk")
    talk(chats[run.entry.task](TASKS[run.entry.task].predictor(run)), Console())


def talk(chat, console):
    """Reads lines and prints answers until `/quit` or the end of the input.

    Args:
        chat: Has `reply(text)`, `HELP`, and `commands`: functions of what stands behind their names.
        console: A `rich.console.Console`.
    """
    console.print(f"{chat.HELP}\n/quit       ends", markup=False, highlight=False)
    while True:
        try:
            line = console.input("you: ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if line == "/quit":
            return
        command, _, argument = line.partition(" ")
        if command in chat.commands:
            console.print(chat.commands[command](argument.strip()), markup=False, highlight=False)
        elif line.startswith("/"):
            console.print(f"Commands: {', '.join([*chat.commands, '/quit'])}", markup=False, highlight=False)
        else:
            for text in chat.reply(line):
                console.print("bot:", text, markup=False, highlight=False)


if __name__ == "__main__":
    cli.run(main)
