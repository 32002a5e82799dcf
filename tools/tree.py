"""The tree of docs/architecture.md: what git tracks, with what each file says of itself."""

import ast
import pathlib
import re
import subprocess

NOTES = {
    ".ci/run": "what CI runs, in a fresh clone",
    ".gitignore": "",
    "LICENSE": "Apache-2.0",
    "Makefile": "the commands of a developer: demo, test, test-all, lint, format",
    "README.md": "where to begin",
    "pyproject.toml": "settings of ruff and pytest",
    "requirements.txt": "what make installs",
    "requirements-chinese.txt": "what the tokenizer jieba needs besides: Chinese by words",
    "results/published.json": "the scores of the papers, with their sources",
}
"""What a file without a docstring is."""
FOLDED = {
    "docs": "this documentation",
    "tests": "test_<folder>_<file>.py for each file; helpers.py; small fixtures",
    "results/measured": "a record per run and split: scores, settings, command, seed, hardware, commit",
    "results/benchmarks": "a record per benchmark",
}
"""Folders whose files the tree does not list."""


def tree(root):
    """The files that git tracks below `root`, as an indented text in a fence.

    Each stands beside the first sentence of its docstring, a folder beside that of its `__init__.py`.

    Raises:
        OSError: where `root` is no git repository.
    """
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise OSError(listed.stderr.strip())
    paths = [pathlib.PurePosixPath(path) for path in listed.stdout.splitlines()]
    lines, seen = [], set()
    for path in sorted(paths, key=lambda path: [(part in path.parts[:-1], part) for part in path.parts]):
        for folder in map(str, reversed(path.parents[:-1])):
            if folder not in seen:
                seen.add(folder)
                about = FOLDED.get(folder) or _about(root, f"{folder}/__init__.py")
                lines.append((folder.count("/"), folder.rpartition("/")[2] + "/", about))
            if folder in FOLDED:
                break
        else:
            if path.name != "__init__.py":
                lines.append((len(path.parts) - 1, path.name, _about(root, str(path))))
    shown = [f"{'    ' * depth}{name}".ljust(35) + f" {about}" for depth, name, about in lines]
    return "\n".join(["```text", *(line.rstrip() for line in shown), "```"])


def _about(root, path):
    """The first sentence of a file's docstring, or its note."""
    if not path.endswith(".py") or not (root / path).is_file():
        return NOTES.get(path, "")
    first = (ast.get_docstring(ast.parse((root / path).read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
    sentence = re.split(r"(?<!et al)\.(?:\s|$)", " ".join(first.split()))[0]
    return sentence if len(sentence) <= 110 else sentence[:107].rpartition(" ")[0] + " ..."
