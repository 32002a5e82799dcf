"""Tables of scores in the terminal, beside baselines and published scores."""

import sys
from collections.abc import Sequence

from rich.table import Column, Table

from colloquy.engine.task import Task
from colloquy.engine.terminal import Terminal
from colloquy.metrics.published import PUBLISHED_SIZES, published_beside, reference_rows
from colloquy.metrics.tables import by_corpus


def print_records(rows: Sequence[tuple[str, dict]], task: Task, corpus: str, split: str) -> None:
    """Prints a table of a split: a line per record, then the baselines and the published results.

    Args:
        rows: `(label, record)` of each record of `measure`.
        task: Their task.
        corpus, split: What was scored.
    """
    records = [record for _, record in rows]
    title, caption = task.describe(records[0])
    metrics = list(dict.fromkeys(name for record in records for name in record["metrics"]))
    columns = [Column(name, justify="right") for name in metrics]
    published_rows = _published_for(task.name, corpus, split)
    remarks = [caption, _remark_on_size(corpus, split, task, records[0], published_rows)]
    table = Table(
        "",
        *columns,
        title=f"{corpus}, {split}: {title}",
        caption="; ".join(remark for remark in remarks if remark) or None,
    )

    def add(title, values, style=None):
        cells = [f"{values[name]:.4f}" if name in values else "" for name in metrics]
        table.add_row(title, *cells, style=style)

    for label, record in rows:
        add(label, record["metrics"], style="bold")
        for part, values in record.get("parts", {}).items():
            add(part, values)
    table.add_section()
    origin = {"task": task.name, "corpus": corpus, "split": split}
    references: dict[str, dict] = {}
    for record in records:
        for row in reference_rows({**record, **origin}):
            references.setdefault(row["recipe"], row["metrics"])
    for name, values in references.items():
        add(name, values)
    table.add_section()
    for row in published_rows:
        where = f" ({row['split']})" if row["split"] != split else ""
        add(f"published{where}: {row['model']}", row["metrics"], style="dim")
    _print_table(table, width=120)


def _published_for(task: str, corpus: str, split: str) -> list[dict]:
    """The published scores to show beside a split: those with new entities beside such alone."""
    is_oov = split.endswith("-oov")
    rows = published_beside(task, corpus)
    return [row for row in rows if row["split"].endswith("-oov") == is_oov]


def _remark_on_size(corpus, split, task, record, published_rows):
    """A remark, if a split has another size than the published one of its name; else `None`."""
    unit = f"{task.example_unit}s"
    expected = PUBLISHED_SIZES.get((corpus, split))
    received = record["counts"].get(unit)
    if not published_rows or expected is None or received is None:
        return None
    # The release drops the last partial batch.
    if abs(received - expected) <= 0.01 * expected:
        return None
    return f"not comparable: the published {split} has {expected:,} {unit}, this one {received:,}"


def _print_table(table: Table, width: int | None) -> None:
    """Prints a table literally: texts of models and corpora are not markup."""
    if sys.stdout.isatty():
        width = None  # that of the terminal
    Terminal(width=width, markup=False, highlight=False).print(table)


def print_summary(task: Task, records: list[dict]) -> None:
    """Prints means over seeds, of several corpora or splits side by side."""
    records = [{**record, "recipe": _model_of(record)} for record in records]
    places = {(record["corpus"], record["split"]) for record in records}
    models = {(record["recipe"], record["corpus"], record["split"]) for record in records}
    if len(places) == 1 and len(models) == len(records):
        return  # `print_records` showed all of it: one line for each model
    header, lines = by_corpus(records, task.summary_metrics)
    metrics = ", ".join(task.summary_metrics)
    table = Table(*header, title=f"{task.name}: {metrics}; mean ± deviation over seeds")
    for line in lines:
        table.add_row(*line)
    _print_table(table, width=200)


def _model_of(record):
    """The recipe of a record, and what tells its model from others of the recipe and seed."""
    parts = [record["recipe"]]
    if "ensemble" in record:
        parts.append(f"ensemble of {record['ensemble']}")
    if "trained_on" in record:
        parts.append(f"trained on {record['trained_on']}")
    if "epochs_before" in record:
        parts.append("continued")
    return ", ".join(parts)
