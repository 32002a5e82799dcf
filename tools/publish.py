"""Publishes a trained run: half-precision weights, scores measured with them, and a model card.

python -m colloquy.tools.publish --run=runs/dam --about=docs/cards/dam-ubuntu-irc.md
--out=pretrained/dam-ubuntu-irc

The result is a run: evaluate.py, export.py, chat.py and serve.py take it, train.py --init_from
starts from it, and prepare.py --vocabulary_of makes data for it; --pairs adds the conversations
from which it may answer. It holds no path of this machine and no optimizer state, so it cannot be
resumed. Its README.md is the model card.
"""

import gzip
import json
import pathlib
import shutil

import h5py
import numpy as np
from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.config import make_config, parse_assignments
from colloquy.base.files import CHECKSUMS, UserError, atomic_directory
from colloquy.data.corpora import smn
from colloquy.data.text_files import read_lines, write_json
from colloquy.metrics.tables import markdown

FLAGS = flags.FLAGS


def main():
    runtime.import_keras()

    from colloquy.engine.evaluate import Evaluation
    from colloquy.engine.run import BEST, CARD, CONFIG, LAST, METRICS, Run
    from colloquy.tasks import TASKS

    run = Run.open(FLAGS.run)
    about = "\n".join(line for _, line in read_lines(FLAGS.about, "a model card"))
    config = make_config(run.spec.config, {**run.record["config"], **parse_assignments(FLAGS.set)})
    with atomic_directory(FLAGS.out) as directory:
        for file in run.path.iterdir():
            made_here = file.name in (BEST, CHECKSUMS, CONFIG, LAST, METRICS)
            if file.is_file() and not made_here and not file.name.startswith("."):
                shutil.copyfile(file, directory / file.name)
        if FLAGS.pairs:
            _save_pairs(FLAGS.pairs, directory / "pairs")
        halve(run.path / BEST, directory / BEST)
        record = {
            **run.record,
            "dataset": {**run.dataset, "path": None},
            "config": config.to_json(),
        }
        write_json(directory / CONFIG, record)
        published = Run.open(directory)
        evaluation = Evaluation(
            TASKS[run.task], [published], FLAGS.data or run.dataset["path"], precision="float32"
        )
        records = {split: evaluation.score(split) for split in FLAGS.splits}
        (directory / CARD).write_text(card(published, about, records), encoding="utf-8")
        published.seal()
    size = sum(file.stat().st_size for file in pathlib.Path(FLAGS.out).rglob("*"))
    print(f"{FLAGS.out}: {size / 2**20:.1f} MB")


def halve(source, target):
    """Copies a `.weights.h5` of Keras with float32 arrays in float16, compressed, without the
    optimizer's state.
    """
    with h5py.File(source) as full, h5py.File(target, "w") as half:

        def copy(name, item):
            if name.split("/")[0] == "optimizer":
                return
            if isinstance(item, h5py.Group):
                copied = half.require_group(name)
            else:
                values = item[()]
                if values.dtype == np.float32:
                    if np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
                        raise UserError(f"{source}: {name} has values beyond half precision")
                    values = values.astype(np.float16)
                packed = {"compression": "gzip", "shuffle": True} if values.ndim else {}
                copied = half.create_dataset(name, data=values, **packed)
            copied.attrs.update(item.attrs)

        half.attrs.update(full.attrs)
        full.visititems(copy)


def _save_pairs(source, directory):
    """Writes the lines of an SMN file that are labelled 1, as `tools.build_index --corpus=smn`
    reads them.
    """
    directory.mkdir()
    lines = (
        "\t".join(["1", *line.turns, line.response])
        for line in smn.read(pathlib.Path(source))
        if line.label == 1
    )
    with (
        (directory / "train.txt.gz").open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as pairs,
    ):
        pairs.writelines(f"{line}\n".encode() for line in lines)


def card(run, about, records):
    """The model card of a published run, Markdown: a text, scores of `{split: record}`, provenance
    and validations.
    """
    parts = [about.rstrip(), "## Measured from this file"]
    for split, measured in records.items():
        rows = {f"{run.model}, half-precision weights": measured["metrics"]}
        rows |= {
            f"baseline: {name}": metrics for name, metrics in measured.get("baselines", {}).items()
        }
        parts.append(_table(f"{run.dataset['name']}, {split}", rows.items(), measured["metrics"]))
    record, history = (
        run.record,
        [(f"{row['epoch']:.2f}", row) for row in run.history() if "epoch" in row],
    )
    facts = {name: record["training"][name] for name in ("seed", "precision", "epochs")}
    facts |= {name: record[name] for name in ("commit", "hardware", "versions") if name in record}
    shown = "\n".join(
        f"- {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()
    )
    names = [
        name
        for name in next(iter(records.values()))["metrics"]
        if history and name in history[-1][1]
    ]
    validations = _table("epoch", history, names)
    commands = "\n".join(f"    {training['command']}" for training in run.trainings())
    parts += ["## Trained by", commands, shown, "Dev at each validation:", validations]
    return "\n\n".join(parts) + "\n"


def _table(header, rows, names):
    lines = [
        [label, *(f"{metrics[name]:.4f}" if name in metrics else "" for name in names)]
        for label, metrics in rows
    ]
    return markdown([header, *names], lines)


if __name__ == "__main__":
    flags.DEFINE_string("run", None, "The trained run.", required=True)
    flags.DEFINE_string("data", None, "Prepared dataset to measure it on; default: the run's own.")
    flags.DEFINE_list("splits", ["dev"], "Splits to measure.")
    flags.DEFINE_string(
        "pairs", None, "Selection: SMN file whose contexts and positive responses become pairs/."
    )
    flags.DEFINE_string(
        "about", None, "Text of the model card: data, licence, limits, examples.", required=True
    )
    flags.DEFINE_multi_string(
        "set", [], "field=value of the model's config that does not affect its weights."
    )
    flags.DEFINE_string("out", None, "Directory to make.", required=True)
    cli.run(main)
