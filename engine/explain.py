"""Pictures of what a model attended to: in the terminal, as PNG and as JSON; the maps are those of `Predictor.explain`.

Letters: R rows   C columns of a map
"""

import json
import pathlib
import warnings

from rich.text import Text

from base.files import UserError, atomic_file, check_output

SHADES = " .:-=+*#%@"  # readable where a terminal has no colours, and in a file
CJK_FONTS = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "Noto Sans CJK JP",
    "Noto Serif CJK JP",
    "WenQuanYi Zen Hei",
    "SimHei",
)
INCHES_PER_ROW, INCHES_PER_COLUMN = 0.2, 0.32
TICK_SIZE, LABEL = 7, 28  # points; characters of a label that are shown
WIDTH = 20  # inches of a line of maps without a group
DPI, LARGEST = 100, 30_000  # dots per inch, and the most that a side of a picture may have


def explain_examples(predictor, examples, out, console):
    """Answers examples and shows what the model attended to.

    Args:
        predictor: A `engine.predictor.Predictor`.
        examples: List of `{"title", "instance"}`.
        out: Directory; gets `example-N.json`, the answer with all its maps, and `example-N.png`, a panel per map.
        console: A `rich.console.Console` that prints the maps without their details.

    Raises:
        UserError: where the model has no attention, or a file cannot be written.
    """
    out = pathlib.Path(out)
    for number, example in enumerate(examples, 1):
        answer = predictor.explain(example["instance"], details=True)
        if not answer["attention"]:
            raise UserError(f"{example['title']}: this model has no attention to show")
        check_output(out / f"example-{number}.json")
        with atomic_file(out / f"example-{number}.json") as file:
            json.dump({**example, "answer": answer}, file, indent=1, ensure_ascii=False)
        draw(answer["attention"], out / f"example-{number}.png", example["title"])
        console.print(f"\n{example['title']}", style="bold")
        for each in answer["attention"]:
            if "group" not in each:
                console.print(f"\n{each['title']}")
                console.print(heat_map(each), soft_wrap=True)


def heat_map(each):
    """A map as text: darker where a weight is larger, the largest is the darkest; below 0 it stays empty.

    Args:
        each: `{"rows", "columns", "weights"}`, see `engine.predictor.Predictor.explain`.

    Returns:
        A `rich.text.Text`.

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
            text.append(shade * len(column), style=f"#000000 on rgb({light},{light},255)" if fraction else "")
    return text


def draw(maps, path, title=""):
    """Writes maps as a PNG picture, those of one group in one row, in fonts that have the words' characters.

    Args:
        maps: List of `{"title", "rows", "columns", "weights"}`, some with a `group`.
        path: The file, which ends in `.png`.
        title: Stands above them.

    Raises:
        UserError: where the file cannot be written.
    """
    from matplotlib import font_manager, rc_context  # takes a second
    from matplotlib.figure import Figure

    installed = {font.name for font in font_manager.fontManager.ttflist}
    family = [name for name in CJK_FONTS if name in installed] + ["DejaVu Sans"]
    lines = _lines([_lying(each) for each in maps])
    heights = [max(_inches(each)[1] for each in line) for line in lines]
    width, height = max(sum(_inches(each)[0] for each in line) for line in lines), sum(heights) + 0.5
    dpi = min(DPI, int(LARGEST / max(width, height)))
    with rc_context({"font.family": family, "font.size": TICK_SIZE, "axes.titlesize": TICK_SIZE + 1}):
        figure = Figure(figsize=(width, height), dpi=dpi)
        figure.suptitle(title, y=1 - 0.1 / height, va="top", size=TICK_SIZE + 3)
        top = height - 0.5
        for line, of_line in zip(lines, heights, strict=True):
            left = 0.0
            for each in line:
                _panel(figure, each, left, top, width, height)
                left += _inches(each)[0]
            top -= of_line
        with atomic_file(path, "wb") as file, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # no installed font has it: a box stands for it
            figure.savefig(file, format="png")


def draw_if_named(maps, path):
    """`draw` for a chat: what was done, or why not, in a sentence; `None` where `path` is empty."""
    if not path:
        return None
    if not path.endswith(".png"):
        return f"Expected the name of a .png file. Received: {path}"
    try:
        draw(maps, path)
    except UserError as error:
        return str(error)
    return f"{path} written"


def _lines(maps):
    """The maps of each line: those without a group, as many as have room, then a line per group."""
    lines = []
    for each in maps:
        last = lines[-1] if lines else []
        if "group" in each:
            fits = last and last[-1].get("group") == each["group"]
        else:
            fits = last and sum(_inches(other)[0] for other in [*last, each]) <= WIDTH
        if fits:
            last.append(each)
        else:
            lines.append([each])
    return lines


def _lying(each):
    """A map of words that is much higher than wide is drawn lying: a passage goes from left to right."""
    if len(each["rows"]) <= 2 * len(each["columns"]) or max(map(len, each["rows"])) > LABEL:
        return each
    weights = [list(column) for column in zip(*each["weights"], strict=True)]
    return {**each, "rows": each["columns"], "columns": each["rows"], "weights": weights}


def _margins(each):
    """Inches of a panel that its row labels and its column labels take, and its title above."""
    inch = 0.6 * TICK_SIZE / 72  # of a character
    longest = [max(len(label[:LABEL]) for label in each[axis]) for axis in ("rows", "columns")]
    return 0.25 + inch * longest[0], 0.15 + inch * longest[1], 0.35


def _inches(each):
    left, bottom, top = _margins(each)
    width = left + max(INCHES_PER_COLUMN * len(each["columns"]), 0.06 * len(each["title"])) + 0.2
    return width, bottom + INCHES_PER_ROW * len(each["rows"]) + top


def _panel(figure, each, left, top, width, height):
    """One map, its upper left corner so many inches from the left and from the bottom of the figure."""
    margin, _bottom, above = _margins(each)
    C, R = INCHES_PER_COLUMN * len(each["columns"]), INCHES_PER_ROW * len(each["rows"])
    place = (left + margin) / width, (top - above - R) / height, C / width, R / height
    axes = figure.add_axes(place)
    largest = max(max(row) for row in each["weights"])
    axes.imshow(each["weights"], cmap="Blues", vmin=0.0, vmax=largest if largest > 0 else 1.0, aspect="auto")
    axes.set_title(f"{each['title']} (at most {largest:.2f})", loc="left")
    columns, rows = ([label[:LABEL] for label in each[axis]] for axis in ("columns", "rows"))
    axes.set_xticks(range(len(columns)), columns, rotation=90)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
