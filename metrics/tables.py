"""Tables of records: rows of text, for the terminal (evaluate.py) and for the README (tools.tables)."""

import collections
import json
import statistics

from metrics.names import record_name

REFERENCES = {"baselines": "baseline", "upper_bounds": "upper bound"}
"""What a record may hold beside its metrics, and what a table calls a row with it."""


def read_record(path):
    """Reads a record of results/measured; the words of older ones, as `floors`, `ceilings` and the
    task `reading`, become the present ones.

    Args:
        path: A `pathlib.Path` of a JSON file.
    """
    record = json.loads(path.read_text(encoding="utf-8"))
    for old, new in (("floors", "baselines"), ("ceilings", "upper_bounds")):
        if old in record:
            record[new] = record.pop(old)
    if record.get("task") == "reading":
        record["task"] = "reading_comprehension"
    return record


NO_FRACTIONS = {"perplexity", "length"}
LOWER_IS_BETTER = {"perplexity"}


def by_corpus(records, metrics):
    """A row per model, a column per corpus and split; mean and standard deviation over seeds.

    Scores are in per cent, but for perplexity and length.

    Args:
        records: Dicts with `name`, `corpus`, `split`, `seed`, `metrics` and, if known, `settings`, which are
            `{kind: {field: value}}`.
        metrics: Names of metrics; a cell shows the first, and the others in brackets.

    Returns:
        The header and the rows, the best first: lists of texts. Where there are several columns, `mean` is that of the
        first metric over all of them, for rows that have them all. The last column says how many seeds a row has.
        Models of one name that differ in a setting in the same column are rows of their own, which name it. Baselines
        and upper bounds of the records stand below.

    >>> record = {"name": "MEMMA", "corpus": "babi-task1", "split": "dev", "seed": 1, "metrics": {"per_response": 1.0}}
    >>> other = {**record, "seed": 2, "metrics": {"per_response": 0.99}}
    >>> by_corpus([record, other], ["per_response"])
    (['', 'babi-task1', 'seeds'], [['MEMMA', '99.5 ± 0.7', '2']])
    """
    columns = sorted({(record["corpus"], record["split"]) for record in records}, key=lambda c: (c[1], c[0]))
    several = len({split for _, split in columns}) > 1
    header = ["", *(f"{corpus} {split}" if several else corpus for corpus, split in columns)]
    header += ["mean"] * (len(columns) > 1) + ["seeds"]
    cells = collections.defaultdict(lambda: collections.defaultdict(dict))  # label, column: seed to metrics
    below = {kind: {} for kind in REFERENCES}
    labels = _labels(records)
    for record, label in zip(records, labels, strict=True):
        column = record["corpus"], record["split"]
        cells[label][column][record["seed"]] = record["metrics"]
        for kind, found in below.items():
            for name, scores in record.get(kind, {}).items():
                found.setdefault(name, {})[column] = scores
    rows, means = [], {}
    for name, row in cells.items():
        seeds = sorted({len(of_column) for of_column in row.values()})
        shown = [_cell(list(row[column].values()), metrics) if column in row else "" for column in columns]
        means[name] = _mean([list(of_column.values()) for of_column in row.values()], metrics[0])
        mean = [_shown(metrics[0], means[name]) if len(row) == len(columns) else ""] * (len(columns) > 1)
        rows.append([name, *shown, *mean, "-".join(map(str, seeds))])
    rows.sort(key=lambda row: means[row[0]], reverse=metrics[0] not in LOWER_IS_BETTER)
    for kind, found in below.items():
        for name, row in found.items():
            shown = [_cell([row[column]], metrics) if column in row else "" for column in columns]
            full = len(row) == len(columns) and all(metrics[0] in scores for scores in row.values())
            mean = _shown(metrics[0], _mean([[scores] for scores in row.values()], metrics[0])) if full else ""
            rows.append([f"{REFERENCES[kind]}: {name}", *shown, *[mean] * (len(columns) > 1), ""])
    return header, rows


def _labels(records):
    """The name of each record, and after it the settings that others of its name, corpus and split have otherwise."""
    settings = [
        {field: _text(value) for kind in record.get("settings", {}).values() for field, value in kind.items()}
        for record in records
    ]
    names = [record_name(record) for record in records]
    found = collections.defaultdict(set)  # name, corpus, split, field: values
    for name, record, fields in zip(names, records, settings, strict=True):
        for field, value in fields.items():
            found[name, record["corpus"], record["split"], field].add(value)
    differing = collections.defaultdict(set)
    for (name, _, _, field), values in found.items():
        if len(values) > 1 and field != "seed":
            differing[name].add(field)
    return [
        ", ".join([name, *(f"{field}={fields.get(field)}" for field in sorted(differing[name]))])
        for name, fields in zip(names, settings, strict=True)
    ]


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)


def _mean(columns, metric):
    """The mean over columns of the mean over each column's scores."""
    return statistics.mean(statistics.mean(scores[metric] for scores in column) for column in columns)


def _shown(metric, value):
    return f"{value if metric in NO_FRACTIONS else 100 * value:.1f}"


def _cell(scores, metrics):
    def shown(metric):
        values = [found[metric] for found in scores if metric in found]
        spread = f" ± {_shown(metric, statistics.stdev(values))}" if len(values) > 1 else ""
        return _shown(metric, statistics.mean(values)) + spread if values else ""

    first, *others = map(shown, metrics)
    return first + (f" ({', '.join(others)})" if any(others) else "")
