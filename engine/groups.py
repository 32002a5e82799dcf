"""Scores of groups of examples, as tables and bar charts: `evaluate.py --by`."""

import os
import pathlib
import textwrap
from collections.abc import Iterable

from colloquy.base.files import atomic_file, refuse_existing
from colloquy.data.text_files import write_json
from colloquy.engine.evaluate import Evaluation
from colloquy.engine.provenance import provenance
from colloquy.metrics.tables import markdown


def show_groups(
    evaluation: Evaluation,
    split: str,
    breakdowns: Iterable[str],
    out: str | os.PathLike | None = None,
) -> dict[str, list[dict]]:
    """Prints a table for each breakdown of a split's examples.

    Args:
        evaluation: The runs and their dataset.
        breakdowns: Some of the task's `breakdowns`.
        out: A directory, which gets `BREAKDOWN.json` and `BREAKDOWN.png`.

    Returns:
        What `engine.task.Task.metrics_by_group` returns.
    """
    files = {}
    for name in breakdowns if out else ():
        files[name] = pathlib.Path(out or "") / f"{name}.json"
        refuse_existing(files[name])
    groups_by_breakdown = evaluation.metrics_by_group(split, breakdowns)
    for name, groups in groups_by_breakdown.items():
        print(f"\n{_make_table(name, groups)}")
        if name in files:
            paths = [str(run.path) for run in evaluation.runs]
            origin = {"by": name, "split": split, "runs": paths, **provenance()}
            rows = []
            for group in groups:
                row = {name: group["group"], "n": group["examples"], **group["metrics"]}
                rows.append(row)
            write_json(files[name], {**origin, "rows": rows})
            picture = files[name].with_suffix(".png")
            draw_groups(
                name, groups, _main_metric(evaluation.task.summary_metrics, groups), picture
            )
            print(picture)
    return groups_by_breakdown


def _make_table(breakdown: str, groups: list[dict]) -> str:
    metrics = list(groups[0]["metrics"])
    lines = []
    for group in groups:
        scores = [f"{group['metrics'][name]:.4f}" for name in metrics]
        lines.append([group["group"], f"{group['examples']:,}", *scores])
    return markdown([breakdown, "n", *metrics], lines)


def _main_metric(summary_metrics: Iterable[str], groups: list[dict]) -> str:
    """The most important metric that groups have."""
    metrics = groups[0]["metrics"]
    known = [name for name in summary_metrics if name in metrics]
    return (known or list(metrics))[0]


def draw_groups(breakdown: str, groups: list[dict], metric: str, path: str | os.PathLike) -> None:
    """Writes a bar chart of a metric: a bar per group, labelled with its number of examples."""
    from matplotlib.figure import Figure  # takes a second

    figure = Figure(figsize=(1.5 + 0.6 * len(groups), 3), layout="constrained")
    axes = figure.add_subplot()
    positions = range(len(groups))
    axes.bar(positions, [group["metrics"][metric] for group in groups], color="tab:blue")
    if "confidence" in groups[0]["metrics"]:
        # A reliability diagram: the bars should reach the points.
        confidences = [group["metrics"]["confidence"] for group in groups]
        axes.plot(positions, confidences, "ko", label="confidence")
        axes.legend()
    labels = []
    for group in groups:
        labels.append(f"{textwrap.fill(group['group'], 12)}\nn = {group['examples']:,}")
    axes.set_xticks(positions, labels, fontsize=7)
    axes.set_xlabel(breakdown.replace("_", " "))
    axes.set_ylabel(metric)
    with atomic_file(path, "wb") as file:
        figure.savefig(file, format="png", dpi=120)
