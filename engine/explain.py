"""Pictures of attention, as PNG.

A map is a dict `{"title", "rows", "columns", "weights"}`, with a `group` if others belong beside
it, see `engine.predictor.Predictor.explain`.
"""

import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from colloquy.base.files import PathLike, UserError, atomic_file, refuse_existing

CJK_FONTS = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "SimHei",
)
TICK_SIZE = 7  # points
LABEL_LENGTH = 28  # characters of a label that are shown
DOTS_PER_INCH = 100
MAX_DOTS = 30_000  # of a side of a picture

# Inches.
CHARACTER_WIDTH = 0.6 * TICK_SIZE / 72
ROW_HEIGHT = 0.2
COLUMN_WIDTH = 0.32
TITLE_HEIGHT = 0.35
PAGE_WIDTH = 9  # of a line of maps


def explain_examples(
    predictor: Any, examples: list[dict], out: PathLike, names: Sequence[str] = ()
) -> None:
    """Draws the attention of a predictor's model on examples, `{"title", "instance"}`.

    Writes `example-N.png` into the directory `out` for each example, with a panel for each map.
    With `names`, such as `M_cross 2`, only the maps whose titles end in one of them are drawn.
    """
    files = [pathlib.Path(out) / f"example-{number}.png" for number in range(1, len(examples) + 1)]
    for file in files:
        refuse_existing(file)
    for file, example in zip(files, examples, strict=True):
        maps = predictor.explain(example["instance"], details=True)["attention"]
        if not maps:
            raise UserError(f"{example['title']}: this model has no attention to show")
        if names:
            maps = _choose(maps, names)
        draw(maps, file, example["title"])
        print(f"{file}: {example['title']}")


def _choose(maps, names):
    """Returns the maps whose titles end in one of some names."""
    chosen = [attention for attention in maps if attention["title"].endswith(tuple(names))]
    if not chosen:
        known = dict.fromkeys(attention["title"].rpartition(": ")[2] for attention in maps)
        raise UserError(f"maps: expected some of {', '.join(known)}. Received: {', '.join(names)}")
    return chosen


def draw(maps: list[dict], path: PathLike, title: str = "") -> None:
    """Writes maps as a PNG picture, a panel each.

    Maps of one `group` that follow each other share a line of at most `PAGE_WIDTH` inches, as do
    maps without a group. A wider map has a line of its own.
    """
    if pathlib.Path(path).suffix != ".png":
        raise UserError(f"expected the name of a .png file. Received: {path}")
    # Importing matplotlib takes a second, so only drawing does it.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    lines = _arrange([_Panel(attention) for attention in maps])
    width = max(_total_width(line) for line in lines)
    heights = [max(panel.height for panel in line) for line in lines]
    top = sum(heights)
    height = top + 0.5
    dots_per_inch = min(DOTS_PER_INCH, int(MAX_DOTS / max(width, height)))
    settings: dict[Any, Any] = {
        # Labels are texts of users: "$5 or $6" is no formula.
        "text.parse_math": False,
        "font.family": [*_installed_fonts(), "DejaVu Sans"],
        "font.size": TICK_SIZE,
        "axes.titlesize": TICK_SIZE + 1,
    }
    with rc_context(settings):
        figure = Figure(figsize=(width, height), dpi=dots_per_inch)
        figure.suptitle(title, y=1 - 0.1 / height, va="top", size=TICK_SIZE + 3)
        for line, line_height in zip(lines, heights, strict=True):
            left = 0.0
            for panel in line:
                panel.draw(figure, left, top)
                left += panel.width
            top -= line_height
        with atomic_file(path, "wb") as file, warnings.catch_warnings():
            # A character that no installed font has becomes a box.
            warnings.filterwarnings("ignore", "Glyph")
            figure.savefig(file, format="png")


def _installed_fonts():
    from matplotlib import font_manager

    installed = font_manager.get_font_names()
    return [name for name in CJK_FONTS if name in installed]


def _arrange(panels):
    """Puts panels in lines: a line has panels of one group, as many as `PAGE_WIDTH` allows."""
    lines = []
    for panel in panels:
        is_one_group = bool(lines) and lines[-1][-1].group == panel.group
        if is_one_group and _total_width([*lines[-1], panel]) <= PAGE_WIDTH:
            lines[-1].append(panel)
        else:
            lines.append([panel])
    return lines


def _total_width(panels):
    return sum(panel.width for panel in panels)


class _Panel:
    """A map with its labels; sizes are in inches."""

    def __init__(self, attention):
        self.group = attention.get("group")
        self.weights = np.array(attention["weights"])
        self.largest = self.weights.max()
        self.title = f"{attention['title']} (largest {self.largest:.2f})"
        self.rows = [row[:LABEL_LENGTH] for row in attention["rows"]]
        self.columns = [column[:LABEL_LENGTH] for column in attention["columns"]]
        # A map with many more rows than columns is turned, so that a passage is read from left to
        # right. Long labels of rows, such as sentences, stay: as columns they would be vertical.
        is_long = len(self.rows) > 2 * len(self.columns)
        has_short_labels = max(len(row) for row in attention["rows"]) <= LABEL_LENGTH
        if is_long and has_short_labels:
            self.rows, self.columns = self.columns, self.rows
            self.weights = self.weights.T
        self.left = _label_length(self.rows)
        map_width = max(COLUMN_WIDTH * len(self.columns), 0.06 * len(self.title))
        self.width = self.left + map_width + 0.2
        self.height = TITLE_HEIGHT + ROW_HEIGHT * len(self.rows) + _label_length(self.columns)

    def draw(self, figure, left, top):
        """Draws the panel, its upper left corner `left` and `top` inches from the lower left
        corner of the figure.
        """
        num_rows, num_columns = self.weights.shape
        height = ROW_HEIGHT * num_rows
        bottom = top - TITLE_HEIGHT - height
        # `add_axes` takes fractions of the figure's width and height.
        corner_and_size = np.array([left + self.left, bottom, COLUMN_WIDTH * num_columns, height])
        axes = figure.add_axes(corner_and_size / np.tile(figure.get_size_inches(), 2))
        # A negative weight is as light as 0.
        darkest = self.largest if self.largest > 0 else 1.0
        axes.imshow(self.weights, cmap="Blues", vmin=0.0, vmax=darkest, aspect="auto")
        axes.set_title(self.title, loc="left")
        axes.set_xticks(range(len(self.columns)), self.columns, rotation=90)
        axes.set_yticks(range(len(self.rows)), self.rows)
        axes.tick_params(length=0)


def _label_length(labels):
    """The inches that the longest label needs, with a margin."""
    return 0.2 + CHARACTER_WIDTH * max(len(label) for label in labels)
