"""Scores of groups of examples, as tables: `evaluate.py --by`."""

import pathlib
from collections.abc import Iterable

from colloquy.base.files import PathLike, UserError, check_output, refuse_existing
from colloquy.data.json_files import write_json
from colloquy.engine.evaluation import Evaluation
from colloquy.engine.provenance import provenance
from colloquy.metrics.tables import markdown


def show_groups(
    evaluation: Evaluation,
    split: str,
    breakdowns: Iterable[str],
    out: PathLike | None = None,
) -> None:
    """Prints a table for each breakdown of a split's examples.

    Args:
        evaluation: The runs and their dataset.
        breakdowns: Some of the task's `breakdowns`.
        out: A directory, which gets `BREAKDOWN.json`.
    """
    for name in breakdowns:
        if name not in evaluation.task.breakdowns:
            known = ", ".join(evaluation.task.breakdowns) or "nothing"
            raise UserError(
                f"examples of {evaluation.task.name} are grouped by {known}. Received: {name}"
            )
    files = {}
    if out:
        files = {name: pathlib.Path(out) / f"{name}.json" for name in breakdowns}
    for file in files.values():
        check_output(file)
        refuse_existing(file)
    scoring = evaluation.scoring(split)
    for name, groups in evaluation.task.metrics_by_group(scoring, breakdowns).items():
        print(f"\n{_make_table(name, groups)}")
        if name in files:
            paths = [str(run.path) for run in evaluation.runs]
            origin = {"by": name, "split": split, "runs": paths, **provenance()}
            rows = []
            for group in groups:
                rows.append({name: group.name, "n": group.examples, **group.metrics})
            write_json(files[name], {**origin, "rows": rows})
            print(files[name])


def _make_table(breakdown, groups):
    metrics = list(groups[0].metrics)
    lines = []
    for group in groups:
        scores = [f"{group.metrics[name]:.4f}" for name in metrics]
        lines.append([group.name, f"{group.examples:,}", *scores])
    return markdown([breakdown, "n", *metrics], lines)
