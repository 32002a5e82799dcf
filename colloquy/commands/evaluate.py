"""Scores splits with trained models, beside the baselines and the papers.

python evaluate.py --run=runs/dam --split=dev
python evaluate.py --run='runs/babi/*' --split=dev,dev-oov
python evaluate.py --run=runs/bidaf-1,runs/bidaf-2            # an ensemble
python evaluate.py --run='runs/memma-*' --against='runs/memr-*' --split=test
python evaluate.py --run=runs/dam --by=turns,words            # groups of examples
python evaluate.py --run=runs/chat --set=decode=beam=5,length_penalty=1
python evaluate.py --run=runs/chat --data=references.json     # {source: [reference, ...]}

Settings of --set, with their defaults:
    selection    ties=loss          equal scores, see metrics/ranking.py; the release's: release
                 partial_batches=keep    drop: whole batches alone, as the release
    dialog       action_mask=false  true: only responses that the run's action mask allows
    generation   decode=            field=value,... of models.decoding.Decoding; empty: greedy
                 reverse_run=       run of a reverse model, which chooses among the replies found
                 reverse_weight=0.5
"""

import inspect
import pathlib

from absl import flags

import colloquy
from colloquy.base import backend, cli, script_flags
from colloquy.base.config import parse_assignments
from colloquy.base.files import UserError, check_output, refuse_existing
from colloquy.data.json_files import write_json
from colloquy.data.prepared import check_splits

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "run",
    None,
    "Run directory; a quoted pattern of several; or A,B,C: an ensemble (not generation). May be "
    "repeated.",
    required=True,
)
flags.DEFINE_multi_string(
    "against",
    [],
    "Another model, as --run; selection: or tfidf, bm25, or a file with a score per line; reading "
    "comprehension: or a JSON file {question id: answer}. Shows the difference of each metric with "
    "its 95 % interval, by a paired bootstrap; several runs of a side are seeds.",
)
flags.DEFINE_list("split", None, "Splits to score; default: dev.")
flags.DEFINE_string(
    "data",
    None,
    "Prepared dataset; default: the one the run was trained on. Generation: or a JSON file "
    "{source: [reference, ...]}.",
)
flags.DEFINE_list(
    "by",
    [],
    "Score groups of examples: selection by turns, last_turn, words, echo; reading comprehension "
    "by question, confidence, added.",
)
flags.DEFINE_string(
    "out",
    None,
    "New file for the model's answers, line by line; with --against JSON of the differences; with "
    "--by a directory of the tables as JSON.",
)
flags.DEFINE_string(
    "scores", None, "File to append a row to for each run and split, as results/scores.jsonl."
)
flags.DEFINE_integer(
    "examples", 0, "Number of examples to show as the model reads and answers them.", lower_bound=0
)
flags.DEFINE_multi_string("set", [], "field=value of the task's settings, see above.")
flags.DEFINE_enum(
    "precision",
    "auto",
    ["auto", "float32", "bfloat16", "float16"],
    "auto: bfloat16 if the training was, on a GPU or a CPU with AMX; else float32.",
)
flags.DEFINE_bool("baselines", True, "Compute the baselines too.")


def main() -> None:
    splits = choose_splits()
    if FLAGS.against:
        script_flags.refuse_flags(("by", "scores", "examples", "baselines"), "--against")
    elif FLAGS.by:
        script_flags.refuse_flags(("scores", "examples", "baselines"), "--by")
    backend.import_keras()

    from colloquy.engine.parallel import share_cores

    share_cores()  # This process only scores.
    if FLAGS.against:
        compare(splits[0])
    elif FLAGS.by:
        score_groups(splits[0])
    else:
        score(splits)


def choose_splits() -> list[str]:
    """The splits to score: without --split dev, or those of a file of references."""
    if FLAGS.data and not pathlib.Path(FLAGS.data).exists():
        raise UserError(f"--data={FLAGS.data}: there is no such file or directory")
    is_file = FLAGS.data and pathlib.Path(FLAGS.data).is_file()
    splits = FLAGS.split or (["references"] if is_file else ["dev"])
    check_splits(splits)
    if (FLAGS.against or FLAGS.by) and len(splits) != 1:
        raise UserError(f"--split: expected one split. Received: {', '.join(splits)}")
    return splits


def read_settings() -> dict[str, str]:
    """Returns `{field: value}` of --set; the name of a flag is a `UserError`."""
    settings = parse_assignments(FLAGS.set)
    for function in (colloquy.evaluate, colloquy.compare):
        script_flags.refuse_flags_as_settings(settings, inspect.signature(function).parameters)
    return settings


def score(splits: list[str]) -> None:
    """Scores splits with one run or several."""
    colloquy.evaluate(
        FLAGS.run,
        data=FLAGS.data,
        split=splits,
        baselines=FLAGS.baselines,
        precision=FLAGS.precision,
        scores=FLAGS.scores,
        examples=FLAGS.examples,
        out=FLAGS.out,
        **read_settings(),
    )


def compare(split: str) -> None:
    """Compares two models on the same examples."""
    if FLAGS.out:
        check_output(FLAGS.out)
        refuse_existing(FLAGS.out)
    compared = colloquy.compare(
        FLAGS.run,
        FLAGS.against,
        data=FLAGS.data,
        split=split,
        precision=FLAGS.precision,
        **read_settings(),
    )
    if FLAGS.out:
        write_json(FLAGS.out, compared)


def score_groups(split: str) -> None:
    """Scores groups of examples with one run, or an ensemble."""
    from colloquy.engine.evaluation import open_evaluations
    from colloquy.engine.groups import show_groups
    from colloquy.tasks import TASKS

    settings = read_settings()
    evaluations = open_evaluations(TASKS, FLAGS.run, FLAGS.data, settings, FLAGS.precision)
    if len(evaluations) != 1:
        raise UserError(f"--by needs one run. Received: {len(evaluations)} runs")
    show_groups(evaluations[0], split, FLAGS.by, FLAGS.out)


if __name__ == "__main__":
    cli.run(main)
