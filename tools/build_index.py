"""Builds an index of (context, response) pairs, from which chat.py --index answers.

python -m colloquy.tools.build_index --run=runs/dam --corpus=smn \\
    --source=../shared/data/ubuntu-irc --out=build/index

The training files of each corpus are used.
"""

import time

from absl import flags

from colloquy.base import backend, cli
from colloquy.base.files import UserError
from colloquy.data.corpora import CORPORA, dam_release

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "run", None, "Run directory of the model that ranks the responses.", required=True
)
flags.DEFINE_string("out", None, "Directory to write; missing or empty.", required=True)
CONVERSATIONS = [
    name
    for name, row in CORPORA.items()
    if row.task in ("selection", "generation") and row.reader is not dam_release
]
flags.DEFINE_multi_enum(
    "corpus", [], CONVERSATIONS, "Format of --source; may be repeated, as --source."
)
flags.DEFINE_multi_string("source", None, "Directory of a corpus; chitchat alone needs none.")


def main():
    begin = time.perf_counter()
    sources = FLAGS.source or []
    if FLAGS.corpus == ["chitchat"] and not sources:
        sources = [None]
    if not sources or len(FLAGS.corpus) != len(sources):
        raise UserError(
            f"each --source needs its --corpus. Received: {len(FLAGS.corpus)} and {len(sources)}"
        )
    backend.import_keras()

    from colloquy.engine.run import Run
    from colloquy.tasks.selection.predictor import SelectionPredictor
    from colloquy.tasks.selection.retrieval.build import build, of_corpus

    run = Run.open(FLAGS.run)
    if run.task != "selection":
        raise UserError(f"{run.path}: an index is for a model of selection. Received: {run.task}")
    predictor = SelectionPredictor(run)
    corpora = zip(FLAGS.corpus, sources, strict=True)
    conversations = (turns for corpus, source in corpora for turns in of_corpus(corpus, source))
    config = build(predictor, FLAGS.out, conversations)
    print(
        f"{FLAGS.out}: {config['responses']:,} responses to {config['pairs']:,} contexts in "
        f"{time.perf_counter() - begin:.0f} s; {config['left_out']:,} left out "
        "(names, insults, no content, hidden or unknown words)"
    )


if __name__ == "__main__":
    cli.run(main)
