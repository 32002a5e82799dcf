"""Tables of scores in the terminal, beside baselines and published scores."""

import sys
from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Column, Table

from colloquy.engine.task import Task
from colloquy.engine.terminal import Terminal
from colloquy.metrics.published import PUBLISHED_SIZES, REFERENCES, published_beside
from colloquy.metrics.tables import by_corpus


class Line(NamedTuple):
    """A line of a table."""

    label: str
    metrics: dict[str, float]
    style: str | None = None


def print_records(rows: Sequence[tuple[str, dict]], task: Task, corpus: str, split: str) -> None:
    """Prints a table of a split: a line per record, then the baselines and the published results.

    Args:
        rows: `(label, record)` of each record of `measure`.
        task: Their task.
        corpus, split: What was scored.
    """
    records = [record for _, record in rows]
    sections = [
        _measured_lines(rows),
        _reference_lines(records),
        _published_lines(task.name, corpus, split),
    ]

    names: dict[str, None] = {}  # in order, each once
    for record in records:
        names.update(dict.fromkeys(record["metrics"]))
    columns = [Column(name, justify="right") for name in names]
    title, caption = task.describe(records[0])
    remarks = [caption, _remark_on_size(corpus, split, task, records[0])]
    table = Table(
        "",
        *columns,
        title=f"{corpus}, {split}: {title}",
        caption="; ".join(remark for remark in remarks if remark) or None,
    )
    for lines in sections:
        for line in lines:
            cells = [_format(line.metrics.get(name)) for name in names]
            table.add_row(line.label, *cells, style=line.style)
        table.add_section()
    _print_table(table, width=120)


def _format(value):
    return "" if value is None else f"{value:.4f}"


def _measured_lines(rows):
    """A line for each record, and one for each part of its split."""
    lines = []
    for label, record in rows:
        lines.append(Line(label, record["metrics"], style="bold"))
        for part, metrics in record.get("parts", {}).items():
            lines.append(Line(part, metrics))
    return lines


def _reference_lines(records):
    """A line for each baseline and upper bound; one that several records share is shown once."""
    metrics_by_label = {}
    for record in records:
        for part, kind in REFERENCES.items():
            for name, metrics in record.get(part, {}).items():
                metrics_by_label.setdefault(f"{kind}: {name}", metrics)
    return [Line(label, metrics) for label, metrics in metrics_by_label.items()]


def _published_lines(task_name, corpus, split):
    """A line for each published score to show beside a split.

    Splits with unknown entities, such as `test-oov`, are compared only with each other.
    """
    is_oov = split.endswith("-oov")
    lines = []
    for row in published_beside(task_name, corpus):
        if row["split"].endswith("-oov") == is_oov:
            where = f" ({row['split']})" if row["split"] != split else ""
            lines.append(Line(f"published{where}: {row['model']}", row["metrics"], style="dim"))
    return lines


def _remark_on_size(corpus, split, task, record):
    """A remark, if a split has another size than the published one of its name; else `None`."""
    unit = f"{task.example_unit}s"
    expected = PUBLISHED_SIZES.get((corpus, split))
    received = record["counts"].get(unit)
    if expected is None or received is None:
        return None
    # As the release, a score may leave out the last partial batch, which is less than 1 %.
    if abs(received - expected) <= 0.01 * expected:
        return None
    return f"not comparable: the published {split} has {expected:,} {unit}, this one {received:,}"


def _print_table(table, width):
    """Prints a table literally: texts of models and corpora are not markup."""
    if sys.stdout.isatty():
        width = None  # that of the terminal
    Terminal(width=width, markup=False, highlight=False).print(table)


def print_summary(task: Task, records: list[dict]) -> None:
    """Prints means over seeds, of several corpora or splits side by side.

    It prints nothing if the tables of `print_records` have shown all of it: there is one split,
    and one record of each model.
    """
    labelled = [{**record, "recipe": _model_label(record)} for record in records]
    splits = {(record["corpus"], record["split"]) for record in labelled}
    models = {(record["recipe"], record["corpus"], record["split"]) for record in labelled}
    if len(splits) == 1 and len(models) == len(labelled):
        return
    header, lines = by_corpus(labelled, task.summary_metrics)
    metrics = ", ".join(task.summary_metrics)
    table = Table(*header, title=f"{task.name}: {metrics}; mean ± deviation over seeds")
    for line in lines:
        table.add_row(*line)
    _print_table(table, width=200)


def _model_label(record):
    """The recipe of a record, and what else tells its model from those of other records."""
    parts = [record["recipe"]]
    if "ensemble" in record:
        parts.append(f"ensemble of {record['ensemble']}")
    if "trained_on" in record:
        parts.append(f"trained on {record['trained_on']}")
    if "epochs_before" in record:
        parts.append("continued")
    return ", ".join(parts)
