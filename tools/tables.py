"""Writes the tables and numbers of README.md and docs/ from results/ and the recipes.

    python -m colloquy.tools.tables            # rewrites the text between markers
    python -m colloquy.tools.tables --check    # changes nothing; fails if a page is out of date

A marker is an HTML comment `KIND: ARGUMENTS`; its text ends at the comment `end`. The functions of
`KINDS` say what they take. Arguments are separated by spaces, and quoted where they hold some;
patterns are those of a shell.
"""

import json
import re
import shlex

from absl import flags

from colloquy.base import cli
from colloquy.base.files import UserError
from colloquy.metrics.published import RESULTS
from colloquy.metrics.tables import markdown, mean_over_corpora, number
from colloquy.tools.page_tables import score_table
from colloquy.tools.score_rows import select_own

FLAGS = flags.FLAGS

ROOT = RESULTS.parent
MARKER = re.compile(r"(<!-- ([a-z]+): ([^\n]*?) -->).*?(<!-- end -->)", re.DOTALL)


def write(check=False):
    """Rewrites the pages that are out of date.

    Args:
        check: Change nothing, and raise a `UserError` instead.
    """
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = str(page.relative_to(ROOT))
        text = page.read_text(encoding="utf-8")
        try:
            rendered = render(text)
        except ValueError as error:
            raise UserError(f"{name}: {error}") from error
        if rendered == text:
            continue
        stale.append(name)
        if not check:
            page.write_text(rendered, encoding="utf-8")
    if stale and check:
        raise UserError(f"out of date: {', '.join(stale)}; run: python -m colloquy.tools.tables")
    print("\n".join(stale) or "up to date")


def render(text):
    """Fills the markers of a page; a `ValueError` quotes a wrong marker."""
    return MARKER.sub(_fill_marker, text)


def _fill_marker(match):
    begin, kind, arguments, end = match.groups()
    positional = []
    options = {}
    for word in shlex.split(arguments):
        name, equals, option = word.partition("=")
        if equals:
            options[name] = option
        else:
            positional.append(word)
    try:
        if kind not in KINDS:
            raise ValueError(f"expected one of {', '.join(KINDS)}")
        content = KINDS[kind](*positional, **options)
    except (TypeError, ValueError, LookupError, OSError) as error:
        raise ValueError(f"{begin}: {error}") from error
    if kind == "value":  # within a sentence
        return f"{begin}{content}{end}"
    return f"{begin}\n{content}\n{end}"


# === Rows and values ===


def row_table(path, *fields):
    """Makes a table of the objects in a list: a line per object, a column per field.

    Args:
        path: A JSON file and keys in it, as `results/benchmarks/scale.json/synthetic/rows`.
        *fields: Names, `NAME:DIGITS` to round; empty where an object lacks one.
    """
    columns = [re.fullmatch(r"(.*?)(?::(\d))?", field).groups() for field in fields]
    header = [name.replace("_", " ") for name, _ in columns]
    lines = []
    for row in _look_up(path):
        lines.append([_field(row.get(name), digits) for name, digits in columns])
    return markdown(header, lines)


def value(path, corpus="*", metric=None, digits="3", times="1"):
    """Formats one number.

    Args:
        path: A path down to a number, see `row_table`. With a `metric`, a recipe: the number is the
            mean of its scores of dev over corpora.
        corpus: Pattern.
        metric: Name of a metric.
        digits: Decimals.
        times: A factor.
    """
    if metric:
        shown = mean_over_corpora(select_own(path, corpus), metric)
    else:
        shown = _look_up(path)
    return number(shown * float(times), int(digits))


def _look_up(path):
    file, _, keys = path.partition(".json/")
    content = json.loads((ROOT / f"{file}.json").read_text(encoding="utf-8"))
    for key in keys.split("/"):
        content = content[int(key) if isinstance(content, list) else key]
    return content


def _field(content, digits):
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if digits:
        return number(content, int(digits))
    if abs(content) >= 100 or content == int(content):
        return f"{content:,.0f}"
    return f"{content:.3g}"


KINDS = {"scores": score_table, "rows": row_table, "value": value}


if __name__ == "__main__":
    flags.DEFINE_bool("check", False, "Change nothing; fail where a page is out of date.")
    cli.run(lambda: write(FLAGS.check))
