"""Scores as text: tables for the terminal (evaluate.py) and for docs (tools.tables)."""

import collections
import statistics
from collections.abc import Iterable, Sequence

NO_FRACTIONS = {"perplexity", "length"}
LOWER_IS_BETTER = {"perplexity"}


def by_corpus(rows: list[dict], metrics: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """A line per model, a column per corpus and split: mean and deviation over seeds, in per cent.

    Args:
        rows: Dicts of `recipe`, `corpus`, `split`, `metrics`, and if known `seed` and `settings`,
            `{field: value}`. Rows of a recipe that differ in a setting have lines of their own,
            which name it.
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

    rows_by_label = collections.defaultdict(dict)
    for label, row in zip(_labels(rows), rows, strict=True):
        # A run that was scored again counts once, with its last score.
        rows_by_label[label][row["split"], row["corpus"], row.get("seed")] = row

    ranked_lines = []
    for label, rows_by_place in rows_by_label.items():
        own_rows = list(rows_by_place.values())
        has_metric = all(metrics[0] in row["metrics"] for row in own_rows)
        mean = mean_over_corpora(own_rows, metrics[0]) if has_metric else None
        rank = "seed" not in own_rows[0], not has_metric, cost(metrics[0], mean or 0.0)
        ranked_lines.append((rank, [label, *_cells(own_rows, columns, metrics, mean)]))
    ranked_lines.sort(key=lambda ranked: ranked[0])
    return header, [line for _, line in ranked_lines]


def _cells(rows, columns, metrics, mean):
    """The cells of a line of `by_corpus` after its label; `mean` is that of the first metric."""
    scores = {column: [] for column in columns}
    for row in rows:
        scores[row["split"], row["corpus"]].append(row["metrics"])
    cells = [_cell(scores[column], metrics) for column in columns]
    if len(columns) > 1:
        is_complete = mean is not None and all(scores.values())
        cells.append(_shown(mean, metrics[0]) if is_complete else "")
    seeds = ""
    if "seed" in rows[0]:
        counts = {len(column) for column in scores.values() if column}
        seeds = "-".join(str(count) for count in sorted(counts))
    cells.append(seeds)
    return cells


def by_metric(scores: list[dict], metrics: Sequence[str]) -> list[str]:
    """A cell per metric: its mean over dicts of metrics, and the standard deviation.

    It is empty where one of them lacks the metric.
    """
    cells = []
    for metric in metrics:
        values = [metric_values.get(metric) for metric_values in scores]
        if None in values:
            cells.append("")
            continue
        # Perplexity and length are not fractions: two decimals suffice.
        digits = 2 if max(values) > 1 else 3
        cells.append(_mean_and_deviation(values, number, digits))
    return cells


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


def number(value: float, digits: int = 3) -> str:
    """Formats a number; three decimals, as in scores, lose the zero before the point.

    >>> number(0.5), number(34.2819, 2)
    ('.500', '34.28')
    """
    return f"{value:,.{digits}f}".removeprefix("0" if digits == 3 else "")


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """The text of a table, without empty columns at its end; an empty cell is one space wide."""
    while lines and not any(line[-1] for line in lines):
        header = header[:-1]
        lines = [line[:-1] for line in lines]
    rows = [_markdown_row(header), f"|{'---|' * len(header)}"]
    rows.extend(_markdown_row(line) for line in lines)
    return "\n".join(rows)


def _markdown_row(cells):
    texts = [f" {cell} |" if cell else " |" for cell in cells]
    return "|" + "".join(texts)


def _labels(rows):
    """The recipe of each row, with the settings that tell its rows apart.

    These are the settings in which rows of the same recipe, corpus and split differ.
    """
    values = collections.defaultdict(set)
    for row in rows:
        for field, value in row.get("settings", {}).items():
            values[row["recipe"], row["corpus"], row["split"], field].add(str(value))

    differing = set()
    for (recipe, _, _, field), texts in values.items():
        if len(texts) > 1 and field != "seed":
            differing.add((recipe, field))

    labels = []
    for row in rows:
        parts = [row["recipe"]]
        for field, value in sorted(row.get("settings", {}).items()):
            if (row["recipe"], field) in differing:
                parts.append(f"{field}={value}")
        labels.append(", ".join(parts))
    return labels


def _cell(scores, metrics):
    """A cell of `by_corpus` from the metrics of each seed; empty without any."""
    texts = []
    for metric in metrics:
        values = [metric_values[metric] for metric_values in scores if metric in metric_values]
        texts.append(_mean_and_deviation(values, _shown, metric) if values else "")
    first, *others = texts
    if any(others):
        return f"{first} ({', '.join(others)})"
    return first


def _mean_and_deviation(values, show, *options):
    text = show(statistics.mean(values), *options)
    if len(values) > 1:
        text += f" ± {show(statistics.stdev(values), *options)}"
    return text


def _shown(value, metric):
    percent_or_number = value if metric in NO_FRACTIONS else 100 * value
    return f"{percent_or_number:.1f}"
