"""Writes the tables and numbers of README.md and docs/ from results/, recipes and docstrings.

    python -m tools.tables          # rewrites what stands between the markers
    python -m tools.tables --check  # changes nothing; exit code 1 and the names of the pages that are out of date

A marker is a comment of HTML, `KIND: ARGUMENTS`, and what it makes ends at the comment `end`. The functions of `KINDS`
say what each makes and takes; arguments are separated by spaces, and quoted where they hold some.
"""

import collections
import json
import re
import shlex

from absl import flags

from base import cli
from base.files import UserError
from metrics.names import record_name
from metrics.published import PUBLISHED, published
from metrics.tables import read_record
from tools import benchmark_tables, markdown, model_tables, ten_tasks
from tools.model_tables import MEASURED, ROOT

BENCHMARKS = ROOT / "results" / "benchmarks"
MARKER = re.compile(
    r"(?P<begin><!-- (?P<kind>[a-z-]+)(?:: (?P<arguments>[^\n]*?))? -->)(?P<body>.*?)(?P<end><!-- end -->)", re.DOTALL
)


def pages():
    """README.md and the pages of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def render(text):
    """A page's text with what stands between its markers made anew.

    Raises:
        ValueError: for a marker that cannot be rendered; the message quotes it.
    """

    def fill(match):
        if match["kind"] not in KINDS:
            raise ValueError(f"{match['begin']}: expected one of {', '.join(KINDS)}")
        words = shlex.split(match["arguments"] or "")
        options = dict(word.split("=", 1) for word in words if "=" in word)
        try:
            made = KINDS[match["kind"]](*[word for word in words if "=" not in word], **options)
        except (TypeError, ValueError, LookupError, OSError) as error:
            raise ValueError(f"{match['begin']}: {error}") from error
        line = "" if match["kind"] == "value" else "\n"
        return f"{match['begin']}{line}{made}{line}{match['end']}"

    return MARKER.sub(fill, text)


def measured(corpus=None, files="*"):
    """The records of results/measured, for one corpus or all, in the order of their file names; `files`: a pattern of
    these, from results/measured on."""
    paths = [path for path in sorted(MEASURED.rglob("*.json")) if path.relative_to(MEASURED).match(files)]
    records = [read_record(path) for path in paths]
    return [record for record in records if corpus in (None, record["corpus"])]


# === What markers make ===


def _table(corpus, epochs=None, only="", without="", published="", files="*"):
    """`table: CORPUS`: all its measured rows. `epochs=N`: the best validation within the first N epochs, of runs that
    had as many, so that models stand side by side at equal budgets; ensembles have no validations. `only=TEXT`,
    `without=TEXT`: rows whose name has that text, or lacks it. `files=PATTERN`: of records in such files of
    results/measured. `published="PATTERN; PATTERN"`: rows of published.json, see `tools.markdown.chosen`."""
    records = _named(corpus, only, without, files)
    if epochs:
        limit = float(epochs)
        alone = [record for record in records if "seeds" not in record]
        records = [markdown.within(record, limit) for record in alone if record["epochs"] > limit - 0.01]
    if not records:
        raise ValueError("no measured record is like this")
    return markdown.table(records, markdown.chosen(_published(corpus), published))


def _named(corpus, only="", without="", files="*"):
    """The measured records of a corpus whose name has the text `only`, and lacks the text `without` unless it is ""."""
    named = [(record_name(record), record) for record in measured(corpus, files)]
    return [record for name, record in named if only in name and not (without and without in name)]


def _published(corpus):
    return [row for row in published(corpus) if row["metrics"]]


def _curve(corpus, steps=None, only="", without=""):
    """`curve: CORPUS`: each validation of its longest run. `steps=N,N`: those, beside a published curve if any.
    `only=TEXT`, `without=TEXT`: of runs whose name has that text, or lacks it."""
    alone = [record for record in _named(corpus, only, without) if "seeds" not in record]
    longest = max(alone, key=lambda record: record["epochs"])
    if not steps:
        return markdown.curve(longest)
    others = [row for row in published(corpus) if "curve" in row]
    return markdown.curve(longest, [int(step) for step in steps.split(",")], others)


def _samples(corpus, only=""):
    """`samples: CORPUS`: replies of its records. `only=TEXT`: of those whose name has that text."""
    return markdown.samples([record for record in _named(corpus, only) if record.get("samples")])


def _dialog(split):
    """`dialog: SPLIT`: the bAbI tasks as columns, of what was measured on each of tasks 1 to 5."""
    records = [record for record in _babi() if record["split"] == split]
    found = collections.defaultdict(set)
    for record in records:
        found[record_name(record)].add(record["corpus"])
    every = {f"babi-task{task}" for task in range(1, 6)}
    return markdown.dialog_table([record for record in records if found[record_name(record)] >= every])


def _dialog_task(corpus, only=""):
    """`dialog-task: CORPUS`: dev and dev-oov as columns. `only="TEXT; TEXT"`: rows whose name has one of these."""
    names = only.split("; ")
    records = [record for record in _babi() if record["corpus"] == corpus]
    records = [record for record in records if any(name in record_name(record) for name in names)]
    return markdown.dialog_table([{**record, "baselines": {}, "upper_bounds": {}} for record in records])


def _babi():
    return [r for r in measured() if r.get("task") == "dialog" and r["corpus"].startswith("babi-")]


def _published_dialogs(split):
    """`published-dialogs: SPLIT`: what others published on the six tasks."""
    rows = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    rows = [row for row in rows if row["task"] == "dialog" and row["split"] == split and row["metrics"]]
    return markdown.dialog_table([{**row, "name": row["model"], "seed": None} for row in rows])


def _ten_tasks():
    """`ten-tasks`: MEMMA against others as its article compares them: means over tasks 1 to 5 on dev and dev-oov, which
    stand in for its ten test sets, and task 6."""
    return ten_tasks.table(MEASURED, json.loads(PUBLISHED.read_text(encoding="utf-8")))


def _benchmark(name):
    return json.loads((BENCHMARKS / f"{name}.json").read_text(encoding="utf-8"))


def _speed(name):
    """`speed: NAME`: a benchmark of several sides, results/benchmarks/NAME.json."""
    return benchmark_tables.speed(_benchmark(name)["rows"])


def _sides(name):
    """`sides: NAME`: a benchmark of two sides, results/benchmarks/NAME.json."""
    return benchmark_tables.sides(_benchmark(name))


def _iterations(name):
    """`iterations: NAME`: how long 200 training steps take, by results/benchmarks/NAME.json."""
    return benchmark_tables.iterations(_benchmark(name))


def _rows(name, *fields):
    """`rows: NAME FIELD FIELD`: fields of the rows of results/benchmarks/NAME.json, a column each; of other rows of it:
    `NAME.ROWS`."""
    name, _, rows = name.partition(".")
    return benchmark_tables.fields_table(_benchmark(name)[rows or "rows"], fields)


def _groups(name, *metrics):
    """`groups: NAME METRIC METRIC`: what tools.analyses found by groups, results/analyses/NAME.json."""
    found = json.loads((ROOT / "results" / "analyses" / f"{name}.json").read_text(encoding="utf-8"))
    return benchmark_tables.groups(found, metrics)


def _value(path, *keys, digits="3", times="1"):
    """`value: FILE KEY KEY`: one number of results/FILE.json, `times` a factor, with so many `digits`."""
    found = json.loads((ROOT / "results" / f"{path}.json").read_text(encoding="utf-8"))
    for key in keys:
        found = found[int(key) if isinstance(found, list) else key]
    return markdown.number(found * float(times), int(digits))


KINDS = {
    "table": _table,
    "ten-tasks": _ten_tasks,
    "curve": _curve,
    "samples": _samples,
    "dialog": _dialog,
    "dialog-task": _dialog_task,
    "published-dialogs": _published_dialogs,
    "speed": _speed,
    "sides": _sides,
    "iterations": _iterations,
    "rows": _rows,
    "groups": _groups,
    "models": model_tables.models,
    "pretrained": model_tables.pretrained,
    "recipes": model_tables.recipes,
    "value": _value,
}

flags.DEFINE_bool("check", False, "Change nothing; fail where a page is out of date.")


def _shown(page):
    return str(page.relative_to(ROOT))


def main():
    stale = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        try:
            made = render(text)
        except ValueError as error:
            raise UserError(f"{_shown(page)}: {error}") from error
        if made != text:
            stale.append(_shown(page))
            if not flags.FLAGS["check"].value:
                page.write_text(made, encoding="utf-8")
    if stale and flags.FLAGS["check"].value:
        raise UserError(f"out of date: {', '.join(stale)}; run: python -m tools.tables")
    print("\n".join(stale) or "up to date")


if __name__ == "__main__":
    cli.run(main)
