"""Talks to a trained model in the terminal.

python chat.py --run=runs/memma
python chat.py --run=runs/bidaf                         # then: /read notes.txt
python chat.py --run=runs/dam --index=build/index       # of tools.build_index; default: RUN/index, of RUN/pairs
python chat.py --run=runs/dam --candidates=answers.txt  # answers of one's own, one per line
python chat.py --run=runs/chat --reverse_run=runs/back   # a reverse model chooses among replies, against dull ones
python chat.py --run=runs/memma < lines.txt             # plain text out, each message a line

In a terminal, what is typed is kept in ~/.colloquy_history, so that it comes back by the arrow keys.
"""

from absl import flags
from rich.console import Console

from base import cli
from base.files import UserError

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory that train.py made.", required=True)
flags.DEFINE_string(
    "index",
    None,
    "Selection: directory that tools.build_index made, to take answers from; default: RUN/index, built of "
    "RUN/pairs where these are.",
)
flags.DEFINE_string("candidates", None, "Selection: file of answers to rank, one per line.")
flags.DEFINE_string("reverse_run", None, "Generation: run of a reverse model, which chooses among the replies found.")
flags.DEFINE_float("reverse_weight", 0.5, "Weight of the reverse model's score.", lower_bound=0.0, upper_bound=1.0)
OPTIONS = {"selection": ("index", "candidates"), "generation": ("reverse_run", "reverse_weight")}


def main():
    from engine.chat import talk
    from engine.run import Run  # TensorFlow takes seconds to load
    from serving.models import TOY
    from tasks import TASKS
    from tasks.dialog.chat import DialogChat
    from tasks.generation.chat import GenerationChat
    from tasks.reading_comprehension.chat import ReadingComprehensionChat
    from tasks.selection.chat import SelectionChat
    from tasks.selection.retrieval.build import index_of_run

    chats = {
        "dialog": DialogChat,
        "generation": GenerationChat,
        "reading_comprehension": ReadingComprehensionChat,
        "selection": SelectionChat,
    }
    run, console = Run.open(FLAGS.run), Console()
    for task, names in OPTIONS.items():
        if task != run.task:
            cli.refuse_flags(names, f"models of {run.task}")
    options = {name: FLAGS[name].value for name in OPTIONS.get(run.task, ()) if FLAGS[name].present}
    predictor = TASKS[run.task].predictor(run)
    if run.task == "selection":
        own = None if options else index_of_run(run.path, predictor)
        options |= {"index": own} if own else {}
        if len(options) != 1:
            raise UserError(
                f"{run.path} chooses among answers: give --index=DIR (tools.build_index) or --candidates=FILE"
            )
    chat = chats[run.task](predictor, **options)
    if (run.dataset.get("name") or "").startswith("sample"):
        console.print(TOY)
    talk(chat, console)


if __name__ == "__main__":
    cli.run(main)
