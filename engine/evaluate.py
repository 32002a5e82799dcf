"""Scores runs on splits, and prints tables of their scores."""

from collections.abc import Mapping
from typing import Any

from colloquy.base.files import PathLike, UserError, check_output
from colloquy.engine.evaluation import open_evaluations
from colloquy.engine.examples import check_vocabulary, show_examples
from colloquy.engine.score_rows import append_scores
from colloquy.engine.score_tables import print_records, print_summary
from colloquy.engine.task import Task
from colloquy.metrics.published import scores as read_scores


def evaluate_all(
    tasks: Mapping[str, Task],
    patterns: Any,
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
    """Scores splits with one run or several, and prints a table for each corpus and split. Of
    several runs it also prints means over seeds.

    Args:
        tasks: `tasks.TASKS`.
        patterns, data, precision, settings: See `engine.evaluation.open_evaluations`.
        scores: A file to append rows to.
        examples: Number of examples to show for each run and split.
        baselines, out: See `Evaluation.score`.

    Returns:
        A list of the records of `Evaluation.score`.
    """
    evaluations = open_evaluations(tasks, patterns, data, settings, precision)
    has_several = len(evaluations) > 1
    if out and (has_several or len(splits) > 1):
        raise UserError(f"out: expected one run and one split. Received: {patterns}, {splits}")
    if scores:
        check_output(scores)
        read_scores(scores)  # a damaged file is refused before the work
    if examples:
        for evaluation in evaluations:
            check_vocabulary(evaluation.dataset)

    records = []
    tables: dict[tuple, list] = {}
    while evaluations:
        # Without a place in the list, its model is freed before the next one is loaded.
        evaluation = evaluations.pop(0)
        for split in splits:
            # Of several runs, those whose dataset lacks the split are left out of its table. For
            # a single run, `score` refuses the split.
            if has_several and not len(evaluation.dataset.splits.get(split, [])):
                continue
            record = evaluation.score(split, baselines, out)
            records.append(record)
            key = (record["task"], record["corpus"], split)
            tables.setdefault(key, []).append((evaluation.label(), record))
            if scores:
                append_scores(scores, record)
            if examples:
                _show_examples(evaluation, split, examples)
    if not records:
        raise UserError(f"no dataset of {patterns} has examples in the splits {', '.join(splits)}")

    for (task_name, corpus, split), rows in tables.items():
        print_records(rows, tasks[task_name], corpus, split)
    for task_name in sorted({record["task"] for record in records}):
        records_of_task = [record for record in records if record["task"] == task_name]
        print_summary(tasks[task_name], records_of_task)
    return records


def _show_examples(evaluation, split, examples):
    run = evaluation.runs[0]
    if len(evaluation.runs) > 1:
        print(f"\nexamples of {run.path}, the first of the ensemble:")
    show_examples(evaluation.task, run, evaluation.dataset, split, examples)
