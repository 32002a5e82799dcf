"""Mutation testing: changes operators and numbers in a copy of the project and runs the tests.

    python -m tests.mutations --count=20 metrics/ranking.py:tests/test_metrics_ranking.py

Each argument is FILE:TESTS. A mutation that no test notices has survived and is listed at the end.
"""

import argparse
import ast
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOT_COPIED = shutil.ignore_patterns(".*", "build", "runs", "results", "docs", "__pycache__")
SECONDS = 600  # longer tests were sent into an endless loop, and so noticed the mutation
OPERATORS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def mutable_nodes(tree):
    """Lists the nodes that `mutate` can change, always in the same order."""
    return [node for node in ast.walk(tree) if is_mutable(node)]


def is_mutable(node):
    if isinstance(node, ast.Constant):
        return type(node.value) in (bool, int, float)
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in OPERATORS
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return type(node.op) in OPERATORS
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def mutate(source, index):
    """Returns the source with one of its `mutable_nodes` changed, and a line that describes it."""
    tree = ast.parse(source)
    node = mutable_nodes(tree)[index]
    before = ast.unparse(node)
    if isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Compare):
        node.ops[0] = OPERATORS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
        node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
    else:
        node.op = OPERATORS[type(node.op)]()
    return ast.unparse(tree), f"line {node.lineno}: {before} -> {ast.unparse(node)}"


def is_noticed(copy, tests):
    """Runs test files in the copy and returns whether one of the tests fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def find_survivors(copy, file, tests, count, generator):
    """Makes `count` mutations of a file, one at a time, and describes those that pass the tests."""
    if is_noticed(copy, tests):
        sys.exit(f"{', '.join(tests)} fails without a mutation")
    path = copy / file
    source = path.read_text(encoding="utf-8")
    indices = range(len(mutable_nodes(ast.parse(source))))
    survivors = []
    for index in generator.sample(indices, k=min(count, len(indices))):
        mutated, description = mutate(source, index)
        path.write_text(mutated, encoding="utf-8")
        noticed = is_noticed(copy, tests)
        print("noticed " if noticed else "SURVIVED", file, description, flush=True)
        if not noticed:
            survivors.append(f"{file}, {description}")
    path.write_text(source, encoding="utf-8")
    return survivors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10, help="Mutations per file.")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the choice of nodes.")
    parser.add_argument(
        "pairs", nargs="+", metavar="FILE:TESTS", help="TESTS: separated by commas."
    )
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    survivors = []
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory) / "copy"
        shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
        for pair in arguments.pairs:
            file, _, tests = pair.partition(":")
            survivors += find_survivors(copy, file, tests.split(","), arguments.count, generator)
    print(f"{len(survivors)} survivors", *survivors, sep="\n")


if __name__ == "__main__":
    main()
