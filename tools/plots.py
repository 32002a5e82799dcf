"""Draws the plots of docs/: figures of the articles, drawn from our scores and their numbers.

    python -m colloquy.tools.plots    # writes docs/images/NAME.svg

A point is the mean over seeds in results/scores.jsonl, its line the standard deviation. An empty
circle is a number of the article. A test checks that the pictures show today's records.
"""

import statistics
from typing import NamedTuple

from matplotlib.figure import Figure

from colloquy.tools.images import save
from colloquy.tools.page_tables import select, select_own


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
        babi_series("supervised embeddings (LTR-SEM)", "babi-embeddings", "C0"),
        babi_series("MEMR", "babi-memr-plain", "C1"),
        babi_series("MEMMA, our positions", "babi-memma-plain", "C2"),
        babi_series("MEMMA, the article's positions", "babi-memma-article-plain", "C3"),
        article_series("article, test: MEMR and MEMMA", ["T1", "T2"]),
    ]
    with_features = [
        babi_series("MEMR", "babi-memr", "C1"),
        babi_series("MEMMA, our positions", "babi-memma", "C2"),
        babi_series("MEMMA, the article's positions", "babi-memma-article", "C3"),
        babi_series("MEMMA, our positions, match types too", "babi-memma-match", "C4"),
        article_series("article, test: MEMR and MEMMA", ["T1", "T3", "T4-OOV"]),
    ]
    levels = {str(level): f"levels-{level}" for level in range(6)}
    variants = {name: f"variant-{name}" for name in ("first", "last", "self", "cross")}
    variants["full"] = "levels-1"  # the recipe itself, which has one level
    return {
        "memma_figure5": [
            Panel("Without features: per response", BABI_COLUMNS, (40, 102), without_features),
            Panel("With speaker and time: per response", BABI_COLUMNS, (40, 102), with_features),
        ],
        "dam_levels": [
            Panel(
                "Levels of self-attention: R10@1",
                list(levels),
                (40, 60),
                [dam_series("ours, chitchat dev", levels)],
            ),
            Panel(
                "Variants: R10@1",
                list(variants),
                (40, 80),
                [
                    dam_series("ours, one level, chitchat dev", variants),
                    published_dam_variants(variants),
                ],
            ),
        ],
    }


def babi_series(label, recipe, color):
    points = {}
    for name in BABI_TASKS:
        task, _, oov = name.removeprefix("T").partition("-")
        rows = select_own(recipe, f"babi-task{task}", "dev-oov" if oov else "dev")
        points[name] = summarize(rows, "per_response")
    points["mean"] = Point(round(statistics.mean(point.mean for point in points.values()), 1))
    return Series(label, points, color)


def article_series(label, names):
    """The scores that the article's text names: 100 per cent."""
    return Series(label, {name: Point(100.0) for name in names}, "grey", is_published=True)


def dam_series(label, changes):
    """The points of the changed recipes that have rows; `changes` ends their names, by point."""
    points = {}
    for name, change in changes.items():
        rows = select_own(f"{DAM_RECIPE}-{change}", "chitchat")
        if rows:
            points[name] = summarize(rows, "R10@1")
    return Series(label, points, "C0")


def published_dam_variants(variants):
    points = {}
    for variant in variants:
        model = "DAM" if variant == "full" else f"DAM_{variant}"
        rows = select([f"published: {model} (test)"], "ubuntu-v1")
        points[variant] = summarize(rows, "R10@1")
    return Series("paper, five levels, Ubuntu V1 test", points, "grey", is_published=True)


def summarize(rows, metric):
    scores = [100 * row["metrics"][metric] for row in rows]
    deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return Point(round(statistics.mean(scores), 1), round(deviation, 1))


# === How it is drawn ===


def draw(panels: list[Panel]) -> Figure:
    """Draws panels, one below the other."""
    figure = Figure((7, 4.2 * len(panels)), layout="constrained")
    for axes, panel in zip(figure.subplots(len(panels)), panels, strict=True):
        axes.set_title(f"{panel.title}, per cent")
        axes.set_xticks(range(len(panel.names)), panel.names)
        axes.set_ylim(*panel.scores)
        axes.grid(axis="y")
        for place, series in enumerate(panel.series):
            # The points of a series are a little to the right of those of the series before.
            offset = 0.7 * ((place + 0.5) / len(panel.series) - 0.5)
            axes.errorbar(
                [panel.names.index(name) + offset for name in series.points],
                [point.mean for point in series.points.values()],
                [point.deviation for point in series.points.values()],
                fmt="o",
                color=series.color,
                fillstyle="none" if series.is_published else "full",
                label=series.label,
            )
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False)
    return figure


def main():
    for name, panels in plots().items():
        save(draw(panels), name, panels)


if __name__ == "__main__":
    main()
