"""Writes the README's tables of figures from results/measured and results/published.json.

    python -m tools.tables          # rewrites README.md between its markers

Selection, reading, generation: a table stands between `<!-- table: CORPUS -->` and `<!-- end -->`; `epochs=N`,
`only=WORD` and `without=WORD` may follow the corpus, in this order. Between `<!-- curve: CORPUS -->` and
`<!-- end -->`: the figures after each validation of the longest run, or with `steps=N,N,...` those at some steps,
beside a published curve if there is one. Between `<!-- samples: CORPUS -->` and `<!-- end -->`: replies of its
generation records. Dialog: between `<!-- dialog: SPLIT -->` and `<!-- end -->`, and the published figures of a split
between `<!-- dialog published: SPLIT -->` and `<!-- end -->`; a column a task, per response and in brackets per dialog.
Between `<!-- speed: NAME -->` and `<!-- end -->`: what a benchmark that compares several sides wrote into
results/benchmarks/NAME.json.

Every row of ours is one model and one setting, averaged over the seeds that were run, with their spread. With
`epochs=N` the figures are those of the best validation within the first `N` epochs, so that models stand side by side
at equal budgets (those that had fewer are left out); with `only=WORD` only models with that word in their name are
shown, with `without=WORD` only the others.
"""

import collections
import json
import pathlib
import re
import statistics

from data.tokenizers import TOKENIZERS
from metrics import dialog, generation, reading
from metrics.published import PUBLISHED, published
from metrics.tables import by_corpus, read_record

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEASURED = ROOT / "results" / "measured"
BENCHMARKS = ROOT / "results" / "benchmarks"
README = ROOT / "README.md"
COLUMNS = {
    "selection": ("R2@1", "R10@1", "R10@2", "R10@5", "MAP", "MRR"),
    "reading": reading.METRICS,
    "generation": generation.METRICS,
}
FIGURES = {
    "selection": lambda metrics: metrics.get("R10@1", 0.0) + metrics.get("R10@2", 0.0),
    "reading": lambda metrics: metrics["F1"],
    "generation": lambda metrics: -metrics["perplexity"],
}
"""What the best validation, and the first row, has most of."""


def measured(corpus=None):
    """The records of results/measured, for one corpus or all, in the order of their file names."""
    records = [read_record(path) for path in sorted(MEASURED.rglob("*.json"))]
    return [record for record in records if corpus in (None, record["corpus"])]


def table(records):
    """A Markdown table of measured records and, below, the baselines of their split and what others published.

    Args:
        records: As of `measured`, all of one corpus and split.

    >>> row = {"name": "DAM", "corpus": "x", "seed": 1, "seconds": 90, "metrics": {"R10@1": 0.5}}
    >>> row["baselines"] = {"random": {"R10@1": 0.1}}
    >>> print(table([row, {**row, "seed": 2, "metrics": {"R10@1": 0.6}}]).splitlines()[2])
    | DAM | | .550 ± .071 | | | | | 1, 2 | 2 |
    """
    task = _task(records[0]) if records else "selection"
    columns = COLUMNS[task]
    lines = [
        f"| | {' | '.join(columns)} | seeds | minutes |",
        f"|---|{'---|' * len(columns)}---|---|",
    ]
    rows = collections.defaultdict(list)
    for record in records:
        rows[_label(record)].append(record)

    def cells_of(figures):
        return " | ".join(_cell([metrics.get(column) for metrics in figures]) for column in columns)

    def figure(group):
        return statistics.mean(FIGURES[task](record["metrics"]) for record in group)

    for name, group in sorted(rows.items(), key=lambda row: -figure(row[1])):
        seeds = ", ".join(str(record["seed"]) for record in group)
        minutes = statistics.mean(record["seconds"] for record in group) / 60
        cells = cells_of([record["metrics"] for record in group])
        lines.append(_tidy(f"| {name} | {cells} | {seeds} | {minutes:.0f} |"))
        for part in group[0].get("parts", {}):
            lines.append(_tidy(f"| {name}, {part} | {cells_of([r['parts'][part] for r in group])} | | |"))
    baselines = next((record["baselines"] for record in records if record.get("baselines")), {})
    for name, metrics in baselines.items():
        lines.append(_tidy(f"| *baseline: {name}* | {cells_of([metrics])} | | |"))
    for row in [row for row in published(records[0]["corpus"]) if row["metrics"]] if records else ():
        where = f" ({row['split']})" if "split" in row else ""
        lines.append(_tidy(f"| *published{where}: {row['model']}* | {cells_of([row['metrics']])} | | |"))
    return "\n".join(lines)


def _label(record):
    """The model, and how its replies were looked for unless by greedy search."""
    search = record.get("search", "greedy")
    return record["name"] if search == "greedy" else f"{record['name']}, {search}"


def curve(record, steps=None):
    """A Markdown table of a record's validations: a row each.

    Args:
        record: As of `measured`.
        steps: Only those after so many steps, with the published curve of the corpus, if there is one, beside them.

    >>> row = {"step": 10, "epoch": 0.5, "loss": 4.25, "seconds": 90, "EM": 0.5, "F1": 0.625}
    >>> print(curve({"task": "reading", "corpus": "x", "history": [row]}).splitlines()[2])
    | 0.5 | 4.25 | .500 | .625 | 2 |
    """
    rows = [row for row in record["history"] if steps is None or row["step"] in steps]
    columns = [column for column in COLUMNS[_task(record)] if all(column in row for row in rows)]
    others = [row for row in published(record["corpus"]) if "curve" in row] if steps else []
    header = ["steps" if steps else "epoch", "loss", *(f"*published: {row['model']}*" for row in others)]
    header += [*columns, "minutes"]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for row in rows:
        cells = [f"{row['step']:,}" if steps else f"{row['epoch']:g}", f"{row['loss']:.2f}"]
        cells += [f"{other['curve'][str(row['step'])]:.2f}" for other in others]
        cells += [_cell([row[column]]) for column in columns]
        lines.append(f"| {' | '.join(cells)} | {row['seconds'] / 60:.0f} |")
    return "\n".join(lines)


def samples(records):
    """A Markdown table of replies: a row a pair, a column a way to look for them.

    >>> pair = {"source": "你 好 \\t 谁 。", "target": "我", "reply": "好 ."}
    >>> print(samples([{"name": "Seq2seq", "unit": "mixed", "samples": [pair]}]).splitlines()[2])
    | 你好 / 谁。 | 好. | 我 |
    """
    header = ["what was said", *(record.get("search", "greedy") for record in records), "what a human answered"]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    detokenize = TOKENIZERS[records[0]["unit"]].detokenize

    def text(tokens):
        turns = (detokenize(turn.split()) for turn in tokens.split("\t"))
        return " / ".join(turns).replace("|", "\\|")

    for pairs in zip(*(record["samples"] for record in records), strict=True):
        cells = [pairs[0]["source"], *(pair["reply"] for pair in pairs), pairs[0]["target"]]
        lines.append(f"| {' | '.join(map(text, cells))} |")
    return "\n".join(lines)


def speed(rows):
    """A Markdown table of a benchmark: a row a side, a column a thing that was timed, in brackets by the first side.

    >>> row = {"lengths": "full", "what": "training", "side": "a", "pairs_per_second": 31.25, "ratio": 1.5}
    >>> print(speed([row]))
    | pairs a second | training, full lengths |
    |---|---|
    | a | 31.2 (1.50) |
    """
    timed = list(dict.fromkeys((row["what"], row["lengths"]) for row in rows))
    cells = collections.defaultdict(dict)
    for row in rows:
        cells[row["side"]][row["what"], row["lengths"]] = f"{row['pairs_per_second']:.1f} ({row['ratio']:.2f})"
    lines = [f"| pairs a second | {' | '.join(f'{what}, {lengths} lengths' for what, lengths in timed)} |"]
    lines.append(f"|{'---|' * (1 + len(timed))}")
    lines += [_tidy(f"| {side} | {' | '.join(found.get(one, '') for one in timed)} |") for side, found in cells.items()]
    return "\n".join(lines)


def _task(record):
    return record.get("task", "selection")  # the first records do not say it


def within(record, epochs):
    """A record with the figures of its best validation in the first `epochs` epochs instead of its final ones.

    A validation interval that ends less than a hundredth after the last epoch is within it: intervals are whole steps.

    >>> history = [
    ...     {"epoch": 0.5, "seconds": 60, "R10@1": 0.3, "R10@2": 0.4},
    ...     {"epoch": 1.0, "seconds": 120, "R10@1": 0.4, "R10@2": 0.5},
    ...     {"epoch": 2.0, "seconds": 240, "R10@1": 0.6, "R10@2": 0.7},
    ... ]
    >>> within({"metrics": {"R10@1": 0.6}, "seconds": 240, "history": history}, 1)["metrics"]
    {'R10@1': 0.4}
    """
    rows = [row for row in record["history"] if row["epoch"] < epochs + 0.01]
    best = max(rows, key=lambda row: FIGURES[_task(record)](row))
    metrics = {name: best[name] for name in record["metrics"]}
    return {**record, "metrics": metrics, "seconds": rows[-1]["seconds"]}


def _cell(values):
    if any(value is None for value in values):
        return ""
    digits = 2 if max(values) > 1 else 3  # perplexity and length are no shares
    mean = f"{statistics.mean(values):.{digits}f}".removeprefix("0")
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}".replace("± 0.", "± .")


def _tidy(line):
    return re.sub(r"\|  (?=\|)", "| ", line)


def dialog_table(records):
    """A Markdown table of dialog records: a row a model, a column a task.

    >>> record = {"name": "MEMMA", "corpus": "babi-task1", "split": "dev", "seed": 1}
    >>> print(dialog_table([{**record, "metrics": {"per_response": 0.5, "per_dialog": 0.25}}]))
    | | babi-task1 | seeds |
    |---|---|---|
    | MEMMA | 50.0 (25.0) | 1 |
    """
    header, rows = by_corpus(records, dialog.METRICS)
    if all(record["seed"] is None for record in records):  # published
        header, rows = header[:-1], [row[:-1] for row in rows]
    lines = [header, ["---"] * len(header), *rows]
    shown = [f"| {' | '.join(cells)} |" for cells in lines]
    shown[1] = shown[1].replace(" ", "")
    return "\n".join(re.sub(r"\| (baseline|upper bound): ([^|]+) \|", r"| *\1: \2* |", _tidy(line)) for line in shown)


def published_dialogs(split):
    """The published records of a split of dialog tasks, in the form of ours."""
    rows = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    return [
        {**row, "name": row["model"], "seed": None} for row in rows if row["task"] == "dialog" and row["split"] == split
    ]


def render(text):
    """A README's text with the contents between its markers made anew."""

    def fill(match):
        records = measured(match["corpus"])
        for kind in ("only", "without"):
            if word := match[kind]:
                records = [r for r in records if (word in r["name"].replace(",", "").split()) == (kind == "only")]
        if match["epochs"]:
            epochs = float(match["epochs"])
            records = [within(record, epochs) for record in records if record["epochs"] > epochs - 0.01]
        return f"{match['begin']}\n{table(records)}\n{match['end']}"

    def fill_dialog(match):
        if match["published"]:
            records = published_dialogs(match["split"])
        else:
            records = [r for r in measured() if r.get("task") == "dialog" and r["split"] == match["split"]]
            records = [record for record in records if record["corpus"].startswith("babi-")]
        return f"{match['begin']}\n{dialog_table(records)}\n{match['end']}"

    def fill_curve(match):
        longest = max(measured(match["corpus"]), key=lambda record: record["epochs"])
        steps = match["steps"] and [int(step) for step in match["steps"].split(",")]
        return f"{match['begin']}\n{curve(longest, steps)}\n{match['end']}"

    def fill_samples(match):
        records = [record for record in measured(match["corpus"]) if record.get("samples")]
        return f"{match['begin']}\n{samples(records)}\n{match['end']}"

    def fill_speed(match):
        found = json.loads((BENCHMARKS / f"{match['name']}.json").read_text(encoding="utf-8"))
        return f"{match['begin']}\n{speed(found['rows'])}\n{match['end']}"

    text = re.sub(
        r"(?P<begin><!-- speed: (?P<name>\S+) -->)\n.*?(?P<end><!-- end -->)", fill_speed, text, flags=re.DOTALL
    )
    marker = r"(?P<begin><!-- table: (?P<corpus>\S+)(?: epochs=(?P<epochs>\S+))?"
    marker += r"(?: only=(?P<only>\S+))?(?: without=(?P<without>\S+))? -->)\n.*?(?P<end><!-- end -->)"
    text = re.sub(marker, fill, text, flags=re.DOTALL)
    marker = r"(?P<begin><!-- dialog(?P<published> published)?: (?P<split>\S+) -->)\n.*?(?P<end><!-- end -->)"
    text = re.sub(marker, fill_dialog, text, flags=re.DOTALL)
    marker = r"(?P<begin><!-- curve: (?P<corpus>\S+)(?: steps=(?P<steps>\S+))? -->)\n.*?(?P<end><!-- end -->)"
    text = re.sub(marker, fill_curve, text, flags=re.DOTALL)
    marker = r"(?P<begin><!-- samples: (?P<corpus>\S+) -->)\n.*?(?P<end><!-- end -->)"
    return re.sub(marker, fill_samples, text, flags=re.DOTALL)


if __name__ == "__main__":
    README.write_text(render(README.read_text(encoding="utf-8")), encoding="utf-8")
