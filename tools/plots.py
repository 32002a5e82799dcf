"""Draws the plots of docs/: figures of the articles, drawn from our scores and their numbers.

    python -m colloquy.tools.plots    # writes docs/images/NAME.svg

A point is the mean over seeds in results/scores.jsonl, its line the standard deviation. An empty
circle is a number of the article. A test checks that the pictures show today's records.
"""

import statistics
from typing import NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure

from colloquy.metrics.published import RESULTS
from colloquy.tools.score_rows import select_own

IMAGES = RESULTS.parent / "docs" / "images"
OPTIONS = {
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "colloquy",  # the same names of elements at each drawing
    "font.size": 9,
}


class Point(NamedTuple):
    mean: float
    deviation: float = 0.0


class Series(NamedTuple):
    """A model's scores, in per cent."""

    label: str
    points: dict
    """`{name: Point}`, by the names below the horizontal axis."""
    color: str
    is_published: bool = False


class Panel(NamedTuple):
    title: str
    names: list
    """Names below the horizontal axis, from left to right."""
    scores: tuple
    """Lowest and highest score of the vertical axis, in per cent."""
    series: list


# === What is drawn ===

BABI_TASKS = ["T1", "T1-OOV", "T2", "T2-OOV", "T3", "T3-OOV", "T4", "T4-OOV", "T5", "T5-OOV"]
BABI_COLUMNS = [*BABI_TASKS, "mean"]


def plots():
    """Returns the panels of each picture by the picture's name."""
    without_features = [
        babi_series("supervised embeddings (LTR-SEM)", "babi-embeddings", "C0"),
        babi_series("MEMR", "babi-memr-plain", "C1"),
        babi_series("MEMMA, our positions", "babi-memma-plain", "C2"),
        babi_series("MEMMA, the article's, scaled words", "babi-memma-article-plain", "C3"),
        article_series("article, test: MEMR and MEMMA", ["T1", "T2"]),
    ]
    with_features = [
        babi_series("MEMR", "babi-memr", "C1"),
        babi_series("MEMMA, our positions", "babi-memma", "C2"),
        babi_series("MEMMA, the article's, scaled words", "babi-memma-article", "C3"),
        babi_series("MEMMA, our positions, match types too", "babi-memma-match", "C4"),
        article_series("article, test: MEMR and MEMMA", ["T1", "T3", "T4-OOV"]),
    ]
    return {
        "memma_figure5": [
            Panel("Without features: per response", BABI_COLUMNS, (40, 102), without_features),
            Panel("With speaker and time: per response", BABI_COLUMNS, (40, 102), with_features),
        ],
    }


def babi_series(label, recipe, color):
    points = {}
    for name in BABI_TASKS:
        task, _, oov = name.removeprefix("T").partition("-")
        rows = select_own(recipe, f"babi-task{task}", "dev-oov" if oov else "dev")
        points[name] = summarize(rows)
    points["mean"] = Point(round(statistics.mean(point.mean for point in points.values()), 1))
    return Series(label, points, color)


def article_series(label, names):
    """The scores that the article's text names: 100 per cent."""
    return Series(label, {name: Point(100.0) for name in names}, "grey", is_published=True)


def summarize(rows):
    scores = [100 * row["metrics"]["per_response"] for row in rows]
    deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return Point(round(statistics.mean(scores), 1), round(deviation, 1))


# === How it is drawn ===


def draw(panels):
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


def describe(panels):
    """The content of a picture, without what XML would escape.

    It is the picture's description, by which a test knows whether it is up to date, whatever the
    version of matplotlib draws.
    """
    return repr(panels).replace("'", "")


def main():
    for name, panels in plots().items():
        figure = draw(panels)
        path = IMAGES / f"{name}.svg"
        metadata = {"Date": None, "Creator": None, "Description": describe(panels)}
        with rc_context(OPTIONS):
            figure.savefig(path, metadata=metadata)
        print(path)


if __name__ == "__main__":
    main()
