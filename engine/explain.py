"""Pictures of attention: in the terminal, as PNG and as JSON; the maps are those of
`Predictor.explain`.
"""

import pathlib
import warnings

from rich.text import Text

from colloquy.base.files import UserError, atomic_file
from colloquy.data.text_files import write_json

SHADES = " .:-=+*#%@"  # readable in a terminal without colours, and in a file
CJK_FONTS = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "SimHei",
)
TICK_SIZE, LABEL = 7, 28  # points; characters of a label that are shown
CHARACTER, ROW, COLUMN, TITLE = 0.6 * TICK_SIZE / 72, 0.2, 0.32, 0.35  # inches
WIDTH = 20  # inches of a line of maps without a group
DPI, LARGEST = 100, 30_000  # dots per inch, and the most that a side of a picture may have


def explain_examples(predictor, examples, out, console):
    """Answers examples, `{"title", "instance"}`, and shows the attention of a predictor's model.

    `out` gets `example-N.json`, the answer with all its maps, and `example-N.png`, a panel per map;
    the console prints the maps without their details.
    """
    for number, example in enumerate(examples, 1):
        answer = predictor.explain(example["instance"], details=True)
        if not answer["attention"]:
            raise UserError(f"{example['title']}: this model has no attention to show")
        file = pathlib.Path(out) / f"example-{number}.json"
        write_json(file, {**example, "answer": answer})
        draw(answer["attention"], file.with_suffix(".png"), example["title"])
        console.print(f"\n{example['title']}", style="bold")
        for each in answer["attention"]:
            if "group" not in each:
                console.print(f"\n{each['title']}")
                console.print(heat_map(each), soft_wrap=True)


def heat_map(each):
    """A map as a `rich.text.Text`: the larger a weight, the darker; below 0 it is empty.

    >>> print(heat_map({"rows": ["yes", "no"], "columns": ["a", "bc"], "weights": [[0.0, 1.0], [0.5, 0.5]]}).plain)
        a bc
    yes   @@
     no + ++
    """
    width = max(map(len, each["rows"]))
    largest = max(max(row) for row in each["weights"])
    text = Text(" ".join([" " * width, *each["columns"]]))
    for name, row in zip(each["rows"], each["weights"], strict=True):
        text.append(f"\n{name.rjust(width)}")
        for column, weight in zip(each["columns"], row, strict=True):
            fraction = max(weight, 0.0) / largest if largest > 0 else 0.0
            shade = SHADES[min(round(fraction * len(SHADES)), len(SHADES) - 1)]
            light = round(255 * (1 - fraction))
            text.append(" ")
            text.append(
                shade * len(column),
                style=f"#000000 on rgb({light},{light},255)" if fraction else "",
            )
    return text


def draw(maps, path, title=""):
    """Writes maps as a PNG picture, those of one `group` in one line, in fonts that have the words'
    characters.
    """
    if pathlib.Path(path).suffix != ".png":
        raise UserError(f"expected the name of a .png file. Received: {path}")
    from matplotlib import font_manager, rc_context  # takes a second
    from matplotlib.figure import Figure

    installed = {font.name for font in font_manager.fontManager.ttflist}
    families = [name for name in CJK_FONTS if name in installed]
    lines = _lines([_Panel(each) for each in maps])
    width = max(sum(panel.width for panel in line) for line in lines)
    heights = [max(panel.height for panel in line) for line in lines]
    top = sum(heights)
    height = top + 0.5
    fonts = {
        "font.family": [*families, "DejaVu Sans"],
        "font.size": TICK_SIZE,
        "axes.titlesize": TICK_SIZE + 1,
    }
    with rc_context(fonts):
        figure = Figure(figsize=(width, height), dpi=min(DPI, int(LARGEST / max(width, height))))
        figure.suptitle(title, y=1 - 0.1 / height, va="top", size=TICK_SIZE + 3)
        for line, below in zip(lines, heights, strict=True):
            left = 0.0
            for panel in line:
                panel.draw(figure, left, top)
                left += panel.width
            top -= below
        with atomic_file(path, "wb") as file, warnings.catch_warnings():
            # a character that no installed font has becomes a box
            warnings.filterwarnings("ignore", "Glyph")
            figure.savefig(file, format="png")


def _lines(panels):
    """The panels of each line: as many without a group as have room, then a line per group."""
    lines = []
    for panel in panels:
        last = lines[-1] if lines else []
        fits = panel.group is not None or sum(other.width for other in [*last, panel]) <= WIDTH
        if last and last[-1].group == panel.group and fits:
            last.append(panel)
        else:
            lines.append([panel])
    return lines


class _Panel:
    """A map with its labels; sizes are in inches."""

    def __init__(self, each):
        self.title, self.group, self.weights = each["title"], each.get("group"), each["weights"]
        rows, columns = each["rows"], each["columns"]
        # turned: a passage goes from left to right
        if len(rows) > 2 * len(columns) and max(map(len, rows)) <= LABEL:
            rows, columns, self.weights = columns, rows, list(zip(*self.weights, strict=True))
        self.rows, self.columns = (
            [label[:LABEL] for label in labels] for labels in (rows, columns)
        )
        self.left, bottom = (
            0.2 + CHARACTER * max(map(len, labels)) for labels in (self.rows, self.columns)
        )
        self.width = self.left + max(COLUMN * len(columns), 0.06 * len(self.title)) + 0.2
        self.height = TITLE + ROW * len(rows) + bottom

    def draw(self, figure, left, top):
        """Draws the panel, its upper left corner `left` and `top` inches from the lower left one of
        the figure.
        """
        width, height = figure.get_size_inches()
        C, R = COLUMN * len(self.columns), ROW * len(self.rows)
        axes = figure.add_axes(
            ((left + self.left) / width, (top - TITLE - R) / height, C / width, R / height)
        )
        largest = max(max(row) for row in self.weights)
        axes.imshow(
            self.weights,
            cmap="Blues",
            vmin=0.0,
            vmax=largest if largest > 0 else 1.0,
            aspect="auto",
        )
        axes.set_title(f"{self.title} (at most {largest:.2f})", loc="left")
        axes.set_xticks(range(len(self.columns)), self.columns, rotation=90)
        axes.set_yticks(range(len(self.rows)), self.rows)
        axes.tick_params(length=0)
