"""Writes the tables and numbers of README.md and docs/ from results/ and the recipes.

    python -m colloquy.tools.tables            # rewrites the text between markers
    python -m colloquy.tools.tables --check    # changes nothing; exit code 1 and the pages that are
    out of date

A marker is an HTML comment `KIND: ARGUMENTS`; its text ends at the comment `end`. The functions of
`KINDS` say what they take. Arguments are separated by spaces, and quoted where they hold some;
patterns are those of a shell.
"""

import collections
import json
import re
import shlex
from fnmatch import fnmatchcase

from absl import flags

from colloquy.base import cli
from colloquy.base.files import UserError
from colloquy.metrics import dialog, generation, ranking, reading_comprehension
from colloquy.metrics.published import RESULTS, published, scores
from colloquy.metrics.tables import (
    LOWER_IS_BETTER,
    by_corpus,
    by_metric,
    markdown,
    mean_over_corpora,
    number,
)
from colloquy.tasks import RECIPES

FLAGS = flags.FLAGS

ROOT = RESULTS.parent
MARKER = re.compile(r"(<!-- ([a-z]+): ([^\n]*?) -->).*?(<!-- end -->)", re.DOTALL)
COLUMNS = {
    "selection": ranking.METRICS[:-1],  # P@1 is R10@1 where each context has one positive response
    "reading_comprehension": reading_comprehension.METRICS,
    "generation": generation.METRICS,
}
HEADLINES = {
    "selection": ("R10@1",),
    "reading_comprehension": ("EM", "F1"),
    "generation": ("perplexity",),
    "dialog": ("per_response",),
}
"""Metrics in the table of recipes; the first sorts its lines."""
VARIANTS = {"budget", "ensemble", "search", "trained_on"}
"""Keys of rows with changed settings or data, which are not a recipe's own score."""


def write(check=False):
    """Rewrites the pages that are out of date; a `UserError` if `check`, which changes nothing."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    stale = []
    for page in pages:
        name, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
        try:
            made = render(text)
        except ValueError as error:
            raise UserError(f"{name}: {error}") from error
        if made != text:
            stale.append(name)
            if not check:
                page.write_text(made, encoding="utf-8")
    if stale and check:
        raise UserError(f"out of date: {', '.join(stale)}; run: python -m colloquy.tools.tables")
    print("\n".join(stale) or "up to date")


def render(text):
    """The text of a page with its markers filled; a `ValueError` quotes a marker that is at
    fault.
    """

    def fill(match):
        begin, kind, arguments, end = match.groups()
        words = shlex.split(arguments)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        try:
            if kind not in KINDS:
                raise ValueError(f"expected one of {', '.join(KINDS)}")
            made = KINDS[kind](*[word for word in words if "=" not in word], **options)
        except (TypeError, ValueError, LookupError, OSError) as error:
            raise ValueError(f"{begin}: {error}") from error
        return f"{begin}{made}{end}" if kind == "value" else f"{begin}\n{made}\n{end}"

    return MARKER.sub(fill, text)


# === Scores ===


def select(patterns, corpus="*", split="dev"):
    """Rows of results/scores.jsonl by patterns, and of results/published.json as `published: MODEL
    (SPLIT)`.
    """
    ours = [row for row in scores() if fnmatchcase(row["split"], split)]
    others = [
        {**row, "recipe": f"published: {row['model']} ({row['split']})"} for row in published()
    ]
    rows = [row for row in (*ours, *others) if fnmatchcase(row["corpus"], corpus)]
    return [row for row in rows if any(fnmatchcase(row["recipe"], pattern) for pattern in patterns)]


def score_table(*recipes, corpus="*", split="dev", epochs=None, layout="scores"):
    """A line per recipe, the best first, then baselines and published scores; a column per metric,
    or per bAbI task or dialog manager.

    Args:
        *recipes, corpus, split: Patterns, see `select`.
        epochs: Shows the best validation within this number of epochs: models side by side at equal
            budgets.
        layout: `recipes` lists all matching recipes, measured or not, with corpus, headline score
            and hardware.
    """
    if layout == "recipes":
        names = [name for name in RECIPES if any(fnmatchcase(name, pattern) for pattern in recipes)]
        header = ["recipe", "corpus", "score", "epochs", "seeds", "training", "hardware"]
        return markdown(
            header, [[f"`{name}`", RECIPES[name].corpus, *_reached(name)] for name in names]
        )
    rows = select((*recipes, "baseline: *", "upper bound: *"), corpus, split)
    ours = [row for row in rows if "seed" in row and _has_budget(row, epochs)]
    columns = set(map(_column, ours))
    below = [
        row for row in rows if "source" in row or ("seed" not in row and _column(row) in columns)
    ]
    if not ours + below:
        raise ValueError("no score matches")
    task, groups = (ours + below)[0]["task"], collections.defaultdict(list)
    for row in ours:
        groups[name_of(row)].append(row)
    if task == "dialog":
        groups = {name: rows for name, rows in groups.items() if set(map(_column, rows)) == columns}
        return _dialog_table(groups, below)
    return _metric_table(groups, below, COLUMNS[task], HEADLINES[task][0])


def name_of(row):
    """The title of a row's recipe, with the models of an ensemble, another corpus of the training,
    and the search.

    >>> name_of({"recipe": "chat-none", "search": "beam=5"}), name_of({"recipe": "baseline: random"})
    ('Seq2seq, no attention, beam=5', '*baseline: random*')
    """
    title = RECIPES[row["recipe"]].title if row["recipe"] in RECIPES else f"*{row['recipe']}*"
    several = f"Ensemble of {row['ensemble']}: " if "ensemble" in row else ""
    trained = f", trained on {row['trained_on']}" if "trained_on" in row else ""
    return several + title + trained + (f", {row['search']}" if "search" in row else "")


def _metric_table(groups, below, columns, best):
    lines, lower = [], best in LOWER_IS_BETTER
    for name, rows in sorted(
        groups.items(), key=lambda group: mean_over_corpora(group[1], best), reverse=not lower
    ):
        epochs = [*rows[0].get("epochs_before", []), mean_over_corpora(rows, "epochs")]
        epochs = " + ".join(f"{round(each, 2):g}" for each in epochs)
        facts = epochs, _seeds(rows), f"{mean_over_corpora(rows, 'minutes'):.0f}", _commits(rows)
        lines.append([name, *by_metric([row["metrics"] for row in rows], columns), *facts])
        for part, metrics in rows[0].get("parts", {}).items():
            lines.append([f"{name}, {part}", *by_metric([metrics], columns), "", "", "", ""])
    lines += [
        [name_of(row), *by_metric([row["metrics"]], columns), "", "", "", ""] for row in below
    ]
    return markdown(["", *columns, "epochs", "seeds", "minutes", "commit"], lines)


def _dialog_table(groups, below):
    rows = [{**row, "recipe": name_of(row)} for rows in (*groups.values(), below) for row in rows]
    parts = [
        [{"corpus": name, "metrics": of} for name, of in row.get("parts", {}).items()] or [{}]
        for row in rows
    ]
    rows = [{**row, **part} for row, found in zip(rows, parts, strict=True) for part in found]
    header, lines = by_corpus(rows, dialog.METRICS)
    return markdown(
        [*header, "commit"], [[*line, _commits(groups.get(line[0], []))] for line in lines]
    )


def _reached(recipe):
    """Score, epochs, seeds, time and hardware of a recipe's rows on dev, or where there are none on
    test.
    """
    rows = [row for row in select([recipe], split="*") if not VARIANTS & row.keys()]
    rows = [row for row in rows if row["split"] == "dev"] or rows
    if not rows:
        return ["not measured", "", "", "", ""]
    metrics, corpora = HEADLINES[rows[0]["task"]], len(set(map(_column, rows)))
    cells = by_metric([{metric: mean_over_corpora(rows, metric) for metric in metrics}], metrics)
    shown = ", ".join(f"{metric} {cell}" for metric, cell in zip(metrics, cells, strict=True))
    trained, planned = max(row["epochs"] for row in rows), RECIPES[recipe].training.epochs
    minutes = mean_over_corpora(rows, "minutes")
    return [
        f"{rows[0]['split']} {shown}" + f", mean of {corpora} tasks" * (corpora > 1),
        f"{trained:.3g}" + f" of {planned:.3g}" * (trained < planned - 0.01),
        _seeds(rows),
        f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{60 * minutes:.0f} seconds",
        "; ".join(sorted({row["hardware"] for row in rows})),
    ]


def _has_budget(row, epochs):
    if epochs is None:
        return "budget" not in row
    return row.get("budget", round(row["epochs"], 1)) == float(epochs)


def _column(row):
    return row["corpus"], row["split"]


def _seeds(rows):
    return ", ".join(map(str, sorted({row["seed"] for row in rows})))


def _commits(rows):
    """The first commit of rows whose numbers today's code does not give, and the number of
    others.
    """
    found = list(dict.fromkeys(row["commit"] for row in rows if "stale" in row))
    return f"{found[0]} and {len(found) - 1} more" if len(found) > 1 else "".join(found)


# === Rows and values ===


def row_table(path, *fields):
    """Fields of the objects in a list, a column each.

    Args:
        path: A JSON file and keys in it, as `results/benchmarks/scale.json/synthetic/rows`.
        *fields: Names, `NAME:DIGITS` to round; empty where an object lacks one. `[mean, deviation]`
            is shown as such.
    """
    columns = [re.fullmatch(r"(.*?)(?::(\d))?", field).groups() for field in fields]
    lines = [[_field(row.get(name), digits) for name, digits in columns] for row in _look_up(path)]
    return markdown([name.replace("_", " ") for name, _ in columns], lines)


def value(path, corpus="*", metric=None, split="dev", minus=None, digits="3", times="1", sign=""):
    """One number.

    Args:
        path: See `row_table`, down to the number; or beside a `metric`, shown as its mean over
        corpora, a recipe. corpus, split: Patterns.
        minus: Another recipe, whose score is subtracted.
        digits, times, sign: Decimals, a factor, and `+` for a sign in any case.
    """

    def score(recipe):
        return mean_over_corpora(
            [r for r in select([recipe], corpus, split) if not VARIANTS & r.keys()], metric
        )

    found = score(path) if metric else _look_up(path)
    return number((found - score(minus) if minus else found) * float(times), int(digits), sign)


def _look_up(path):
    file, _, keys = path.partition(".json/")
    found = json.loads((ROOT / f"{file}.json").read_text(encoding="utf-8"))
    for key in keys.split("/"):
        found = found[int(key) if isinstance(found, list) else key]
    return found


def _field(value, digits):
    if isinstance(value, list):
        return " ± ".join(_field(each, digits) for each in value)
    if value is None or isinstance(value, str):
        return value or ""
    if digits:
        return number(value, int(digits))
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


KINDS = {"scores": score_table, "rows": row_table, "value": value}


if __name__ == "__main__":
    flags.DEFINE_bool("check", False, "Change nothing; fail where a page is out of date.")
    cli.run(lambda: write(FLAGS.check))
