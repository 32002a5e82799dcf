"""Scores as text: tables for the terminal (evaluate.py) and for docs (tools.tables)."""

import collections
import statistics
from collections.abc import Sequence

NO_FRACTIONS = {"perplexity", "length"}
"""Metrics that are not from 0 to 1."""
LOWER_IS_BETTER = {"perplexity"}


def by_corpus(rows: list[dict], metrics: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """A table with a line per recipe and a column per corpus and split.

    A cell is the mean and the deviation over seeds, in per cent. Rows of a recipe with different
    settings have lines of their own, with these settings in the label.

    Args:
        rows: Dicts of `recipe`, `corpus`, `split`, `metrics`, and if known `seed` and `settings`,
            `{field: value}`.
        metrics: A cell shows the first of them, and the others in brackets.

    Returns:
        The header.
        The lines, lists of texts: the best first, those without a seed last. The column `mean` is
        that of the first metric over all columns.

    >>> model = {"recipe": "MEMMA", "corpus": "babi-task1", "split": "dev"}
    >>> row = {**model, "seed": 1, "metrics": {"per_response": 1.0}}
    >>> other = {**model, "seed": 2, "metrics": {"per_response": 0.99}}
    >>> by_corpus([row, other], ["per_response"])
    (['', 'babi-task1', 'seeds'], [['MEMMA', '99.5 ± 0.7', '2']])
    """
    columns = sorted({(row["split"], row["corpus"]) for row in rows})
    splits = {split for split, _ in columns}
    header = [""]
    for split, corpus in columns:
        header.append(corpus if len(splits) == 1 else f"{corpus} {split}")
    if len(columns) > 1:
        header.append("mean")
    header.append("seeds")

    rows_by_label = _group_by_label(rows)

    def rank(label):
        own_rows = rows_by_label[label]
        mean = _mean_of_all(own_rows, metrics[0])
        return "seed" not in own_rows[0], mean is None, cost(metrics[0], mean or 0.0)

    lines = []
    for label in sorted(rows_by_label, key=rank):
        lines.append([label, *_cells(rows_by_label[label], columns, metrics)])
    return header, lines


def _group_by_label(rows):
    """Returns `{label: rows}`. A run that was scored again counts once, with its last score."""
    differing = _differing_settings(rows)
    rows_by_label = collections.defaultdict(dict)
    for row in rows:
        parts = [row["recipe"]]
        for field, value in sorted(row.get("settings", {}).items()):
            if (row["recipe"], field) in differing:
                parts.append(f"{field}={value}")
        scored = row["split"], row["corpus"], row.get("seed")
        rows_by_label[", ".join(parts)][scored] = row
    return {label: list(last_rows.values()) for label, last_rows in rows_by_label.items()}


def _differing_settings(rows):
    """The settings in which rows of one recipe, corpus and split differ: `(recipe, field)`."""
    values = collections.defaultdict(set)
    for row in rows:
        for field, value in row.get("settings", {}).items():
            values[row["recipe"], field, row["corpus"], row["split"]].add(str(value))

    differing = set()
    for (recipe, field, *_), texts in values.items():
        if len(texts) > 1 and field != "seed":
            differing.add((recipe, field))
    return differing


def _mean_of_all(rows, metric):
    """The mean of a metric over corpora and splits; `None` if a row lacks it."""
    if all(metric in row["metrics"] for row in rows):
        return mean_over_corpora(rows, metric)
    return None


def _cells(rows, columns, metrics):
    """The cells of a line of `by_corpus` after its label."""
    scores = {column: [] for column in columns}
    for row in rows:
        scores[row["split"], row["corpus"]].append(row["metrics"])
    cells = [_cell(scores[column], metrics) for column in columns]

    if len(columns) > 1:
        mean = _mean_of_all(rows, metrics[0])
        is_complete = mean is not None and all(scores.values())
        cells.append(_percent(mean, metrics[0]) if is_complete else "")

    seeds = ""
    if "seed" in rows[0]:
        # One number if all columns have as many seeds, otherwise for example "1-3".
        counts = {len(column) for column in scores.values() if column}
        seeds = "-".join(str(count) for count in sorted(counts))
    cells.append(seeds)
    return cells


def _cell(scores, metrics):
    """A cell of `by_corpus` from the metrics of each seed; empty without any."""
    texts = []
    for metric in metrics:
        values = [metric_values[metric] for metric_values in scores if metric in metric_values]
        texts.append(_mean_and_deviation(values, metric, _percent) if values else "")
    first, *others = texts
    return f"{first} ({', '.join(others)})" if any(others) else first


def by_metric(scores: list[dict], metrics: Sequence[str]) -> list[str]:
    """A cell per metric: its mean over dicts of metrics, and the standard deviation.

    It is empty where one of them lacks the metric.
    """
    cells = []
    for metric in metrics:
        values = [metric_values.get(metric) for metric_values in scores]
        cells.append("" if None in values else _mean_and_deviation(values, metric, _decimals))
    return cells


# === Numbers ===


def cost(metric: str, value: float) -> float:
    """A number that is lower for better values of a metric."""
    return value if metric in LOWER_IS_BETTER else -value


def mean_over_corpora(rows: list[dict], name: str) -> float:
    """The mean over corpora and splits of the mean over rows.

    `name` is a metric, or a number that the rows hold.

    >>> row = {"corpus": "a", "split": "dev", "minutes": 1, "metrics": {}}
    >>> rows = [row, {**row, "minutes": 3}, {**row, "corpus": "b", "minutes": 3}]
    >>> mean_over_corpora(rows, "minutes")
    2.5
    """
    values = collections.defaultdict(list)
    for row in rows:
        metrics = row["metrics"]
        value = metrics[name] if name in metrics else row[name]
        values[row["corpus"], row["split"]].append(value)
    return statistics.mean(statistics.mean(column) for column in values.values())


def _mean_and_deviation(values, metric, show):
    """The mean of values, and the deviation of several, as `show(value, metric)` writes numbers."""
    text = show(statistics.mean(values), metric)
    if len(values) > 1:
        text += f" ± {show(statistics.stdev(values), metric)}"
    return text


def _percent(value, metric):
    percent_or_number = value if metric in NO_FRACTIONS else 100 * value
    return f"{percent_or_number:.1f}"


def _decimals(value, metric):
    return number(value, digits=2 if metric in NO_FRACTIONS else 3)


def number(value: float, digits: int) -> str:
    """Formats a number. One with three decimals is a score, written without the leading zero.

    >>> number(0.5, 3), number(34.2819, 2)
    ('.500', '34.28')
    """
    text = f"{value:,.{digits}f}"
    return text.removeprefix("0") if digits == 3 else text


# === Markdown ===


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """The text of a table, without empty columns at its end; an empty cell is one space wide."""
    while lines and not any(line[-1] for line in lines):
        header = header[:-1]
        lines = [line[:-1] for line in lines]
    rows = [_markdown_row(header), f"|{'---|' * len(header)}"]
    rows.extend(_markdown_row(line) for line in lines)
    return "\n".join(rows)


def _markdown_row(cells):
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)
