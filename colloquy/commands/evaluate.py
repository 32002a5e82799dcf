"""Scores splits with trained models, beside the baselines and the papers.

python evaluate.py --run=runs/dam --split=dev
python evaluate.py --run='runs/babi/*' --split=dev,dev-oov
python evaluate.py --run=runs/bidaf-1,runs/bidaf-2     # an ensemble
python evaluate.py --run=runs/chat --references=references.json
python evaluate.py --predictions=predictions.json --data=build/squad
python evaluate.py --run=runs/dam --predict=examples.jsonl --out=answers.jsonl
python evaluate.py --run=runs/dam --explain=3 --out=build/pictures
python evaluate.py --run='runs/memma-*' --against='runs/memr-*' --split=test
"""

import pathlib
import sys

from absl import flags

import colloquy
from colloquy.base import cli, runtime
from colloquy.base.files import UserError, check_output, refuse_existing
from colloquy.data.prepared import check_splits
from colloquy.data.text_files import write_json
from colloquy.metrics.ranking import TIES

FLAGS = flags.FLAGS
PRECISIONS = ["auto", "float32", "bfloat16", "float16"]
flags.DEFINE_multi_string(
    "run",
    [],
    "Run directory; a quoted pattern of several; or A,B,C: an ensemble (not generation). May be "
    "repeated.",
)
flags.DEFINE_multi_string(
    "against",
    [],
    "Another model, as --run: shows the difference of each metric with its 95 % interval, by a "
    "paired bootstrap; several runs of a side are seeds. With --out=FILE.json it is written.",
)
flags.DEFINE_string(
    "predictions", None, "Instead of a run: JSON {question id: answer}, for reading comprehension."
)
flags.DEFINE_list("split", ["dev"], "Splits to score.")
flags.DEFINE_string("data", None, "Prepared dataset; default: the one the run was trained on.")
flags.DEFINE_string(
    "references", None, "Generation, instead of --data: JSON {source: [reference, ...]}."
)
flags.DEFINE_enum(
    "ties", "loss", list(TIES), "Selection: treatment of equal scores, see metrics/ranking.py."
)
flags.DEFINE_enum(
    "precision",
    "auto",
    PRECISIONS,
    "auto: the training's if the hardware computes it, else float32.",
)
flags.DEFINE_enum(
    "jit", "auto", ["auto", "on", "off"], "XLA. auto: on with a GPU or JAX, else off."
)
flags.DEFINE_string(
    "scores_out", None, "New file for the model's answers, line by line; see the task's `measure`."
)
flags.DEFINE_string(
    "scores", None, "File to append a row to for each run and split, as results/scores.jsonl."
)
flags.DEFINE_enum(
    "partial_batches",
    "keep",
    ["keep", "drop"],
    "Selection: drop scores whole batches, as the release.",
)
flags.DEFINE_integer(
    "examples", 0, "Number of examples to show as the model reads and answers them.", lower_bound=0
)
flags.DEFINE_string(
    "decode",
    None,
    "Generation: field=value,... of models.decoding.Decoding; default: greedy search to score, the "
    "run's own with --predict.",
)
flags.DEFINE_string(
    "reverse_run",
    None,
    "Generation: run of a reverse model, which chooses among the replies found.",
)
flags.DEFINE_float(
    "reverse_weight", 0.5, "Weight of the reverse model's score.", lower_bound=0.0, upper_bound=1.0
)
flags.DEFINE_bool(
    "action_mask", False, "Dialog: choose only responses that the run's action mask allows."
)
flags.DEFINE_string(
    "predict", None, "Answer the JSON lines of this file, `-`: standard input, instead of scoring."
)
flags.DEFINE_integer(
    "explain", 0, "Number of examples of --split whose attention is shown.", lower_bound=0
)
flags.DEFINE_string(
    "out",
    "-",
    "With --predict: file to append answers to; with --explain: directory of pictures; with "
    "--against: JSON file of the differences.",
)
flags.DEFINE_list(
    "maps", [], "With --explain: names of the maps to show alone, such as 'M_cross 2'."
)
flags.DEFINE_bool("attention", False, "With --predict: answers also have the attention.")
flags.DEFINE_bool("baselines", True, "Compute the baselines too.")

MAX_SHOWN = 10  # numbers of lines without an answer
SEARCH = ("decode", "reverse_run", "reverse_weight")
OPTIONS = ("ties", "scores_out", "partial_batches", "action_mask", "references", *SEARCH)
"""Flags that only some tasks have, see `engine.task.Task.options`."""
SCORING = ("scores", "examples", "precision", "jit", "baselines")


def main():
    if bool(FLAGS.run) == bool(FLAGS.predictions):
        raise UserError("expected one of --run and --predictions")
    if FLAGS.maps and not FLAGS.explain:
        raise UserError("--maps is for --explain")
    if FLAGS.references:
        cli.refuse_flags(("data", "split"), "--references")
    if not FLAGS.reverse_run:
        cli.refuse_flags(["reverse_weight"], "use without --reverse_run")
    if FLAGS.against:
        compare()
    elif FLAGS.predict:
        predict()
    elif FLAGS.explain:
        explain()
    else:
        cli.refuse_flags(("out", "attention"), "scoring, but for --predict")
        if FLAGS.predictions:
            score_predictions()
        else:
            score()


def score():
    """Scores splits with one run or several."""
    if FLAGS.references and not pathlib.Path(FLAGS.references).is_file():
        raise UserError(f"--references={FLAGS.references}: there is no such file")
    options = {name: FLAGS[name].value for name in SCORING}
    for name in OPTIONS:
        if FLAGS[name].present:
            options[name] = FLAGS[name].value
    splits = ["references"] if FLAGS.references else FLAGS.split
    data = FLAGS.references or FLAGS.data
    start_keras(splits)
    colloquy.evaluate(FLAGS.run, data=data, split=splits, **options)


def start_keras(splits):
    """Loads Keras for a process that only scores: each batch gets its part of the cores."""
    check_splits(splits)
    runtime.import_keras()

    from colloquy.engine.parallel import share_cores

    share_cores()


def compare():
    """Compares two models on the same examples."""
    others = [name for name in SCORING if name not in ("precision", "jit")]
    cli.refuse_flags((*others, "scores_out", "predict", "explain", "attention"), "--against")
    splits = ["references"] if FLAGS.references else FLAGS.split
    if not FLAGS.run or len(splits) != 1:
        raise UserError("--against needs --run and one --split")
    options = {name: FLAGS[name].value for name in ("precision", "jit")}
    for name in OPTIONS:
        if FLAGS[name].present:
            options[name] = FLAGS[name].value
    if FLAGS.out != "-":
        check_output(FLAGS.out)
        refuse_existing(FLAGS.out)
    data = FLAGS.references or FLAGS.data
    start_keras(splits)
    compared = colloquy.compare(FLAGS.run, FLAGS.against, data=data, split=splits[0], **options)
    if FLAGS.out != "-":
        write_json(FLAGS.out, compared)


def score_predictions():
    """Scores a file of answers."""
    cli.refuse_flags((*OPTIONS, *SCORING), "--predictions")
    if not FLAGS.data or len(FLAGS.split) != 1:
        raise UserError("--predictions needs --data and one --split")
    runtime.import_keras()

    from colloquy.tasks import TASKS

    task = TASKS["reading_comprehension"]
    task.evaluate_predictions(FLAGS.predictions, FLAGS.data, FLAGS.split[0])


def predict():
    """Answers the JSON lines of a file."""
    others = [name for name in OPTIONS if name not in SEARCH]
    cli.refuse_flags(("split", "data", "explain", *SCORING, *others), "--predict")
    runtime.import_keras()

    from colloquy.engine.predictor import predict_lines
    from colloquy.tasks.generation.search import parse_decoding

    run, task = open_run()
    unknown = [name for name in SEARCH if name not in task.options]
    cli.refuse_flags(unknown, f"models of {task.name}")
    predictor = task.predictor(run)
    if FLAGS.reverse_run:
        predictor.rerank_by(FLAGS.reverse_run, FLAGS.reverse_weight)
    if FLAGS.decode:
        predictor.decoding = parse_decoding(FLAGS.decode)
    count, failed = predict_lines(predictor, FLAGS.predict, FLAGS.out, FLAGS.attention)
    print(f"{count - len(failed):,} of {count:,} lines answered", file=sys.stderr)
    if failed:
        numbers = ", ".join(str(number) for number in failed[:MAX_SHOWN])
        more = ", ..." if len(failed) > MAX_SHOWN else ""
        raise UserError(f"no answer to {len(failed):,} lines: {numbers}{more}")


def explain():
    """Draws the attention of a model on examples."""
    cli.refuse_flags((*SCORING, "attention", *OPTIONS), "--explain")
    if FLAGS.out == "-" or len(FLAGS.split) != 1:
        raise UserError("--explain needs --out=DIR and one --split")
    runtime.import_keras()

    from colloquy.engine.chat import Terminal
    from colloquy.engine.explain import explain_examples

    run, task = open_run()
    split = FLAGS.split[0]
    dataset = task.dataset_of(run, FLAGS.data)
    if split not in dataset.splits or not len(dataset.splits[split]):
        raise UserError(f"{dataset.path} has no examples in the split {split}")
    examples = task.examples(dataset, FLAGS.explain, split)
    explain_examples(task.predictor(run), examples, FLAGS.out, Terminal(), FLAGS.maps)


def open_run():
    """Opens the run and its task; models compute in float32 afterwards."""
    if len(FLAGS.run) != 1:
        raise UserError("--predict and --explain need one --run")
    from colloquy.engine.devices import set_precision
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    run = Run.open(FLAGS.run[0])
    set_precision("float32")
    return run, TASKS[run.task]


if __name__ == "__main__":
    cli.run(main)
