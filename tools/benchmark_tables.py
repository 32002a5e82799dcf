"""Markdown tables of benchmarks: text from data, no file is read here."""

import collections

from tools.markdown import markdown, number


def speed(rows):
    """A benchmark of several sides: a row per side, a column per timing; the ratio to the first side.

    >>> row = {"lengths": "full", "what": "training", "side": "a", "pairs_per_second": 31.25, "ratio": 1.5}
    >>> print(speed([row]))
    | pairs per second | training, full lengths |
    |---|---|
    | a | 31.2 (1.50) |
    """
    timed = list(dict.fromkeys((row["what"], row["lengths"]) for row in rows))
    cells = collections.defaultdict(dict)
    for row in rows:
        cells[row["side"]][row["what"], row["lengths"]] = f"{row['pairs_per_second']:.1f} ({row['ratio']:.2f})"
    header = ["pairs per second", *(f"{what}, {lengths} lengths" for what, lengths in timed)]
    return markdown(header, [[side, *(found.get(one, "") for one in timed)] for side, found in cells.items()])


def sides(found):
    """A benchmark of two sides on one or more corpora: per second, and the first side's multiple of the second.

    >>> rows = {"squad": {"per_second": [90.0, 45.0], "peak_gigabytes": [3.0, 3.1]}}
    >>> print(sides({"sides": ["a", "b"], "unit": "questions", "rows": rows}).splitlines()[2])
    | squad | 90 | 45 | 2.00 | 3.0 | 3.1 |
    """
    header = [f"{found['unit']} per second", *found["sides"], "ratio", *(f"GB, {side}" for side in found["sides"])]
    lines = []
    for corpus, row in found["rows"].items():
        one, other = row["per_second"]
        shown = [f"{one:,.0f}", f"{other:,.0f}", f"{one / other:.2f}"]
        lines.append([corpus, *shown, *(f"{gigabytes:.1f}" for gigabytes in row["peak_gigabytes"])])
    return markdown(header, lines)


def iterations(found, count=200):
    """A benchmark of two sides: how long so many training steps take, by the clock and in CPU time, mean over blocks.

    >>> rows = {"task1": {"seconds": [5.0, 10.0], "cpu_seconds": [4.0, 5.0]}}
    >>> print(iterations({"sides": ["a", "b"], "steps": 20, "blocks": 3, "rows": rows}).splitlines()[2])
    | task1 | 50.0 | 100.0 | 40.0 | 50.0 | 0.80 |
    """
    header = [f"seconds for {count} iterations", *found["sides"], *(f"CPU, {side}" for side in found["sides"])]
    lines = []
    for corpus, row in found["rows"].items():
        shown = [f"{count / found['steps'] * seconds:.1f}" for seconds in (*row["seconds"], *row["cpu_seconds"])]
        lines.append([corpus, *shown, f"{row['cpu_seconds'][0] / row['cpu_seconds'][1]:.2f}"])
    return markdown([*header, "CPU time of one to other"], lines)


def groups(found, metrics):
    """What tools.analyses found, a row per group; with the standard deviation where a group is of several runs.

    >>> metrics = {"EM": 0.5, "F1": 0.6251}
    >>> print(groups({"by": "last_turn", "groups": [{"group": "0-5", "examples": 1200, "metrics": metrics}]}, ["F1"]))
    | last turn | n | F1 |
    |---|---|---|
    | 0-5 | 1,200 | .625 |
    >>> runs = {"group": "2", "examples": 3, "metrics": metrics, "deviations": {"EM": 0.01, "F1": 0.02}}
    >>> print(groups({"by": "levels", "groups": [runs]}, ["EM"]).split("\\n")[-1])
    | 2 | 3 | .500 ± .010 |
    """

    def shown(group, metric):
        deviation = group.get("deviations", {}).get(metric)
        return number(group["metrics"][metric]) + (f" ± {number(deviation)}" if deviation else "")

    lines = [
        [each["group"], f"{each['examples']:,}", *(shown(each, metric) for metric in metrics)]
        for each in found["groups"]
    ]
    return markdown([found["by"].replace("_", " "), "n", *metrics], lines)


def fields_table(rows, fields):
    """Some fields of the rows of a benchmark, a column per field; a field that a row lacks is empty.

    >>> print(fields_table([{"side": "a", "seconds": 1234.5}, {"side": "b", "seconds": 0.0123}], ["side", "seconds"]))
    | side | seconds |
    |---|---|
    | a | 1,234 |
    | b | 0.0123 |
    """

    def shown(value):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
        return "" if value is None else str(value)

    return markdown(
        [field.replace("_", " ") for field in fields], [[shown(row.get(f)) for f in fields] for row in rows]
    )
