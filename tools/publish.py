"""Makes a trained run small enough to give away: half-precision weights, measured as they are, and a model card.

python -m tools.publish --run=runs/dam --about=docs/cards/dam-ubuntu-irc.md --out=pretrained/dam-ubuntu-irc

The directory is a run: evaluate.py, export.py, chat.py and serve.py take it, train.py --init_from starts from it, and
prepare.py --vocabulary_of makes data for it; --pairs adds the conversations from which it may answer. It holds no path
of the machine that it was trained on, no optimizer, and so cannot be resumed. Its `README.md` is the model card: what
`--about` says, then settings, the curve and the scores, which are measured from the half-precision file.
"""

import gzip
import json
import pathlib
import shutil

from absl import flags

from base import cli
from base.config import make_config, parse_assignments
from base.files import atomic_directory, checksum
from data.corpora import smn
from tools.half_precision import halve

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "The trained run.", required=True)
flags.DEFINE_string("data", None, "Prepared dataset to measure it on; default: the run's own.")
flags.DEFINE_list("splits", ["dev"], "What is measured.")
flags.DEFINE_string("pairs", None, "Selection: SMN file whose contexts and positive responses become pairs/.")
flags.DEFINE_string("about", None, "Text of the model card: data, licence, limits, examples.", required=True)
flags.DEFINE_multi_string("set", [], "field=value of the model's config on which its weights do not depend.")
flags.DEFINE_string("out", None, "Directory to make.", required=True)


def main():
    from engine.evaluate import Evaluation
    from engine.run import BEST, CHECKSUMS, CONFIG, LAST, METRICS, Run
    from tasks import TASKS

    run = Run.open(FLAGS.run)
    about = pathlib.Path(FLAGS.about).read_text(encoding="utf-8")
    settings = {**run.record["config"], **parse_assignments(FLAGS.set)}
    settings = make_config(run.spec.config, settings).to_json()
    task, data = TASKS[run.task], FLAGS.data or run.dataset["path"]
    with atomic_directory(FLAGS.out) as directory:
        for file in run.path.iterdir():
            if (
                file.is_file()
                and file.name not in (LAST, METRICS, CHECKSUMS, CONFIG, BEST)
                and not file.name.startswith(".")
            ):
                shutil.copyfile(file, directory / file.name)
        if FLAGS.pairs:
            _save_pairs(FLAGS.pairs, directory / "pairs")
        halve(run.path / BEST, directory / BEST)
        config = {**run.record, "dataset": {**run.dataset, "path": None}, "config": settings}
        (directory / CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False), encoding="utf-8")
        (directory / CHECKSUMS).write_text(json.dumps({BEST: [checksum(directory / BEST)]}, indent=1))
        evaluation = Evaluation(task, [Run.open(directory)], data, precision="float32")
        records = {split: evaluation.score(split) for split in FLAGS.splits}
        (directory / "README.md").write_text(card(Run.open(directory), about, records), encoding="utf-8")
    size = sum(file.stat().st_size for file in pathlib.Path(FLAGS.out).rglob("*"))
    print(f"{FLAGS.out}: {size / 2**20:.1f} MB")


def _save_pairs(source, directory):
    """Writes the lines of an SMN file that are labelled 1, as `tools.build_index --corpus=smn` reads them."""
    directory.mkdir()
    with (
        (directory / "train.txt.gz").open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as pairs,
    ):
        for line in smn.read(pathlib.Path(source)):
            if line.label == 1:
                pairs.write(("\t".join(["1", *line.turns, line.response]) + "\n").encode())


def card(run, about, records):
    """The model card, Markdown.

    Args:
        run: The published `engine.run.Run`.
        about: What people wrote of it.
        records: `{split: record}`, as `engine.evaluate.Evaluation.score` returns them.
    """
    config = run.record
    lines = [about.rstrip(), "", "## Measured from this file", ""]
    for split, record in records.items():
        lines += [f"| {config['dataset']['name']}, {split} | " + " | ".join(record["metrics"]) + " |"]
        lines += ["| --- |" + " --- |" * len(record["metrics"])]
        rows = {f"{config['model']}, half-precision weights": record["metrics"]}
        rows |= {f"baseline: {name}": metrics for name, metrics in record.get("baselines", {}).items()}
        for name, metrics in rows.items():
            lines.append(f"| {name} | " + " | ".join(_shown(metrics.get(key)) for key in record["metrics"]) + " |")
        lines.append("")
    lines += ["## Trained by", "", f"    {config['command']}", ""]
    facts = {name: config["training"][name] for name in ("seed", "precision", "epochs")}
    facts |= {name: config[name] for name in ("before", "commit", "hardware", "versions") if name in config}
    lines += [f"- {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
    lines += ["", "Dev at each validation:", ""]
    rows = [row for row in run.history() if "epoch" in row]
    names = [name for name in rows[-1] if name in next(iter(records.values()))["metrics"]] if rows else []
    lines += ["| epoch | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    lines += [f"| {row['epoch']:.2f} | " + " | ".join(_shown(row.get(name)) for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _shown(value):
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)


if __name__ == "__main__":
    cli.run(main)
