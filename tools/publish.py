"""Publishes a trained run: half-precision weights, scores measured with them, and a model card.

    python -m colloquy.tools.publish --run=runs/dam --about=docs/cards/dam-ubuntu-irc.md \\
        --out=pretrained/dam-ubuntu-irc

The result is a run: evaluate.py, export.py, chat.py and serve.py take it, train.py --init_from
starts from it, and prepare.py --vocabulary_of makes data for it. It holds no path of this machine
and no optimizer state, so it cannot be resumed. Its README.md is the model card; config.json has
seed, commit and versions, and history.jsonl the scores at each validation.

With --pairs, a model of selection also gets the conversations from which it may answer.
"""

import copy
import gzip
import pathlib
import shutil

import h5py
import numpy as np
from absl import flags

from colloquy.base import backend, cli
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import smn
from colloquy.data.json_files import write_json
from colloquy.data.text_files import read_lines
from colloquy.metrics.tables import markdown

FLAGS = flags.FLAGS


def main():
    backend.import_keras()

    from colloquy.engine.evaluation import open_evaluations
    from colloquy.engine.run import BEST, CARD, CONFIG, Run
    from colloquy.tasks import TASKS
    from colloquy.tasks.generation.decoding_settings import parse_decoding

    run = Run.open(FLAGS.run)
    about = "\n".join(line for _, line in read_lines(FLAGS.about, "a model card"))
    parse_decoding(FLAGS.decode)
    for flag, task in (("decode", "generation"), ("pairs", "selection")):
        if FLAGS[flag].value and run.task != task:
            raise UserError(f"--{flag} is for a model of {task}. Received: a model of {run.task}")
    with atomic_directory(FLAGS.out) as directory:
        copy_files(run, directory)
        if FLAGS.pairs:
            save_pairs(FLAGS.pairs, directory / "pairs")
        halve(run.path / BEST, directory / BEST)
        write_json(directory / CONFIG, portable_record(run))

        # The scores are those of the published files.
        published = Run.open(directory)
        [evaluation] = open_evaluations(TASKS, published, run.dataset["path"], precision="float32")
        scores = evaluation.score("dev")
        (directory / CARD).write_text(card(published, about, scores), encoding="utf-8")
        # Last, since it writes the checksums of the files.
        published.seal()
    size = sum(file.stat().st_size for file in pathlib.Path(FLAGS.out).rglob("*"))
    print(f"{FLAGS.out}: {size / 2**20:.1f} MB")


def copy_files(run, directory):
    """Copies the files of a run that stay as they are."""
    from colloquy.engine.run_files import EXAMPLES, HISTORY, PAGE, WORD_LISTS

    for name in (HISTORY, EXAMPLES, PAGE, *WORD_LISTS):
        if (run.path / name).is_file():
            shutil.copyfile(run.path / name, directory / name)


def portable_record(run):
    """Returns the record of a run without the paths of this machine, with `--decode` if given."""
    from colloquy.engine.provenance import portable

    record = copy.deepcopy(run.record)
    record["dataset"]["path"] = None
    record["config"] = run.config.to_json()
    for training in (record, *record.get("before", []), *record.get("resumed", [])):
        if training.get("command"):
            training["command"] = portable(training["command"])
    if FLAGS.decode:
        record["decode"] = FLAGS.decode
    return record


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
                if values.ndim:  # HDF5 compresses no scalar
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


def save_pairs(source, directory):
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


def card(run, about, scores):
    """Returns the model card of a published run, Markdown.

    Args:
        run: The `engine.run.Run`.
        about: Text of the card. Its heading "## Commands", and what follows, comes last.
        scores: The record of `engine.evaluation.Evaluation.score` on dev.
    """
    text, commands_heading, commands = about.partition("## Commands")
    sections = [
        text.rstrip(),
        "## Measured from this file",
        _score_table(run, scores),
        "## Trained by",
        "\n".join(f"    {training['command']}" for training in run.trainings()),
    ]
    if commands:
        sections.append(commands_heading + commands.rstrip())
    return "\n\n".join(sections) + "\n"


def _score_table(run, scores):
    """A line for the model, for each part of the split, and for each baseline."""
    metrics_by_label = {
        f"{run.model}, half-precision weights": scores["metrics"],
        **scores.get("parts", {}),
    }
    for name, metrics in scores.get("baselines", {}).items():
        metrics_by_label[f"baseline: {name}"] = metrics
    names = list(scores["metrics"])
    lines = []
    for label, metrics in metrics_by_label.items():
        cells = [f"{metrics[name]:.4f}" if name in metrics else "" for name in names]
        lines.append([label, *cells])
    return markdown([f"{run.dataset['name']}, dev", *names], lines)


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
