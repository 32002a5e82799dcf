"""Scores splits with trained models and prints the metrics beside the baselines and the papers'.

python evaluate.py --run=runs/dam --split=dev
python evaluate.py --run='runs/babi/*' --split=dev,dev-oov
python evaluate.py --run=runs/bidaf-1,runs/bidaf-2     # an ensemble
python evaluate.py --run=runs/chat --references=references.json
python evaluate.py --predictions=predictions.json --data=build/squad
python evaluate.py --run=runs/dam --predict=examples.jsonl --out=answers.jsonl
python evaluate.py --run=runs/dam --explain=3 --out=build/pictures
"""

import sys

from absl import flags

from base import cli
from base.files import UserError
from metrics.ranking import TIES

FLAGS = flags.FLAGS
SCORING = ("ties", "scores_out", "scores", "partial_batches", "examples")  # flags that only scoring takes
SEARCH = ("decode", "reverse_run", "reverse_weight")  # flags of generation
flags.DEFINE_string(
    "run",
    None,
    "Run directory that train.py made; a quoted pattern of several; or A,B,C, scored together as an ensemble by a "
    "mean of their probabilities (not generation).",
)
flags.DEFINE_string(
    "predictions", None, "Instead of a run: JSON {question id: answer} for a reading comprehension --data."
)
flags.DEFINE_list("split", ["dev"], "Splits to score.")
flags.DEFINE_string("data", None, "Prepared dataset; default: the one the run was trained on.")
flags.DEFINE_string(
    "references",
    None,
    "Generation: JSON {source: [reference]} instead of a dataset; replies are compared with all references at once.",
)
flags.DEFINE_enum("ties", "loss", list(TIES), "Selection: what equal scores get, see metrics/ranking.py.")
flags.DEFINE_enum(
    "precision",
    "auto",
    ["auto", "float32", "bfloat16", "float16"],
    "Precision of computation. auto: that of the run's training where this machine computes it, else float32.",
)
flags.DEFINE_enum("jit", "auto", ["auto", "on", "off"], "XLA. auto: on with a GPU or JAX, else off, where it loses.")
flags.DEFINE_string("scores_out", None, "Also writes what the model said, line by line; see the task's `measure`.")
flags.DEFINE_string("scores", None, "File to append a row to for each run and split, as results/scores.jsonl.")
flags.DEFINE_enum(
    "partial_batches", "keep", ["keep", "drop"], "Selection: drop leaves out the last lines as DAM's release does."
)
flags.DEFINE_integer("examples", 0, "Selection: prints as many contexts with their ranked candidates.", lower_bound=0)
flags.DEFINE_string("decode", None, "Generation: field=value,... of models.decoding.Decoding; default: greedy search.")
flags.DEFINE_string("reverse_run", None, "Generation: run of a reverse model, which chooses among the replies found.")
flags.DEFINE_float("reverse_weight", 0.5, "Weight of the reverse model's score.", lower_bound=0.0, upper_bound=1.0)
flags.DEFINE_string("predict", None, "Answer the JSON lines of this file, `-`: standard input, instead of scoring.")
flags.DEFINE_integer("explain", 0, "Show what the model attended to in as many examples of --split.", lower_bound=0)
flags.DEFINE_string(
    "out",
    "-",
    "With --predict: file of the answers, one per line; goes on where it ends. With --explain: directory of the "
    "pictures, a PNG and a JSON file per example.",
)
flags.DEFINE_bool("attention", False, "With --predict: answers also say what the model attended to.")
flags.DEFINE_bool("baselines", True, "Compute the baselines too.")


def main():
    if (FLAGS.run is None) == (FLAGS.predictions is None):
        raise UserError("expected one of --run and --predictions")
    if FLAGS.predictions and (not FLAGS.data or len(FLAGS.split) != 1):
        raise UserError("--predictions needs --data and one --split")
    options = ("ties", "scores_out", "partial_batches", "examples", *SEARCH)
    if FLAGS.predictions:
        cli.refuse_flags((*options, "scores", "precision", "jit", "baselines"), "--predictions")
    if FLAGS.references:
        cli.refuse_flags(("predictions", "data", "split", "predict", "explain"), "--references")
    if FLAGS.predict:
        predict()
        return
    if FLAGS.explain:
        explain()
        return
    cli.refuse_flags(("out", "attention"), "scoring, but for --predict")
    from engine.evaluate import evaluate_all  # TensorFlow takes seconds to load
    from engine.parallel import share_cores
    from tasks import TASKS

    share_cores()
    if FLAGS.predictions:
        TASKS["reading_comprehension"].evaluate_predictions(FLAGS.predictions, FLAGS.data, FLAGS.split[0])
        return
    given = {name: FLAGS[name].value for name in options if FLAGS[name].present}
    evaluate_all(
        tasks=TASKS,
        pattern=FLAGS.run,
        splits=["references"] if FLAGS.references else FLAGS.split,
        data=FLAGS.references or FLAGS.data,
        precision=FLAGS.precision,
        jit=FLAGS.jit,
        scores=FLAGS.scores,
        baselines=FLAGS.baselines,
        **given,
    )


def predict():
    """Answers a file of examples."""
    cli.refuse_flags(("split", "data", "explain", *SCORING), "--predict")
    from engine.predictor import predict_lines
    from engine.run import Run, set_precision
    from tasks import TASKS
    from tasks.generation.search import parse_decoding

    if not FLAGS.run:
        raise UserError("--predict needs a --run")
    run = Run.open(FLAGS.run)
    set_precision("float32")
    task = TASKS[run.task]
    cli.refuse_flags([name for name in SEARCH if name not in task.options], f"models of {task.name}")
    predictor = task.predictor(run)
    if FLAGS.reverse_run:
        predictor.rerank_by(FLAGS.reverse_run, FLAGS.reverse_weight)
    if FLAGS.decode:
        predictor.decode_by(parse_decoding(FLAGS.decode))
    answered, errors = predict_lines(predictor, FLAGS.predict, FLAGS.out, FLAGS.attention)
    print(f"{answered:,} lines answered, {errors:,} of them errors", file=sys.stderr)


def explain():
    """Shows what a model attended to."""
    cli.refuse_flags((*SCORING, *SEARCH), "--explain")
    if not FLAGS.run or FLAGS.out == "-" or len(FLAGS.split) != 1:
        raise UserError("--explain needs --run, --out=DIR and one --split")
    from rich.console import Console

    from engine.explain import explain_examples
    from engine.run import Run, set_precision
    from tasks import TASKS

    run = Run.open(FLAGS.run)
    task, [split] = TASKS[run.task], FLAGS.split
    set_precision("float32")
    predictor = task.predictor(run)
    dataset = task.dataset_of(run, FLAGS.data)
    if split not in dataset.splits or not len(dataset.splits[split]):
        raise UserError(f"{dataset.path} has no examples in the split {split}")
    explain_examples(predictor, task.examples_to_explain(dataset, FLAGS.explain, split), FLAGS.out, Console())


if __name__ == "__main__":
    cli.run(main)
