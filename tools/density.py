"""Prints how dense the code is: nodes of the syntax tree per line of code, by room.

python -m colloquy.tools.density            # every room, the ten densest files and functions
python -m colloquy.tools.density --tests    # and the tests

A line of code is neither blank, nor a comment, nor part of a docstring.
"""

import ast
import pathlib
from typing import NamedTuple

from absl import flags

from colloquy.base import cli
from colloquy.metrics.tables import markdown

FLAGS = flags.FLAGS
ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = (
    "base data engine layers metrics models serving tasks/dialog tasks/generation "
    "tasks/reading_comprehension tasks/selection tools benchmarks colloquy"
).split()
WIDTH = 100
"""Columns of a line."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SHORTEST = 10
"""Lines of code that a file or function needs to be among the densest."""


class Density(NamedTuple):
    """Counts over one or several pieces of code."""

    nodes: int
    lines: int
    comprehensions: int
    wide: int

    def row(self, name):
        """Returns the cells of a table."""
        lines = max(self.lines, 1)
        return [
            name,
            f"{self.nodes:,}",
            f"{self.lines:,}",
            f"{self.nodes / lines:.1f}",
            f"{100 * self.comprehensions / lines:.1f}",
            str(self.wide),
        ]


HEADER = ["", "nodes", "lines", "nodes per line", "comprehensions per 100", "wide lines"]


def main():
    paths_by_room = {"scripts": sorted(ROOT.glob("*.py"))}
    for room in ROOMS:
        paths_by_room[room] = sorted((ROOT / room).rglob("*.py"))
    if FLAGS.tests:
        paths_by_room["tests"] = sorted((ROOT / "tests").rglob("*.py"))

    rows = []
    files = {}
    functions = {}
    for room, paths in paths_by_room.items():
        densities = []
        for path in paths:
            name = str(path.relative_to(ROOT))
            text = path.read_text(encoding="utf-8")
            files[name] = measure(text)
            densities.append(files[name])
            functions.update(measure_functions(name, text))
        rows.append(add(densities).row(room))
    rows.append(add(files.values()).row("all"))
    print(markdown(HEADER, rows))
    print_densest("The densest files", files)
    print_densest("The densest functions", functions)


def print_densest(title, densities, count=10):
    long_enough = []
    for name, density in densities.items():
        if density.lines >= SHORTEST:
            long_enough.append((density.nodes / density.lines, name))
    long_enough.sort(reverse=True)
    rows = [densities[name].row(name) for _, name in long_enough[:count]]
    print(f"\n{title}\n\n{markdown(HEADER, rows)}")


def measure(text):
    """Returns the `Density` of the text of a file or a function."""
    tree = ast.parse(text)
    docstring_lines = set()
    nodes = 0
    comprehensions = 0
    for node in ast.walk(tree):
        nodes += 1
        comprehensions += isinstance(node, COMPREHENSIONS)
        if _is_docstring(node):
            docstring_lines.update(range(node.lineno, node.end_lineno + 1))
    lines = 0
    wide = 0
    for number, line in enumerate(text.splitlines(), 1):
        wide += len(line) > WIDTH
        is_comment = line.strip().startswith("#")
        if line.strip() and not is_comment and number not in docstring_lines:
            lines += 1
    return Density(nodes, lines, comprehensions, wide)


def measure_functions(path, text):
    """Returns `{"path:line name": Density}` of the functions of a file."""
    densities = {}
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            indent = " " * node.col_offset
            source = "if True:\n" + body if indent else body
            densities[f"{path}:{node.lineno} {node.name}"] = measure(source)
    return densities


def add(densities):
    """Returns the sums of several densities."""
    return Density(*(sum(counts) for counts in zip(*densities, strict=True)))


def _is_docstring(node):
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


if __name__ == "__main__":
    flags.DEFINE_bool("tests", False, "Measure the tests too.")
    cli.run(main)
