"""Writes the README's tables of figures from results/measured and results/published.json.

    python -m results.readme_tables          # rewrites README.md between its markers

A table stands between `<!-- table: CORPUS -->` and `<!-- end -->`. Every row of ours is one model and one setting,
averaged over the seeds that were run, with their spread.
"""

import collections
import json
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEASURED = ROOT / "results" / "measured"
README = ROOT / "README.md"
COLUMNS = ("R2@1", "R10@1", "R10@2", "R10@5", "MAP", "MRR")


def measured(corpus):
    """The records of results/measured for a corpus, in the order of their file names."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(MEASURED.glob("*.json"))]
    return [record for record in records if record["corpus"] == corpus]


def table(records):
    """A Markdown table of measured records and, below, the floors of their split.

    Args:
        records: As of `measured`, all of one corpus and split.

    >>> row = {"name": "DAM", "seed": 1, "seconds": 90, "metrics": {"R10@1": 0.5}, "floors": {"random": {"R10@1": 0.1}}}
    >>> print(table([row, {**row, "seed": 2, "metrics": {"R10@1": 0.6}}]).splitlines()[2])
    | DAM | | .550 ± .071 | | | | | 1, 2 | 2 |
    """
    lines = [
        f"| | {' | '.join(COLUMNS)} | seeds | minutes |",
        f"|---|{'---|' * len(COLUMNS)}---|---|",
    ]
    rows = collections.defaultdict(list)
    for record in records:
        rows[record["name"]].append(record)
    for name, group in sorted(rows.items(), key=lambda row: -_mean(row[1], "R10@1")):
        seeds = ", ".join(str(record["seed"]) for record in group)
        minutes = statistics.mean(record["seconds"] for record in group) / 60
        cells = " | ".join(_cell([record["metrics"].get(column) for record in group]) for column in COLUMNS)
        lines.append(_tidy(f"| {name} | {cells} | {seeds} | {minutes:.0f} |"))
    for name, metrics in (records[0]["floors"] if records else {}).items():
        cells = " | ".join(_cell([metrics.get(column)]) for column in COLUMNS)
        lines.append(_tidy(f"| *floor: {name}* | {cells} | | |"))
    return "\n".join(lines)


def _mean(group, column):
    return statistics.mean(record["metrics"].get(column, 0.0) for record in group)


def _cell(values):
    if any(value is None for value in values):
        return ""
    mean = f"{statistics.mean(values):.3f}".lstrip("0")
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.3f}".replace("± 0", "± ")


def _tidy(line):
    return re.sub(r"\|  (?=\|)", "| ", line)


def render(text):
    """A README's text with the contents between its markers made anew."""

    def fill(match):
        return f"{match[1]}\n{table(measured(match[2]))}\n{match[3]}"

    return re.sub(r"(<!-- table: (\S+) -->)\n.*?(<!-- end -->)", fill, text, flags=re.DOTALL)


if __name__ == "__main__":
    README.write_text(render(README.read_text(encoding="utf-8")), encoding="utf-8")
