"""docs/tour.ipynb: its cells run in order, and their outputs are there."""

import json

import pytest
from helpers import ROOT, ran, run_process

TOUR = ROOT / "docs" / "tour.ipynb"


def code_cells():
    cells = json.loads(TOUR.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_the_tour_is_short_and_was_executed():
    cells = code_cells()
    assert len(cells) <= 8
    assert all(cell["outputs"] for cell in cells)
    assert "image/png" in str(cells)


@pytest.mark.slow
def test_the_tour_runs(tmp_path):
    program = tmp_path / "tour.py"
    sources = ["".join(cell["source"]) for cell in code_cells()]
    program.write_text("\n\n".join(sources), encoding="utf-8")
    done = ran(program, by=run_process, MPLBACKEND="Agg", TMPDIR=str(tmp_path))
    assert "dam-chitchat with epochs=1 (run)" in done.stdout
