"""Pictures of attention: in the terminal, as PNG and as JSON.

A map is one of `Predictor.explain`.
"""

import pathlib
import warnings
from collections.abc import Iterable
from typing import Any

from rich.text import Text

from colloquy.base.config import Config
from colloquy.base.files import PathLike, UserError, atomic_file, refuse_existing
from colloquy.data.text_files import write_json

SHADES = " .:-=+*#%@"  # readable in a terminal without colours, and in a file
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
    predictor: Any,
    examples: list[dict],
    out: PathLike,
    console: Any,
    names: Iterable[str] = (),
) -> None:
    """Answers examples, `{"title", "instance"}`, and shows the attention of a predictor's model.

    `out` gets `example-N.json`, the answer with all its maps, and `example-N.png`, a panel per map;
    the console prints the maps without their details. With `names`, such as `M_cross 2`, both show
    the maps whose titles end in one of them.
    """
    files = [pathlib.Path(out) / f"example-{number}.json" for number in range(1, len(examples) + 1)]
    for file in files:
        refuse_existing(file)
        refuse_existing(file.with_suffix(".png"))
    for file, example in zip(files, examples, strict=True):
        answer = predictor.explain(example["instance"], details=True)
        if not answer["attention"]:
            raise UserError(f"{example['title']}: this model has no attention to show")
        instance = example["instance"]
        if isinstance(instance, Config):
            instance = instance.to_json()
        write_json(file, {**example, "instance": instance, "answer": answer})
        maps = answer["attention"]
        if names:
            maps = _choose(maps, names)
        draw(maps, file.with_suffix(".png"), example["title"])
        console.print(f"\n{example['title']}", style="bold")
        for attention in maps:
            if "group" not in attention:
                console.print(f"\n{attention['title']}")
                console.print(heat_map(attention), soft_wrap=True)


def _choose(maps, names):
    """Returns the maps whose titles end in one of some names, without their groups."""
    chosen = []
    for attention in maps:
        if attention["title"].endswith(tuple(names)):
            chosen.append({key: attention[key] for key in attention if key != "group"})
    if not chosen:
        known = dict.fromkeys(attention["title"].rpartition(": ")[2] for attention in maps)
        raise UserError(f"maps: expected some of {', '.join(known)}. Received: {', '.join(names)}")
    return chosen


def heat_map(attention: dict) -> Text:
    """A map as a `rich.text.Text`: the larger a weight, the darker; below 0 it is empty.

    >>> weights = [[0.0, 1.0], [0.5, 0.5]]
    >>> print(heat_map({"rows": ["yes", "no"], "columns": ["a", "bc"], "weights": weights}).plain)
        a bc
    yes   @@
     no + ++
    """
    rows = attention["rows"]
    columns = attention["columns"]
    width = max(len(row) for row in rows)
    largest = _largest(attention["weights"])
    text = Text(" ".join([" " * width, *columns]))
    for row, weights in zip(rows, attention["weights"], strict=True):
        text.append(f"\n{row.rjust(width)}")
        for column, weight in zip(columns, weights, strict=True):
            fraction = max(weight, 0.0) / largest if largest > 0 else 0.0
            text.append(" ")
            text.append(_shade(fraction) * len(column), style=_style(fraction))
    return text


def _largest(weights):
    return max(max(row) for row in weights)


def _shade(fraction):
    """The character of a weight, as a fraction of the largest one."""
    number = round(fraction * len(SHADES))
    return SHADES[min(number, len(SHADES) - 1)]


def _style(fraction):
    """Black on blue: the larger the fraction, the darker."""
    if not fraction:
        return ""
    light = round(255 * (1 - fraction))
    return f"#000000 on rgb({light},{light},255)"


def draw(maps: list[dict], path: PathLike, title: str = "") -> None:
    """Writes maps as a PNG picture, in lines of at most `PAGE_WIDTH` inches and of one `group`.

    A wider map has a line of its own. The fonts are those that have the words' characters.
    """
    if pathlib.Path(path).suffix != ".png":
        raise UserError(f"expected the name of a .png file. Received: {path}")
    from matplotlib import font_manager, rc_context  # takes a second
    from matplotlib.figure import Figure

    lines = _arrange([_Panel(attention) for attention in maps])
    width = max(_total_width(line) for line in lines)
    heights = [max(panel.height for panel in line) for line in lines]
    top = sum(heights)
    height = top + 0.5
    dots_per_inch = min(DOTS_PER_INCH, int(MAX_DOTS / max(width, height)))

    installed = {font.name for font in font_manager.fontManager.ttflist}
    families = [name for name in CJK_FONTS if name in installed]
    fonts: dict[Any, Any] = {
        "font.family": [*families, "DejaVu Sans"],
        "font.size": TICK_SIZE,
        "axes.titlesize": TICK_SIZE + 1,
    }
    with rc_context(fonts):
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


def _arrange(panels):
    """Puts panels in lines: as many of one group as have room."""
    lines = []
    for panel in panels:
        if lines and _fits(lines[-1], panel):
            lines[-1].append(panel)
        else:
            lines.append([panel])
    return lines


def _fits(line, panel):
    is_one_group = line[-1].group == panel.group
    return is_one_group and _total_width([*line, panel]) <= PAGE_WIDTH


def _total_width(panels):
    return sum(panel.width for panel in panels)


class _Panel:
    """A map with its labels; sizes are in inches."""

    def __init__(self, attention):
        rows = attention["rows"]
        columns = attention["columns"]
        self.title = attention["title"]
        self.group = attention.get("group")
        self.weights = attention["weights"]
        # Much longer than wide, it is turned: a passage goes from left to right.
        is_long = len(rows) > 2 * len(columns)
        if is_long and max(len(row) for row in rows) <= LABEL_LENGTH:
            rows, columns = columns, rows
            self.weights = list(zip(*self.weights, strict=True))
        self.rows = [row[:LABEL_LENGTH] for row in rows]
        self.columns = [column[:LABEL_LENGTH] for column in columns]

        self.left = _label_length(self.rows)
        map_width = max(COLUMN_WIDTH * len(columns), 0.06 * len(self.title))
        self.width = self.left + map_width + 0.2
        self.height = TITLE_HEIGHT + ROW_HEIGHT * len(rows) + _label_length(self.columns)

    def draw(self, figure: Any, left: Any, top: Any) -> None:
        """Draws the panel.

        Its upper left corner is `left` and `top` inches from the lower left one of the figure.
        """
        figure_width, figure_height = figure.get_size_inches()
        width = COLUMN_WIDTH * len(self.columns)
        height = ROW_HEIGHT * len(self.rows)
        bottom = top - TITLE_HEIGHT - height
        rectangle = (
            (left + self.left) / figure_width,
            bottom / figure_height,
            width / figure_width,
            height / figure_height,
        )
        axes = figure.add_axes(rectangle)
        largest = _largest(self.weights)
        darkest = largest if largest > 0 else 1.0
        axes.imshow(self.weights, cmap="Blues", vmin=0.0, vmax=darkest, aspect="auto")
        axes.set_title(f"{self.title} (at most {largest:.2f})", loc="left")
        axes.set_xticks(range(len(self.columns)), self.columns, rotation=90)
        axes.set_yticks(range(len(self.rows)), self.rows)
        axes.tick_params(length=0)


def _label_length(labels):
    """Inches that the longest of some labels takes, with a margin."""
    return 0.2 + CHARACTER_WIDTH * max(len(label) for label in labels)
