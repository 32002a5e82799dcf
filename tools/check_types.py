"""Checks the types of `base/`, `data/`, `engine/` and `colloquy/` with mypy.

    python -m colloquy.tools.check_types

In a clone, the rooms of the package `colloquy` lie beside its folder, where mypy cannot find them.
So it gets a folder of links, build/mypy/colloquy, which looks like the installed package.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINKS = ROOT / "build" / "mypy" / "colloquy"
ROOMS = ("base", "data", "engine", "layers", "metrics", "models", "serving", "tasks", "tools")
CHECKED = ("base", "data", "engine", "commands")


def link_rooms():
    """Makes the folder of links."""
    LINKS.mkdir(parents=True, exist_ok=True)
    targets = [ROOT / room for room in ROOMS]
    targets += [path for path in (ROOT / "colloquy").iterdir() if path.name != "__pycache__"]
    for target in targets:
        link = LINKS / target.name
        if not link.is_symlink():
            link.symlink_to(target)


def main():
    link_rooms()
    modules = ("-m", "colloquy", "-m", "colloquy.recipes")
    packages = [f"--package=colloquy.{room}" for room in CHECKED]
    command = [sys.executable, "-m", "mypy", *packages, *modules]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "MYPYPATH": str(LINKS.parent)}, check=False
    )
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
