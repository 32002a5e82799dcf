"""Scores of groups of examples, as tables: `evaluate.py --by`."""

import pathlib
from collections.abc import Iterable

from colloquy.base.files import PathLike, refuse_existing
from colloquy.data.text_files import write_json
from colloquy.engine.evaluation import Evaluation
from colloquy.engine.provenance import provenance
from colloquy.metrics.tables import markdown


def show_groups(
    evaluation: Evaluation,
    split: str,
    breakdowns: Iterable[str],
    out: PathLike | None = None,
) -> dict[str, list[dict]]:
    """Prints a table for each breakdown of a split's examples.

    Args:
        evaluation: The runs and their dataset.
        breakdowns: Some of the task's `breakdowns`.
        out: A directory, which gets `BREAKDOWN.json`.

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
            print(files[name])
    return groups_by_breakdown


def _make_table(breakdown: str, groups: list[dict]) -> str:
    metrics = list(groups[0]["metrics"])
    lines = []
    for group in groups:
        scores = [f"{group['metrics'][name]:.4f}" for name in metrics]
        lines.append([group["group"], f"{group['examples']:,}", *scores])
    return markdown([breakdown, "n", *metrics], lines)
