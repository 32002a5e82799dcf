"""Repeats the scores that a published model claims, by the commands of its card.

    make reproduce MODEL=bidaf            # evaluates pretrained/bidaf-squad
    make reproduce MODEL=bidaf TRAIN=1    # trains it anew first, in runs/reproduced

An interrupted training continues with the same command. Prints the scores claimed and measured.
Corpora are prepared from `--corpora`, nothing is downloaded. Exit code 1 if a score differs by more
than rounding.
"""

import os
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
CORPORA = ROOT.parent / "shared" / "data"
PUBLISHED = {
    "bidaf": "bidaf-squad",
    "chat": "chat-dailydialog",
    "chat-chinese": "chat-xdailydialog",
    "dam": "dam-ubuntu-irc",
    "entity-memma": "entity-memma-task5",
    "entity-memma-task6": "entity-memma-task6",
}
# Largest difference that is rounding; relative for perplexity and length, which exceed 1.
ROUNDING = 5e-4


def main():
    published = f"pretrained/{PUBLISHED[FLAGS.model]}"
    # The commands run in this repository, not where the user is.
    corpora = shlex.quote(os.path.abspath(FLAGS.corpora or CORPORA))
    run = Run.open(ROOT / published)
    card = (run.path / CARD).read_text(encoding="utf-8").replace("../shared/data", corpora)
    # A card evaluates on build/data; what it prepares elsewhere is for the training.
    prepare_commands = re.findall(r"(?m)^    python (prepare\.py .*)$", card)
    [evaluate] = re.findall(r"(?m)^    python (evaluate\.py .*)$", card)
    [prepare] = [command for command in prepare_commands if "--out=build/data" in command]
    others = [command for command in prepare_commands if command != prepare]
    with tempfile.TemporaryDirectory() as directory:
        call(prepare.replace("build/data", f"{directory}/data"))
        evaluate = evaluate.replace("build/data", f"{directory}/data")
        if FLAGS.train:
            evaluate = evaluate.replace(published, train_stages(run, others))
        rows = f"{directory}/rows.jsonl"
        call(f"{evaluate} --precision=float32 --nobaselines --scores={rows}")
        measured = {row["split"]: row["metrics"] for row in scores(rows)}
    claimed = {split: record["metrics"] for split, record in run.metrics().items()}
    compare(claimed, measured)


def train_stages(run, prepare_commands):
    """Trains the stages of a published model, each from the one before.

    Returns:
        The run directory of the last stage.
    """
    for command in prepare_commands:
        out = re.search(r"--out=(\S+)", command)[1]
        if not (ROOT / out).exists():
            call(command)
    previous = None
    for number, stage in enumerate(run.trainings(), start=1):
        settings = {"seed": run.training.seed, "precision": run.training.precision}
        settings.update(re.findall(r"--(recipe|data|epochs|precision)=(\S+)", stage["command"]))
        workdir = f"runs/reproduced/{number}-{settings['recipe']}"
        command = ["train.py", f"--workdir={workdir}"]
        if (ROOT / workdir / LAST).exists():
            command.append("--resume")
        else:
            command += [f"--{name}={value}" for name, value in settings.items()]
            command += re.findall(r"--set=\S+", stage["command"])
            if previous:
                command.append(f"--init_from={previous}")
        call(" ".join(command))
        previous = workdir
    return previous


def call(command):
    """Runs a script of the project; a `UserError` if it fails."""
    print(f"python {command}", flush=True)
    process = subprocess.Popen([sys.executable, *shlex.split(command)], cwd=ROOT)
    try:
        process.wait()
    finally:
        # Ctrl-C reaches the script, too: a training saves its state, which may take a while.
        # `subprocess.run` would kill it after a quarter of a second.
        process.wait()
    if process.returncode != 0:
        raise UserError(f"this command failed: python {command}")


def compare(claimed, measured):
    """Prints a table of scores claimed and measured, each `{split: {metric: score}}`.

    Raises:
        UserError: Scores differ by more than `ROUNDING`.
    """
    lines = []
    differing = 0
    for split, metrics in claimed.items():
        for name, score in metrics.items():
            measured_score = measured[split][name]
            remark = ""
            if abs(measured_score - score) > ROUNDING * max(1.0, abs(score)):
                remark = "differs"
                differing += 1
            lines.append([split, name, f"{score:.4f}", f"{measured_score:.4f}", remark])
    print(markdown(["split", "score", "claimed", "found", ""], lines))
    if differing:
        raise UserError(f"{differing} of {len(lines)} scores differ by more than rounding")


if __name__ == "__main__":
    flags.DEFINE_enum("model", "bidaf", list(PUBLISHED), "Published model.")
    flags.DEFINE_bool(
        "train",
        False,
        "Train it anew, which takes the hours that its card says, instead of loading it.",
    )
    flags.DEFINE_string(
        "corpora",
        None,
        "Directory of the corpora, as docs/data.md names them; default: ../shared/data beside this "
        "repository.",
    )
    cli.run(main)
