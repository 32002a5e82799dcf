"""Builds an index of (context, response) pairs, from which chat.py --index answers.

python -m tools.build_index --run=runs/dam --corpus=smn --source=../shared/data/ubuntu-irc --out=build/index
python -m tools.build_index --run=runs/dam --data=build/ubuntu-irc --out=build/index

The training split is used: of a prepared dataset with rare words as `_UNK_`, of the files of a corpus with all words.
"""

import time

from absl import flags

from base import cli
from base.files import UserError
from data.corpora import CORPORA

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory of the model that ranks the responses.", required=True)
flags.DEFINE_string("out", None, "Directory to write; missing or empty.", required=True)
flags.DEFINE_string("data", None, "Prepared response-selection dataset.")
CONVERSATIONS = [name for name, row in CORPORA.items() if row.task in ("selection", "generation")]
flags.DEFINE_multi_enum("corpus", [], CONVERSATIONS, "Format of --source; may be repeated, as --source.")
flags.DEFINE_multi_string("source", [], "Directory of a corpus.")


def main():
    begin = time.perf_counter()
    if bool(FLAGS.data) == bool(FLAGS.source):
        raise UserError("give either --data, or --corpus and --source")
    if len(FLAGS.corpus) != len(FLAGS.source):
        raise UserError(f"each --source needs its --corpus. Received: {len(FLAGS.corpus)} and {len(FLAGS.source)}")
    # TensorFlow takes seconds to load.
    from engine.run import Run
    from tasks.selection.predictor import SelectionPredictor
    from tasks.selection.retrieval.build import build, of_corpus, of_dataset

    run = Run.open(FLAGS.run)
    if run.task != "selection":
        raise UserError(f"{run.path}: an index is for a model of selection. Received: {run.task}")
    predictor = SelectionPredictor(run)
    if FLAGS.data:
        conversations = of_dataset(FLAGS.data, predictor.vocabulary)
    else:
        sources = zip(FLAGS.corpus, FLAGS.source, strict=True)
        conversations = (turns for corpus, source in sources for turns in of_corpus(corpus, source))
    config = build(predictor, FLAGS.out, conversations, [FLAGS.data] if FLAGS.data else FLAGS.source)
    print(
        f"{FLAGS.out}: {config['responses']:,} responses to {config['pairs']:,} contexts in "
        f"{time.perf_counter() - begin:.0f} s; {config['left_out']:,} left out (names, hidden or unknown words)"
    )


if __name__ == "__main__":
    cli.run(main)
