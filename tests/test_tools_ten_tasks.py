"""`tools.ten_tasks`: MEMMA against others as in figure 5 and table 1 of its article."""

import json

import numpy as np
import pytest
from matplotlib.image import imread

from metrics.published import PUBLISHED
from tools import ten_tasks


@pytest.fixture
def measured(tmp_path):
    """Records of MEMMA with features on all tasks, two seeds on task 1; of MEMR on task 6 alone."""

    def write(recipe, task, seed, split, value):
        name = f"{recipe}-task{task}-{seed}-{split}.json"
        found = {"name": recipe, "corpus": f"babi-task{task}", "split": split, "metrics": {"per_response": value}}
        (tmp_path / "babi" / name).write_text(json.dumps(found), encoding="utf-8")

    (tmp_path / "babi").mkdir()
    for task in range(1, 6):
        for split in ("dev", "dev-oov"):
            write("babi-memma", task, 1, split, task / 10 + 0.05 * (split == "dev-oov"))
    write("babi-memma", 1, 2, "dev", 0.3)
    write("babi-memma", 6, 1, "dev", 0.75)
    write("babi-memr", 6, 1, "dev", 0.5)
    return tmp_path


def test_bars_are_means_over_seeds_and_the_ten(measured):
    found = ten_tasks.bars(measured, "babi-memma")
    assert list(found) == [*(f"T{n}" for n in range(1, 6)), *(f"T{n}-OOV" for n in range(1, 6)), "T6", "mean\nof ten"]
    assert found["T1"] == pytest.approx((20.0, 100 * 0.2 / 2**0.5)) and found["T3-OOV"] == pytest.approx((35.0, 0.0))
    assert found["mean\nof ten"] == pytest.approx((10 * (2 + 2 + 3 + 4 + 5 + 1.5 + 2.5 + 3.5 + 4.5 + 5.5) / 10, 0.0))
    assert ten_tasks.bars(measured, "babi-memr") == {"T6": (50.0, 0.0)}
    assert ten_tasks.bars(measured, "babi-memma-plain") == {}


def test_differences_stand_beside_the_published_ones(measured):
    lines = ten_tasks.table(measured, json.loads(PUBLISHED.read_text(encoding="utf-8"))).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert cells[1] == [
        "tasks 1 to 5, dev and dev-oov", "MEMMA, speaker + time - MEMR, speaker + time", "33.5", "", "", "+1.46"
    ]  # fmt: skip
    assert cells[4][0] == "task 6, dev" and cells[4][2:] == ["75.0", "50.0", "+25.00", "+2.60"]
    assert cells[0][2:] == ["", "", "", "+1.65"]


def test_the_bars_are_drawn(measured, tmp_path):
    ten_tasks.draw(measured, tmp_path / "a.png")
    picture = imread(tmp_path / "a.png")[..., :3]
    right = picture[:, picture.shape[1] // 2 :]
    heights = {}
    for name, color in (("MEMMA", (31, 119, 180)), ("MEMR", (255, 127, 14))):
        drawn = np.abs(255 * right - np.array(color)).max(axis=2) < 3
        drawn[:60] = False  # the legend
        columns = drawn.sum(axis=0)
        starts = (columns[1:] > 3) & (columns[:-1] <= 3)
        heights[name] = int(starts.sum()), int(columns.max())
    assert heights["MEMMA"][0] == 12 and heights["MEMR"][0] == 1
    assert heights["MEMMA"][1] / heights["MEMR"][1] == pytest.approx(1.5, abs=0.03)
