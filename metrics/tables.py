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
    has_mean = len(columns) > 1
    header = ["", *_make_titles(columns)]
    if has_mean:
        header.append("mean")
    header.append("seeds")

    lines = []
    for label, scores in _group_by_label(rows).items():
        line = [label]
        for column in columns:
            metrics_of_seeds = list(scores.get(column, {}).values())
            line.append(_cell(metrics_of_seeds, metrics))
        mean = _average_columns(scores, metrics[0])
        if has_mean:
            is_complete = mean is not None and len(scores) == len(columns)
            line.append(_shown(metrics[0], mean) if is_complete else "")
        seed_counts = _count_seeds(scores)
        line.append("-".join(str(count) for count in seed_counts))
        lines.append((_rank(metrics[0], mean, seed_counts), line))
    lines.sort(key=lambda ranked: ranked[0])
    return header, [line for _, line in lines]


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
        cell = number(statistics.mean(values), digits)
        if len(values) > 1:
            cell += f" ± {number(statistics.stdev(values), digits)}"
        cells.append(cell)
    return cells


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

    differing = collections.defaultdict(set)
    for (recipe, _, _, field), texts in values.items():
        if len(texts) > 1 and field != "seed":
            differing[recipe].add(field)

    labels = []
    for row in rows:
        parts = [row["recipe"]]
        for field in sorted(differing[row["recipe"]]):
            parts.append(f"{field}={row.get('settings', {}).get(field)}")
        labels.append(", ".join(parts))
    return labels


def _make_titles(columns):
    splits = {split for split, _ in columns}
    if len(splits) == 1:
        return [corpus for _, corpus in columns]
    return [f"{corpus} {split}" for split, corpus in columns]


def _group_by_label(rows):
    """Returns `{label: {column: {seed: metrics}}}`; a column is a split and a corpus."""
    scores = {}
    for label, row in zip(_labels(rows), rows, strict=True):
        column = row["split"], row["corpus"]
        seeds = scores.setdefault(label, {}).setdefault(column, {})
        seeds[row.get("seed")] = row["metrics"]
    return scores


def _average_columns(scores, metric):
    """Returns the mean of the columns' means; `None` if a row lacks the metric."""
    means = [_mean(seeds.values(), metric) for seeds in scores.values()]
    if None in means:
        return None
    return statistics.mean(means)


def _count_seeds(scores):
    """Counts the seeds of each column, except where the seed is unknown."""
    return sorted({len(seeds) for seeds in scores.values() if None not in seeds})


def _rank(metric, mean, seed_counts):
    """Returns a sort key: lines with seeds come first, then those with a mean, the best first."""
    has_no_seed = not seed_counts
    if mean is None:
        return has_no_seed, True, 0.0
    cost = mean if metric in LOWER_IS_BETTER else -mean
    return has_no_seed, False, cost


def _mean(scores, metric):
    values = [metrics.get(metric) for metrics in scores]
    return None if None in values else statistics.mean(values)


def _cell(scores, metrics):
    """A cell of `by_corpus` from the metrics of each seed; empty without any."""
    texts = []
    for metric in metrics:
        values = [metric_values[metric] for metric_values in scores if metric in metric_values]
        text = ""
        if values:
            text = _shown(metric, statistics.mean(values))
        if len(values) > 1:
            text += f" ± {_shown(metric, statistics.stdev(values))}"
        texts.append(text)
    first, *others = texts
    if any(others):
        return f"{first} ({', '.join(others)})"
    return first


def _shown(metric, value):
    percent_or_number = value if metric in NO_FRACTIONS else 100 * value
    return f"{percent_or_number:.1f}"
