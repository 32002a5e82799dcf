"""Talks to a trained model in the terminal.

    python chat.py --run=runs/memma
    python chat.py --run=runs/bidaf                         # then: /read notes.txt
    python chat.py --run=runs/dam --index=build/index       # of tools.build_index
    python chat.py --run=runs/dam --candidates=answers.txt  # your own answers, one per line
    python chat.py --run=runs/chat --reverse_run=runs/back  # a reverse model against dull replies
    python chat.py --run=runs/memma < lines.txt             # plain text out, each message a line

In a terminal, the lines that are typed are kept in ~/.colloquy_history, and come back by the arrow
keys.
"""

from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "run", None, "Run directory that train.py made, or a name as serve.py shows it.", required=True
)
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
"""Flags that only one task has."""


def main():
    if not FLAGS.reverse_run:
        cli.refuse_flags(["reverse_weight"], "use without --reverse_run")
    runtime.import_keras()

    from colloquy.engine.chat import Terminal, talk
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS
    from colloquy.tasks.dialog.chat import DialogChat
    from colloquy.tasks.generation.chat import GenerationChat
    from colloquy.tasks.reading_comprehension.chat import ReadingComprehensionChat
    from colloquy.tasks.selection.chat import SelectionChat

    run = Run.open(FLAGS.run)
    options = {}
    for task, names in OPTIONS.items():
        if task != run.task:
            cli.refuse_flags(names, f"models of {run.task}")
            continue
        for name in names:
            if FLAGS[name].present:
                options[name] = FLAGS[name].value
    predictor = TASKS[run.task].predictor(run)
    if run.task == "selection":
        options = choose_candidates(run, predictor, options)
    chats = {
        "dialog": DialogChat,
        "generation": GenerationChat,
        "reading_comprehension": ReadingComprehensionChat,
        "selection": SelectionChat,
    }
    console = Terminal()
    if run.note:
        console.print(run.note)
    talk(chats[run.task](predictor, **options), console)


def choose_candidates(run, predictor, options):
    """Returns where answers come from: `index` or `candidates`, by default the run's own index."""
    from colloquy.tasks.selection.retrieval.build import index_of_run

    if not options:
        index = index_of_run(run.path, predictor)
        if index:
            return {"index": index}
    if len(options) != 1:
        raise UserError(
            f"{run.path} ranks answers: give --index=DIR (tools.build_index) or --candidates=FILE"
        )
    return options


if __name__ == "__main__":
    cli.run(main)
