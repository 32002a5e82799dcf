"""Repeats the scores that a published model claims, by the commands of its card; prints claimed
beside found.

make reproduce MODEL=bidaf            # evaluates pretrained/bidaf-squad
make reproduce MODEL=bidaf TRAIN=1    # trains it anew first, in runs/reproduced; interrupted, the
same call continues

Corpora are prepared from `--corpora`, nothing is downloaded. Exit code 1 if a score differs by more
than rounding.
"""

import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from absl import flags

from colloquy.base import cli
from colloquy.base.files import UserError
from colloquy.engine.run import CARD, LAST, Run
from colloquy.metrics.published import scores
from colloquy.metrics.tables import markdown

FLAGS = flags.FLAGS
ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBLISHED = {
    "bidaf": "bidaf-squad",
    "chat": "chat-dailydialog",
    "chat-chinese": "chat-xdailydialog",
    "dam": "dam-ubuntu-irc",
    "entity-memma": "entity-memma-task5",
    "memma": "memma-task6",
}
# largest difference that is rounding; relative for perplexity and length, which exceed 1
ROUNDING = 5e-4


def main():
    published = f"pretrained/{PUBLISHED[FLAGS.model]}"
    run = Run.open(ROOT / published)
    card = (run.path / CARD).read_text(encoding="utf-8").replace("../shared/data", FLAGS.corpora)
    prepare, evaluate, *others = re.findall(r"(?m)^    python ((?:prepare|evaluate)\.py .*)$", card)
    with tempfile.TemporaryDirectory() as directory:
        call(prepare.replace("build/data", f"{directory}/data"))
        evaluate = evaluate.replace("build/data", f"{directory}/data")
        if FLAGS.train:
            evaluate = evaluate.replace(published, trained(run, others))
        call(f"{evaluate} --precision=float32 --nobaselines --scores={directory}/rows.jsonl")
        found = {row["split"]: row["metrics"] for row in scores(f"{directory}/rows.jsonl")}
    compare({split: result["metrics"] for split, result in run.metrics().items()}, found)


def trained(run, prepares):
    """Trains the stages of a published model, each from the one before, and returns the path of the
    last.
    """
    for command in prepares:
        if not (ROOT / re.search(r"--out=(\S+)", command)[1]).exists():
            call(command)
    workdir = None
    for number, stage in enumerate(run.trainings(), 1):
        given = dict(re.findall(r"--(recipe|data|epochs|precision)=(\S+)", stage["command"]))
        flags_of = {"seed": run.training.seed, "precision": run.training.precision, **given}
        fresh = [f"--{name}={value}" for name, value in flags_of.items()] + re.findall(
            r"--set=\S+", stage["command"]
        )
        fresh += [f"--init_from={workdir}"] if workdir else []
        workdir = f"runs/reproduced/{number}-{given['recipe']}"
        how = ["--resume"] if (ROOT / workdir / LAST).exists() else fresh
        call(" ".join(["train.py", f"--workdir={workdir}", *how]))
    return workdir


def call(command):
    """Runs a script of the project; a `UserError` if it fails."""
    print(f"python {command}", flush=True)
    if subprocess.run([sys.executable, *shlex.split(command)], cwd=ROOT).returncode:
        raise UserError(f"this command failed: python {command}")


def compare(claimed, found):
    """Prints a table of `{split: {metric: value}}`; a `UserError` if values differ by more than
    `ROUNDING`.
    """
    lines, differ = [], 0
    for split, metrics in claimed.items():
        for name, value in metrics.items():
            same = abs(found[split][name] - value) <= ROUNDING * max(1.0, abs(value))
            lines.append(
                [
                    split,
                    name,
                    f"{value:.4f}",
                    f"{found[split][name]:.4f}",
                    "" if same else "differs",
                ]
            )
            differ += not same
    print(markdown(["split", "score", "claimed", "found", ""], lines))
    if differ:
        raise UserError(f"{differ} of {len(lines)} scores differ by more than rounding")


if __name__ == "__main__":
    flags.DEFINE_enum("model", "bidaf", list(PUBLISHED), "Published model.")
    flags.DEFINE_bool(
        "train",
        False,
        "Train it anew, which takes the hours that its card says, instead of loading it.",
    )
    flags.DEFINE_string(
        "corpora", "../shared/data", "Directory of the corpora, as docs/data.md names them."
    )
    cli.run(main)
