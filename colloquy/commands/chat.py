"""Talks to a trained model in the terminal.

python chat.py --run=runs/memma
python chat.py --run=runs/bidaf                         # then: /read notes.txt
python chat.py --run=runs/dam --index=build/index       # of tools.build_index
python chat.py --run=runs/dam --candidates=answers.txt  # your own answers, one per line
python chat.py --run=runs/memma < lines.txt             # plain text out, each message a line
"""

from absl import flags

from colloquy.base import backend, cli, script_flags

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "run", None, "Run directory that train.py made, or a name as serve.py shows it.", required=True
)
flags.DEFINE_string(
    "index", None, "Selection: index of tools.build_index; default: RUN/index, or one of RUN/pairs."
)
flags.DEFINE_string("candidates", None, "Selection: file of answers to rank, one per line.")
OPTIONS = ("index", "candidates")
"""Flags that only one task has, see `engine.task.Task.chat_options`."""


def main() -> None:
    backend.import_keras()

    from colloquy.engine.run import Run
    from colloquy.engine.terminal import Terminal, talk
    from colloquy.tasks import TASKS

    run = Run.open(FLAGS.run)
    task = TASKS[run.task]
    foreign = [name for name in OPTIONS if name not in task.chat_options]
    script_flags.refuse_flags(foreign, f"models of {task.name}")
    options = {}
    for name in task.chat_options:
        if FLAGS[name].present:
            options[name] = FLAGS[name].value
    chat = task.chat(run, options)
    console = Terminal()
    if run.note:
        console.print(run.note)
    talk(chat, console)


if __name__ == "__main__":
    cli.run(main)
