"""Markdown tables of measured and published records: text from data, no file is read here."""

import collections
import fnmatch
import re
import statistics

from data.tokenizers import TOKENIZERS
from metrics import dialog, generation, reading_comprehension
from metrics.names import record_name
from metrics.tables import by_corpus

COLUMNS = {
    "selection": ("R2@1", "R10@1", "R10@2", "R10@5", "MAP", "MRR"),
    "reading_comprehension": reading_comprehension.METRICS,
    "generation": generation.METRICS,
}
SCORES = {
    "selection": lambda metrics: metrics.get("R10@1", 0.0) + metrics.get("R10@2", 0.0),
    "reading_comprehension": lambda metrics: metrics["F1"],
    "generation": lambda metrics: -metrics["perplexity"],
}
"""By which the best validation is chosen and the rows of a table are sorted."""


def table(records, others=()):
    """A row per model and setting: mean and standard deviation over seeds; below, baselines and published rows.

    Epochs are those of a training, after those of the ones whose weights it started from; minutes are of all.

    Args:
        records: Measured records of one corpus and split.
        others: Published rows.

    >>> row = {"name": "DAM", "corpus": "x", "seed": 1, "seconds": 90, "epochs": 2.004, "metrics": {"R10@1": 0.5}}
    >>> row["baselines"] = {"random": {"R10@1": 0.1}}
    >>> print(table([row, {**row, "seed": 2, "metrics": {"R10@1": 0.6}}]).splitlines()[2])
    | DAM | | .550 ± .071 | | | | | 2 | 1, 2 | 2 |
    """
    task = _task(records[0]) if records else "selection"
    columns = COLUMNS[task]
    rows = collections.defaultdict(list)
    for record in records:
        rows[record_name(record)].append(record)

    def line(name, group, *last):
        cells = [_cell([metrics.get(column) for metrics in group]) for column in columns]
        return [name, *cells, *(last or ("", "", ""))]

    lines = []
    for name, group in sorted(rows.items(), key=lambda row: -_mean(row[1], lambda r: SCORES[task](r["metrics"]))):
        before = [training["epochs"] or 0 for training in group[0].get("before", [])]
        epochs = [f"{round(each, 2):g}" for each in (*before, _mean(group, lambda record: record["epochs"]))]
        seeds = ", ".join(str(record["seed"]) for record in group)
        took = f"{_mean(group, minutes):.0f}"
        lines.append(line(name, [record["metrics"] for record in group], " + ".join(epochs), seeds, took))
        for part in group[0].get("parts", {}):
            lines.append(line(f"{name}, {part}", [record["parts"][part] for record in group]))
    baselines = next((record["baselines"] for record in records if record.get("baselines")), {})
    lines += [line(f"*baseline: {name}*", [metrics]) for name, metrics in baselines.items()]
    lines += [line(f"*published: {_source(row)}*", [row["metrics"]]) for row in others]
    return markdown(["", *columns, "epochs", "seeds", "minutes"], lines)


def chosen(rows, patterns):
    """The published rows that a table asks for, in its order.

    Args:
        rows: Published rows.
        patterns: Shell patterns of `MODEL (SPLIT)`, or of `MODEL` where rows have no split, separated by `;`.

    Raises:
        ValueError: for a pattern that no row matches.

    >>> rows = [{"model": "BiDAF", "split": split} for split in ("test", "dev")]
    >>> chosen(rows, "BiDAF (d*)")
    [{'model': 'BiDAF', 'split': 'dev'}]
    """
    found = []
    for pattern in filter(None, (pattern.strip() for pattern in patterns.split(";"))):
        matching = [row for row in rows if fnmatch.fnmatchcase(_source(row), pattern)]
        if not matching:
            raise ValueError(f"no published row matches {pattern!r}. Known: {', '.join(map(_source, rows))}")
        found += [row for row in matching if row not in found]
    return found


def _source(row):
    return f"{row['model']} ({row['split']})" if "split" in row else row["model"]


def curve(record, steps=None, others=()):
    """A row per validation of a record.

    Args:
        record: A measured record.
        steps: Only those after these numbers of steps.
        others: Published rows with a `curve` of losses by step, shown beside ours.

    >>> row = {"step": 10, "epoch": 0.5, "loss": 4.25, "seconds": 90, "EM": 0.5, "F1": 0.625}
    >>> print(curve({"task": "reading_comprehension", "corpus": "x", "history": [row]}).splitlines()[2])
    | 0.5 | 4.25 | .500 | .625 | 2 |
    """
    rows = [row for row in record["history"] if steps is None or row["step"] in steps]
    columns = [column for column in COLUMNS[_task(record)] if all(column in row for row in rows)]
    header = ["steps" if steps else "epoch", "loss", *(f"*published: {row['model']}*" for row in others)]
    lines = []
    for row in rows:
        cells = [f"{row['step']:,}" if steps else f"{row['epoch']:g}", f"{row['loss']:.2f}"]
        cells += [f"{other['curve'][str(row['step'])]:.2f}" for other in others]
        lines.append([*cells, *(_cell([row[column]]) for column in columns), f"{row['seconds'] / 60:.0f}"])
    return markdown([*header, *columns, "minutes"], lines)


def samples(records):
    """Replies: a row per pair, a column per way to search for them.

    >>> pair = {"source": "你 好 \\t 谁 。", "target": "我", "reply": "好 ."}
    >>> print(samples([{"name": "Seq2seq", "unit": "mixed", "samples": [pair]}]).splitlines()[2])
    | 你好 / 谁。 | 好. | 我 |
    """
    detokenize = TOKENIZERS[records[0]["unit"]].detokenize

    def text(tokens):
        turns = (detokenize(turn.split()) for turn in tokens.split("\t"))
        return " / ".join(turns).replace("|", "\\|")

    header = ["what was said", *(record.get("search", "greedy") for record in records), "what a human answered"]
    lines = [
        [text(tokens) for tokens in (pairs[0]["source"], *(pair["reply"] for pair in pairs), pairs[0]["target"])]
        for pairs in zip(*(record["samples"] for record in records), strict=True)
    ]
    return markdown(header, lines)


def dialog_table(records):
    """A row per model, a column per task: per response and, in brackets, per dialog, in per cent.

    >>> record = {"name": "MEMMA", "corpus": "babi-task1", "split": "dev", "seed": 1}
    >>> print(dialog_table([{**record, "metrics": {"per_response": 0.5, "per_dialog": 0.25}}]))
    | | babi-task1 | seeds |
    |---|---|---|
    | MEMMA | 50.0 (25.0) | 1 |
    """
    header, rows = by_corpus(records, dialog.METRICS)
    if all(record["seed"] is None for record in records):  # published
        header, rows = header[:-1], [row[:-1] for row in rows]
    named = [[re.sub(r"^((?:baseline|upper bound): .*)$", r"*\1*", name), *cells] for name, *cells in rows]
    return markdown(header, named)


def within(record, epochs):
    """A record with the metrics of its best validation in the first `epochs` epochs instead of its final ones.

    A validation less than a hundredth of an epoch later still counts: validations come after whole steps.

    >>> history = [
    ...     {"epoch": 0.5, "seconds": 60, "R10@1": 0.3, "R10@2": 0.4},
    ...     {"epoch": 1.0, "seconds": 120, "R10@1": 0.4, "R10@2": 0.5},
    ...     {"epoch": 2.0, "seconds": 240, "R10@1": 0.6, "R10@2": 0.7},
    ... ]
    >>> within({"metrics": {"R10@1": 0.6}, "seconds": 240, "history": history}, 1)["metrics"]
    {'R10@1': 0.4}
    """
    rows = [row for row in record["history"] if row["epoch"] < epochs + 0.01]
    best = max(rows, key=lambda row: SCORES[_task(record)](row))
    metrics = {name: best[name] for name in record["metrics"]}
    return {**record, "metrics": metrics, "seconds": rows[-1]["seconds"], "epochs": rows[-1]["epoch"]}


def score_text(records, epochs):
    """What a recipe says of its records: split, score, seeds, minutes of training, hardware.

    Args:
        records: All records of one recipe and split: a file per corpus and seed.
        epochs: Those of the recipe.

    >>> row = {"corpus": "x", "split": "dev", "seed": 1, "seconds": 90, "epochs": 2.004, "metrics": {"R10@1": 0.5}}
    >>> score_text([{**row, "hardware": "2 cores, AMD EPYC"}], 8)
    'dev R10@1 .500 after 2 of 8 epochs; seed 1, 2 minutes, 2 cores, AMD EPYC'
    """
    task, shown = _task(records[0]), _headline(records)
    corpora = {record["corpus"] for record in records}
    if len(corpora) > 1:
        shown += f", the mean of {len(corpora)} tasks"
    trained = max(record["epochs"] for record in records)
    if trained < epochs - 0.01 and task != "dialog":  # there, training ends where dev is perfect
        shown += f" after {trained:.3g} of {epochs:.3g} epochs"
    seeds = sorted({record["seed"] for record in records})
    took = _mean(records, minutes)
    hardware = ", ".join(sorted({re.sub("^1 cores", "1 core", record["hardware"]) for record in records}))
    took = f"{took:.0f} minutes" if took >= 1.5 else f"{60 * took:.0f} seconds"
    took += " per task" * (len(corpora) > 1)
    numbers = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    return f"{records[0]['split']} {shown}; {numbers}, {took}, {hardware}"


HEADLINES = {
    "selection": ("R10@1",),
    "reading_comprehension": ("EM", "F1"),
    "generation": ("perplexity",),
    "dialog": ("per_response",),
}
"""What a recipe is known by."""


def headline_text(records):
    """The score of some records of one model, and where it was measured.

    >>> row = {"task": "selection", "corpus": "x", "split": "dev", "metrics": {"R10@1": 0.5}}
    >>> headline_text([row, {**row, "metrics": {"R10@1": 0.7}}])
    'R10@1 .600 (x dev)'
    """
    corpora = sorted({record["corpus"] for record in records})
    split = records[0].get("split", "test")
    if len(corpora) == 1:
        return f"{_headline(records)} ({corpora[0]} {split})"
    return f"{_headline(records)} ({corpora[0].partition('-')[0]} {split}, mean of {len(corpora)} tasks)"


def _headline(records):
    """The mean over corpora of the mean over seeds."""
    by_corpus = collections.defaultdict(list)
    for record in records:
        by_corpus[record["corpus"]].append(record["metrics"])
    shown = []
    for name in HEADLINES[_task(records[0])]:
        means = [_mean(group, lambda metrics, name=name: metrics[name]) for group in by_corpus.values()]
        shown.append(f"{name} {_cell([statistics.mean(means)])}")
    return ", ".join(shown)


def number(value, digits=3):
    """A number as the tables show it: fractions without their zero.

    >>> number(0.5), number(34.2819, 2), number(1.0)
    ('.500', '34.28', '1.000')
    """
    return f"{value:,.{digits}f}".removeprefix("0") if digits else f"{value:,.0f}"


def _task(record):
    return record.get("task", "selection")  # the first records do not say it


def minutes(record):
    """How long the training of a record took, with those before it whose weights it started from.

    >>> minutes({"seconds": 90, "before": [{"corpus": "x", "epochs": 2.0, "seconds": 60}]})
    2.5
    """
    return (record["seconds"] + sum(training["seconds"] or 0 for training in record.get("before", []))) / 60


def _mean(records, what):
    return statistics.mean(map(what, records))


def _cell(values):
    if any(value is None for value in values):
        return ""
    digits = 2 if max(values) > 1 else 3  # perplexity and length are no fractions
    mean = number(statistics.mean(values), digits)
    return mean if len(values) == 1 else f"{mean} ± {number(statistics.stdev(values), digits)}"


def markdown(header, lines):
    """The text of a table; an empty cell takes one space."""
    shown = ["|" + "".join(f" {cell} |" if cell else " |" for cell in cells) for cells in (header, *lines)]
    return "\n".join([shown[0], f"|{'---|' * len(header)}", *shown[1:]])


def mean_of_corpora(records, metric="per_response"):
    """The mean over corpora of the means over seeds.

    Args:
        records: `{corpus: records}`.
        metric: Name of a metric.

    Returns:
        A number, or `None` where a corpus has no record.

    >>> one, other = ([{"metrics": {"per_response": value}} for value in values] for values in ([0.5, 1.0], [0.25]))
    >>> mean_of_corpora({"a": one, "b": other}), mean_of_corpora({"a": one, "b": []})
    (0.5, None)
    """
    if not all(records.values()):
        return None
    means = [statistics.mean(record["metrics"][metric] for record in found) for found in records.values()]
    return statistics.mean(means)
