"""Talks to a trained model in the terminal.

python chat.py --run=runs/memma
python chat.py --run=runs/bidaf                         # then: /read notes.txt
python chat.py --run=runs/dam --index=build/index       # of tools.build_index
python chat.py --run=runs/dam --candidates=answers.txt  # your own answers, one per line
python chat.py --run=runs/memma < lines.txt             # plain text out, each message a line
"""

from absl import flags

from colloquy.base import backend, cli

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "run", None, "Run directory that train.py made, or a name as serve.py shows it.", required=True
)
flags.DEFINE_string(
    "index", None, "Selection: index of tools.build_index; default: RUN/index, or one of RUN/pairs."
)
flags.DEFINE_string("candidates", None, "Selection: file of answers to rank, one per line.")


def main() -> None:
    backend.import_keras()

    from colloquy.engine.run import Run
    from colloquy.engine.terminal import Terminal, talk
    from colloquy.tasks import TASKS, load_predictor
    from colloquy.tasks.selection.chat import read_candidates

    run = Run.open(FLAGS.run)
    candidates = read_candidates(FLAGS.candidates) if FLAGS.candidates else None
    chat = TASKS[run.task].chat(load_predictor(run, FLAGS.index, candidates))
    console = Terminal()
    if run.note:
        console.print(run.note)
    talk(chat, console)


if __name__ == "__main__":
    cli.run(main)
