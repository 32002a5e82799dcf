"""Scores of several runs and splits, as tables and rows."""

import glob
import os
import pathlib
from collections.abc import Iterable, Mapping

from colloquy.base.config import make_config
from colloquy.base.files import PathLike, UserError, check_output
from colloquy.data.prepared import Dataset
from colloquy.engine.evaluation import Evaluation
from colloquy.engine.run import CONFIG, Run
from colloquy.engine.score_rows import append_scores
from colloquy.engine.score_tables import print_records, print_summary
from colloquy.engine.task import Task
from colloquy.metrics.published import scores as read_scores


def evaluate_all(
    tasks: Mapping[str, Task],
    patterns: list,
    splits: list[str],
    *,
    scores: PathLike | None = None,
    examples: int = 0,
    data: PathLike | None = None,
    precision: str = "auto",
    baselines: bool = True,
    out: PathLike | None = None,
    settings: Mapping[str, object] | None = None,
) -> list[dict]:
    """Scores splits with one run or several; those of several are also shown together, as means
    over seeds.

    Args:
        tasks: `tasks.TASKS`.
        patterns: A list of run directories, names of published runs, patterns of several, as
            `runs/babi/*`, or several separated by commas: an ensemble.
        scores: A file to append rows to.
        examples: Number of examples to show for each run and split.
        data, precision, settings: See `Evaluation`.
        baselines, out: See `Evaluation.score`.

    Returns:
        A list of the records of `Evaluation.score`.
    """
    names = ", ".join(str(pattern) for pattern in patterns)
    opened = open_all(patterns)
    has_several = len(opened) * len(splits) > 1
    if has_several and out:
        raise UserError(f"out: expected one run and one split. Received: {names}, {splits}")
    if scores:
        check_output(scores)
        read_scores(scores)  # A damaged file is refused now, not after the work.
    for runs in opened:
        make_config(tasks[runs[0].task].Options, settings or {})  # Refuses wrong ones now.

    records = []
    rows_by_split: dict = {}
    datasets: dict[str, Dataset] = {}
    for runs in opened:
        task = tasks[runs[0].task]
        evaluation = Evaluation(task, runs, data, settings, precision, datasets)
        for split in splits:
            is_missing = not len(evaluation.dataset.splits.get(split, [None]))
            if is_missing and len(opened) > 1:
                continue
            record = evaluation.score(split, baselines, out, show=not has_several)
            records.append(record)
            place = (task.name, record["corpus"], split)
            _, rows = rows_by_split.setdefault(place, (evaluation.dataset, []))
            rows.append((evaluation.label(), record))
            if examples:
                evaluation.show_examples(split, examples)
            if scores:
                append_scores(scores, record)
    if not records:
        raise UserError(f"no dataset of {names} has examples in the splits {', '.join(splits)}")
    if has_several:
        for (name, _, split), (dataset, rows) in rows_by_split.items():
            print_records(rows, tasks[name], dataset, split)
        for name in sorted({record["task"] for record in records}):
            print_summary(tasks[name], [record for record in records if record["task"] == name])
    return records


def _find_ensembles(pattern: object) -> list[list]:
    """Returns the paths of the runs of each ensemble; most have one run."""
    if isinstance(pattern, os.PathLike):
        pattern = str(pattern)
    if not isinstance(pattern, str):
        return [[pattern]]  # a run
    members = pattern.split(",")
    if len(members) > 1:
        return [members]
    runs = []
    for path in sorted(glob.glob(pattern)):
        if (pathlib.Path(path) / CONFIG).is_file():
            runs.append([path])
    return runs or [members]


def open_all(patterns: Iterable) -> list[list[Run]]:
    """Opens the runs of some patterns: a list for each ensemble; most have one run."""
    opened = []
    for pattern in patterns:
        for paths in _find_ensembles(pattern):
            opened.append([Run.open(path) for path in paths])
    return opened
