"""Answers a file of instances with a trained model, or shows its attention on examples.

python predict.py --run=pretrained/bidaf-squad --input=questions.jsonl --out=answers.jsonl
python predict.py --run=runs/dam --input=- --attention < conversations.jsonl
python predict.py --run=runs/chat --input=talks.jsonl --set=decode=beam=5 --out=replies.jsonl
python predict.py --run=runs/dam --explain=3 --maps='M_cross 2' --out=build/pictures

An instance is a line of JSON, as REST takes it; docs/serving.md has one for each task.
"""

import sys

from absl import flags

from colloquy.base import backend, cli, script_flags
from colloquy.base.config import make_config, parse_assignments
from colloquy.base.files import UserError

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory, or name of a published run.", required=True)
flags.DEFINE_string("input", None, "JSON lines to answer; `-`: standard input.")
flags.DEFINE_string(
    "out",
    None,
    "New file of the answers; default: standard output. With --explain: directory of pictures.",
)
flags.DEFINE_bool("attention", False, "With --input: answers also have the attention.")
flags.DEFINE_multi_string("set", [], "Generation: decode=field=value,...")
flags.DEFINE_integer(
    "explain", 0, "Number of examples of --split whose attention is shown.", lower_bound=0
)
flags.DEFINE_list(
    "maps", [], "With --explain: names of the maps to show alone, such as 'M_cross 2'."
)
flags.DEFINE_string("split", "dev", "With --explain: the split of the examples.")
flags.DEFINE_string(
    "data", None, "With --explain: prepared dataset; default: the one the run was trained on."
)


def main() -> None:
    if bool(FLAGS.input) == bool(FLAGS.explain):
        raise UserError("expected one of --input and --explain")
    if FLAGS.input:
        predict()
    else:
        explain()


def predict() -> None:
    """Answers the JSON lines of a file."""
    script_flags.refuse_flags(("maps", "split", "data"), "--input")
    settings = parse_assignments(FLAGS.set)
    backend.import_keras()

    from colloquy.engine.json_lines import predict_lines
    from colloquy.tasks import load_predictor

    run, task = open_run()
    predictor = load_predictor(run)
    predictor.configure(make_config(task.Options, settings, "--set "))
    count, num_wrong = predict_lines(predictor, FLAGS.input, FLAGS.out or "-", FLAGS.attention)
    print(f"{count - num_wrong:,} of {count:,} lines answered", file=sys.stderr)
    if num_wrong:
        raise UserError(f"no answer to {num_wrong:,} lines; in their place, the answers say why")


def explain() -> None:
    """Draws the attention of a model on examples."""
    script_flags.refuse_flags(("attention", "set"), "--explain")
    if not FLAGS.out:
        raise UserError("--explain needs --out=DIR")
    backend.import_keras()

    from colloquy.engine.examples import check_vocabulary, take_examples
    from colloquy.engine.explain import explain_examples

    run, task = open_run()
    dataset = task.dataset_of(run, FLAGS.data)
    check_vocabulary(dataset)
    if not len(dataset.splits.get(FLAGS.split, ())):
        raise UserError(f"{dataset.path} has no examples in the split {FLAGS.split}")
    examples = take_examples(task, dataset, FLAGS.explain, FLAGS.split, as_scored=True)
    predictor = task.predictor(run).for_scored_examples()
    explain_examples(predictor, examples, FLAGS.out, FLAGS.maps)


def open_run() -> tuple:
    """Opens the run and its task; models compute in float32 afterwards."""
    from colloquy.engine.devices import set_precision
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    run = Run.open(FLAGS.run)
    set_precision("float32")
    return run, TASKS[run.task]


if __name__ == "__main__":
    cli.run(main)
