"""Talks to a trained model in the terminal.

python chat.py --run=runs/memma
python chat.py --run=runs/bidaf                         # then: /read notes.txt
python chat.py --run=runs/dam --index=build/index       # of tools.build_index; default: RUN/index,
or one of RUN/pairs python chat.py --run=runs/dam --candidates=answers.txt  # your own answers, one
per line python chat.py --run=runs/chat --reverse_run=runs/back  # a reverse model chooses among
replies, against dull ones python chat.py --run=runs/memma < lines.txt             # plain text out,
each message a line

In a terminal, the lines that are typed are kept in ~/.colloquy_history, and come back by the arrow
keys.
"""

from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory that train.py made.", required=True)
flags.DEFINE_string(
    "index", None, "Selection: index of tools.build_index; default: RUN/index, or one of RUN/pairs."
)
flags.DEFINE_string("candidates", None, "Selection: file of answers to rank, one per line.")
flags.DEFINE_string(
    "reverse_run",
    None,
    "Generation: run of a reverse model, which chooses among the replies found.",
)
flags.DEFINE_float(
    "reverse_weight", 0.5, "Weight of the reverse model's score.", lower_bound=0.0, upper_bound=1.0
)
OPTIONS = {"selection": ("index", "candidates"), "generation": ("reverse_run", "reverse_weight")}


def main():
    runtime.import_keras()

    from colloquy.engine.chat import Terminal, talk
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS
    from colloquy.tasks.dialog.chat import DialogChat
    from colloquy.tasks.generation.chat import GenerationChat
    from colloquy.tasks.reading_comprehension.chat import ReadingComprehensionChat
    from colloquy.tasks.selection.chat import SelectionChat
    from colloquy.tasks.selection.retrieval.build import index_of_run

    chats = {"dialog": DialogChat, "generation": GenerationChat, "selection": SelectionChat}
    chats["reading_comprehension"] = ReadingComprehensionChat
    if not FLAGS.reverse_run:
        cli.refuse_flags(["reverse_weight"], "use without --reverse_run")
    run, console = Run.open(FLAGS.run), Terminal()
    for task in OPTIONS.keys() - {run.task}:
        cli.refuse_flags(OPTIONS[task], f"models of {run.task}")
    options = {name: FLAGS[name].value for name in OPTIONS.get(run.task, ()) if FLAGS[name].present}
    predictor = TASKS[run.task].predictor(run)
    if run.task == "selection":
        if not options and (own := index_of_run(run.path, predictor)):
            options = {"index": own}
        if len(options) != 1:
            raise UserError(
                f"{run.path} ranks answers: give --index=DIR (tools.build_index) or --candidates=FILE"
            )
    if run.note:
        console.print(run.note)
    talk(chats[run.task](predictor, **options), console)


if __name__ == "__main__":
    cli.run(main)
