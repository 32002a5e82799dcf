"""Publishes a trained run: half-precision weights, scores measured with them, and a model card.

    python -m colloquy.tools.publish --run=runs/dam --about=docs/cards/dam-ubuntu-irc.md \\
        --out=pretrained/dam-ubuntu-irc

The result is a run: evaluate.py, export.py, chat.py and serve.py take it, train.py --init_from
starts from it, and prepare.py --vocabulary_of makes data for it; --pairs adds the conversations
from which it may answer. It holds no path of this machine and no optimizer state, so it cannot be
resumed. Its README.md is the model card; config.json has seed, commit and versions, and
history.jsonl the scores at each validation.
"""

import gzip
import pathlib
import shutil

import h5py
import numpy as np
from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import smn
from colloquy.data.json_files import write_json
from colloquy.data.text_files import read_lines
from colloquy.metrics.tables import markdown

FLAGS = flags.FLAGS


def main():
    runtime.import_keras()

    from colloquy.engine.evaluation import open_evaluations
    from colloquy.engine.provenance import portable
    from colloquy.engine.run import BEST, CARD, CONFIG, Run
    from colloquy.engine.run_files import EXAMPLES, HISTORY, PAGE, WORD_LISTS
    from colloquy.tasks import TASKS
    from colloquy.tasks.generation.decoding_settings import parse_decoding

    run = Run.open(FLAGS.run)
    about = "\n".join(line for _, line in read_lines(FLAGS.about, "a model card"))
    parse_decoding(FLAGS.decode)
    for flag, task in (("decode", "generation"), ("pairs", "selection")):
        if FLAGS[flag].value and run.task != task:
            raise UserError(f"--{flag} is for a model of {task}. Received: a model of {run.task}")
    copied = (HISTORY, EXAMPLES, PAGE, *WORD_LISTS)
    with atomic_directory(FLAGS.out) as directory:
        for name in copied:
            if (run.path / name).is_file():
                shutil.copyfile(run.path / name, directory / name)
        if FLAGS.pairs:
            _save_pairs(FLAGS.pairs, directory / "pairs")
        halve(run.path / BEST, directory / BEST)
        dataset = {**run.dataset, "path": None}
        record = {**run.record, "dataset": dataset, "config": run.config.to_json()}
        for training in (record, *run.record.get("before", []), *run.record.get("resumed", [])):
            if training.get("command"):
                training["command"] = portable(training["command"])
        if FLAGS.decode:
            record["decode"] = FLAGS.decode
        write_json(directory / CONFIG, record)

        published = Run.open(directory)
        data = run.dataset["path"]
        [evaluation] = open_evaluations(TASKS, published, data, precision="float32")
        record = evaluation.score("dev")
        (directory / CARD).write_text(card(published, about, record), encoding="utf-8")
        published.seal()
    size = sum(file.stat().st_size for file in pathlib.Path(FLAGS.out).rglob("*"))
    print(f"{FLAGS.out}: {size / 2**20:.1f} MB")


def halve(source, target):
    """Copies a `.weights.h5` of Keras: float32 as float16, compressed, without optimizer state."""
    with h5py.File(source) as full, h5py.File(target, "w") as half:

        def copy(name, item):
            if name.split("/")[0] == "optimizer":
                return
            if isinstance(item, h5py.Group):
                copied = half.require_group(name)
            else:
                values = _halve_array(item[()], f"{source}: {name}")
                packing = {}
                if values.ndim:
                    packing = {"compression": "gzip", "shuffle": True}
                copied = half.create_dataset(name, data=values, **packing)
            copied.attrs.update(item.attrs)

        half.attrs.update(full.attrs)
        full.visititems(copy)


def _halve_array(values, title):
    if values.dtype != np.float32:
        return values
    if np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
        raise UserError(f"{title} has values beyond half precision")
    return values.astype(np.float16)


def _save_pairs(source, directory):
    """Writes the lines of an SMN file with label 1, as `tools.build_index --corpus=smn` reads them.

    Equal lines give equal bytes: the compressed file has neither name nor time.
    """
    directory.mkdir()
    with (
        (directory / "train.txt.gz").open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as pairs,
    ):
        for line in smn.read(pathlib.Path(source)):
            if line.label == 1:
                fields = "\t".join(["1", *line.turns, line.response])
                pairs.write(f"{fields}\n".encode())


def card(run, about, record):
    """Returns the model card of a published run, Markdown.

    Args:
        run: The `engine.run.Run`.
        about: Text to begin with; what it has from "## Commands" on ends the card.
        record: That of `engine.evaluation.Evaluation.score` on dev.
    """
    text, heading, commands = about.partition("## Commands")
    rows = {
        f"{run.model}, half-precision weights": record["metrics"],
        **record.get("parts", {}),
    }
    for name, metrics in record.get("baselines", {}).items():
        rows[f"baseline: {name}"] = metrics
    names = list(record["metrics"])
    lines = []
    for label, metrics in rows.items():
        cells = [f"{metrics[name]:.4f}" if name in metrics else "" for name in names]
        lines.append([label, *cells])
    parts = [
        text.rstrip(),
        "## Measured from this file",
        markdown([f"{run.dataset['name']}, dev", *names], lines),
        "## Trained by",
        "\n".join(f"    {training['command']}" for training in run.trainings()),
    ]
    if commands:
        parts.append(heading + commands.rstrip())
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    flags.DEFINE_string("run", None, "The trained run.", required=True)
    flags.DEFINE_string(
        "pairs", None, "Selection: SMN file whose contexts and positive responses become pairs/."
    )
    flags.DEFINE_string(
        "about", None, "Text of the model card: data, licence, limits, examples.", required=True
    )
    flags.DEFINE_string(
        "decode", None, "Generation: the search for replies where nobody names one."
    )
    flags.DEFINE_string("out", None, "Directory to make.", required=True)
    cli.run(main)
