"""Draws the plots of docs/: figures of the articles, drawn from our scores and their numbers.

    python -m colloquy.tools.plots    # writes docs/images/NAME.svg

A point is the mean over seeds in results/scores.jsonl, its line the standard deviation. An empty
circle is a number of the article. A test checks that the pictures show today's records.
"""

import html
import statistics
from typing import NamedTuple

from colloquy.metrics.published import RESULTS
from colloquy.tools.score_tables import select, select_own

IMAGES = RESULTS.parent / "docs" / "images"

PANEL = (560, 260)
"""Width and height of the area of a panel's points."""
MARGINS = (50, 40, 20, 74)
"""Space around it: left, top, right and bottom."""
BLUE = "#0969da"
ORANGE = "#bc4c00"
GREEN = "#1a7f37"
PURPLE = "#8250df"
RED = "#cf222e"
GREY = "#57606a"


class Point(NamedTuple):
    mean: float
    deviation: float = 0.0


class Series(NamedTuple):
    """A model's scores, in per cent."""

    label: str
    points: dict[str, Point]
    """By the names below the horizontal axis."""
    color: str
    is_published: bool = False


class Panel(NamedTuple):
    title: str
    names: list[str]
    """Names below the horizontal axis, from left to right."""
    scores: tuple[int, int]
    """Lowest and highest score of the vertical axis, in per cent."""
    series: list[Series]


# === What is drawn ===

BABI_TASKS = ["T1", "T1-OOV", "T2", "T2-OOV", "T3", "T3-OOV", "T4", "T4-OOV", "T5", "T5-OOV"]
BABI_COLUMNS = [*BABI_TASKS, "mean"]
DAM_RECIPE = "dam-chitchat-epochs-0.5"
"""Begins the names of the rows of a sweep over levels and variants."""


def plots() -> dict[str, list[Panel]]:
    """Returns the panels of each picture by the picture's name."""
    without_features = [
        babi_series("supervised embeddings (LTR-SEM)", "babi-embeddings", BLUE),
        babi_series("MEMR", "babi-memr-plain", ORANGE),
        babi_series("MEMMA, our positions", "babi-memma-plain", GREEN),
        babi_series("MEMMA, the article's positions", "babi-memma-article-plain", PURPLE),
        article_series("article, test: MEMR and MEMMA", ["T1", "T2"]),
    ]
    with_features = [
        babi_series("MEMR", "babi-memr", ORANGE),
        babi_series("MEMMA, our positions", "babi-memma", GREEN),
        babi_series("MEMMA, the article's positions", "babi-memma-article", PURPLE),
        babi_series("MEMMA, our positions, match types too", "babi-memma-match", RED),
        article_series("article, test: MEMR and MEMMA", ["T1", "T3", "T4-OOV"]),
    ]
    levels = [str(level) for level in range(6)]
    variants = ["first", "last", "self", "cross", "full"]
    return {
        "memma_figure5": [
            Panel("Without features: per response", BABI_COLUMNS, (40, 100), without_features),
            Panel("With speaker and time: per response", BABI_COLUMNS, (40, 100), with_features),
        ],
        "dam_levels": [
            Panel("Levels of self-attention: R10@1", levels, (40, 60), [dam_levels(levels)]),
            Panel(
                "Variants: R10@1",
                variants,
                (40, 80),
                [dam_variants(variants), published_dam_variants(variants)],
            ),
        ],
    }


def babi_series(label, recipe, color):
    points = {}
    for name in BABI_TASKS:
        task, _, oov = name.removeprefix("T").partition("-")
        rows = select_own(recipe, f"babi-task{task}", "dev-oov" if oov else "dev")
        points[name] = summarize(rows, "per_response")
    points["mean"] = Point(statistics.mean(point.mean for point in points.values()))
    return Series(label, points, color)


def article_series(label, names):
    """The scores that the article's text names: 100 per cent."""
    return Series(label, {name: Point(100.0) for name in names}, GREY, is_published=True)


def dam_levels(levels):
    changes = {level: f"levels-{level}" for level in levels}
    return Series("ours, chitchat dev", dam_points(changes), BLUE)


def dam_variants(variants):
    """The variants of the recipe, which has one level; `full` is the recipe itself."""
    changes = {variant: f"variant-{variant}" for variant in variants}
    changes["full"] = "levels-1"
    return Series("ours, one level, chitchat dev", dam_points(changes), BLUE)


def dam_points(changes):
    """The points of the changed recipes that have rows; `changes` ends their names, by point."""
    points = {}
    for name, change in changes.items():
        rows = select_own(f"{DAM_RECIPE}-{change}", "chitchat")
        if rows:
            points[name] = summarize(rows, "R10@1")
    return points


def published_dam_variants(variants):
    points = {}
    for variant in variants:
        model = "DAM" if variant == "full" else f"DAM_{variant}"
        rows = select([f"published: {model} (test)"], "ubuntu-v1")
        points[variant] = summarize(rows, "R10@1")
    return Series("paper, five levels, Ubuntu V1 test", points, GREY, is_published=True)


def summarize(rows, metric):
    scores = [100 * row["metrics"][metric] for row in rows]
    deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return Point(statistics.mean(scores), deviation)


# === How it is drawn ===


def draw(panels: list[Panel]) -> str:
    """Draws panels as SVG, one below the other."""
    left, top, right, bottom = MARGINS
    width = left + PANEL[0] + right
    height_of_panel = top + PANEL[1] + bottom
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} '
        f'{height_of_panel * len(panels)}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        lines.append(f'<g transform="translate({left},{top + number * height_of_panel})">')
        lines += draw_axes(panel)
        for place, series in enumerate(panel.series):
            lines += draw_series(panel, place)
            lines += draw_legend(series, place)
        lines.append("</g>")
    return "\n".join([*lines, "</svg>\n"])


def draw_axes(panel):
    width, height = PANEL
    lines = [
        f'<text x="0" y="-16" font-size="14" font-weight="bold">{panel.title}, per cent</text>'
    ]
    lowest, highest = panel.scores
    for score in range(lowest, highest + 1, (highest - lowest) // 4):
        y = height_of(score, panel)
        lines.append(f'<path d="M0,{y:g} H{width}" stroke="#d0d7de"/>')
        lines.append(f'<text x="-8" y="{y + 4:g}" text-anchor="end">{score}</text>')
    for column, name in enumerate(panel.names):
        x = (column + 0.5) * width / len(panel.names)
        lines.append(f'<text x="{x:g}" y="{height + 18}" text-anchor="middle">{name}</text>')
    return lines


def draw_series(panel, place):
    """Draws the points of a series, a little to the right of those of the series before."""
    series = panel.series[place]
    column_width = PANEL[0] / len(panel.names)
    offset = (place + 0.5) / len(panel.series) - 0.5
    lines = []
    for column, name in enumerate(panel.names):
        if name not in series.points:
            continue
        mean, deviation = series.points[name]
        x = (column + 0.5 + 0.7 * offset) * column_width
        lines.append(f"<g><title>{html.escape(series.label)}, {name}: {mean:.1f}</title>")
        if deviation:
            low = height_of(mean - deviation, panel)
            high = height_of(mean + deviation, panel)
            lines.append(f'<path d="M{x:.1f},{low:.1f} V{high:.1f}" stroke="{series.color}"/>')
        lines.append(draw_circle(x, height_of(mean, panel), series))
        lines.append("</g>")
    return lines


def draw_circle(x, y, series):
    fill = "none" if series.is_published else series.color
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{series.color}"/>'


def draw_legend(series, place):
    """Draws the label of a series below the panel, two in a line."""
    x = (place % 2) * PANEL[0] / 2 + 6
    y = PANEL[1] + 36 + 16 * (place // 2)
    label = html.escape(series.label)
    return [draw_circle(x, y, series), f'<text x="{x + 10:g}" y="{y + 4:g}">{label}</text>']


def height_of(score, panel):
    """The distance of a score from the top of a panel."""
    lowest, highest = panel.scores
    return PANEL[1] * (highest - score) / (highest - lowest)


def main():
    for name, panels in plots().items():
        path = IMAGES / f"{name}.svg"
        path.write_text(draw(panels), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
