"""Scores as text: tables for the terminal (evaluate.py) and for docs (tools.tables)."""

import collections
import statistics

NO_FRACTIONS = {"perplexity", "length"}
LOWER_IS_BETTER = {"perplexity"}


def by_corpus(rows, metrics):
    """A line per model, a column per corpus and split: mean and standard deviation over seeds, in
    per cent.

    `rows` have `recipe`, `corpus`, `split`, `metrics`, and if known `seed` and `settings`, `{field:
    value}`; a cell shows the first of `metrics`, and the others in brackets. Returns the header and
    the lines, texts: the best first, those without a seed last. `mean` is that of the first metric
    over all columns. Rows of a recipe that differ in a setting have lines of their own, which name
    it.

    >>> row = {"recipe": "MEMMA", "corpus": "babi-task1", "split": "dev", "seed": 1, "metrics": {"per_response": 1.0}}
    >>> other = {**row, "seed": 2, "metrics": {"per_response": 0.99}}
    >>> by_corpus([row, other], ["per_response"])
    (['', 'babi-task1', 'seeds'], [['MEMMA', '99.5 ± 0.7', '2']])
    """
    columns = sorted({(row["split"], row["corpus"]) for row in rows})
    several = len({split for split, _ in columns}) > 1
    header = ["", *(f"{corpus} {split}" if several else corpus for split, corpus in columns)]
    header += ["mean"] * (len(columns) > 1) + ["seeds"]
    found = {}  # label, column: seed to metrics
    for label, row in zip(_labels(rows), rows, strict=True):
        column = row["split"], row["corpus"]
        found.setdefault(label, {}).setdefault(column, {})[row.get("seed")] = row["metrics"]
    lines = []
    for label, cells in found.items():
        shown = [_cell(list(cells.get(column, {}).values()), metrics) for column in columns]
        means = [_mean(seeds.values(), metrics[0]) for seeds in cells.values()]
        mean = None if None in means else statistics.mean(means)
        if len(columns) > 1:
            shown.append(
                _shown(metrics[0], mean) if mean is not None and len(cells) == len(columns) else ""
            )
        counts = sorted({len(seeds) for seeds in cells.values() if None not in seeds})
        place = not counts, mean is None, mean if metrics[0] in LOWER_IS_BETTER else -(mean or 0.0)
        lines.append((place, [label, *shown, "-".join(map(str, counts))]))
    return header, [line for _, line in sorted(lines, key=lambda line: line[0])]


def by_metric(scores, metrics):
    """A cell per metric: its mean over dicts of metrics and the standard deviation; empty where one
    lacks it.
    """
    cells = []
    for metric in metrics:
        values = [found.get(metric) for found in scores]
        if None in values:
            cells.append("")
        else:
            digits = 2 if max(values) > 1 else 3  # perplexity and length are no fractions
            spread = [statistics.stdev(values)] if len(values) > 1 else []
            cells.append(
                " ± ".join(number(each, digits) for each in (statistics.mean(values), *spread))
            )
    return cells


def mean_over_corpora(rows, name):
    """The mean over corpora and splits of the mean over rows of a metric, or of a number that the
    rows hold.

    >>> row = {"corpus": "a", "split": "dev", "minutes": 1, "metrics": {}}
    >>> mean_over_corpora([row, {**row, "minutes": 3}, {**row, "corpus": "b", "minutes": 3}], "minutes")
    2.5
    """
    values = collections.defaultdict(list)
    for row in rows:
        values[row["corpus"], row["split"]].append({**row, **row["metrics"]}[name])
    return statistics.mean(map(statistics.mean, values.values()))


def number(value, digits=3, sign=""):
    """Formats a number; three decimals, as in scores, lose the zero before the point.

    >>> number(0.5), number(34.2819, 2), number(-0.25, 2, "+")
    ('.500', '34.28', '-0.25')
    """
    return f"{value:{sign},.{digits}f}".removeprefix("0" if digits == 3 else "")


def markdown(header, lines):
    """The text of a table, without columns at its end that are empty throughout; an empty cell is
    one space wide.
    """
    while lines and not any(line[-1] for line in lines):
        header, lines = header[:-1], [line[:-1] for line in lines]
    shown = [
        "|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (header, *lines)
    ]
    return "\n".join([shown[0], f"|{'---|' * len(header)}", *shown[1:]])


def _labels(rows):
    """The recipe of each row, with the settings in which rows of its recipe, corpus and split
    differ.
    """
    values = {}  # recipe, corpus, split, field: its values
    for row in rows:
        for field, value in row.get("settings", {}).items():
            values.setdefault((row["recipe"], row["corpus"], row["split"], field), set()).add(
                str(value)
            )
    differing = {
        (name, field)
        for (name, _, _, field), texts in values.items()
        if len(texts) > 1 and field != "seed"
    }
    for row in rows:
        fields = sorted(field for name, field in differing if name == row["recipe"])
        yield ", ".join(
            [row["recipe"], *(f"{field}={row.get('settings', {}).get(field)}" for field in fields)]
        )


def _mean(scores, metric):
    values = [found.get(metric) for found in scores]
    return None if None in values else statistics.mean(values)


def _cell(scores, metrics):
    texts = []
    for metric in metrics:
        values = [found[metric] for found in scores if metric in found]
        spread = f" ± {_shown(metric, statistics.stdev(values))}" if len(values) > 1 else ""
        texts.append(_shown(metric, statistics.mean(values)) + spread if values else "")
    first, *others = texts
    return first + (f" ({', '.join(others)})" if any(others) else "")


def _shown(metric, value):
    return f"{value if metric in NO_FRACTIONS else 100 * value:.1f}"
