"""Scores of several runs and splits, as tables and rows."""

from collections.abc import Mapping
from typing import Any

from colloquy.base.files import PathLike, UserError, check_output
from colloquy.engine.evaluation import open_evaluations
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
    """Scores splits with one run or several; those of several are also shown together, as means
    over seeds.

    Args:
        tasks: `tasks.TASKS`.
        patterns, data, precision, settings: See `open_evaluations`.
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
        read_scores(scores)  # A damaged file is refused now, not after the work.

    records = []
    tables: dict[tuple, list] = {}
    while evaluations:
        evaluation = evaluations.pop(0)  # Its model is freed after its splits.
        for split in splits:
            is_missing = not len(evaluation.dataset.splits.get(split, [None]))
            if is_missing and has_several:
                continue
            record = evaluation.score(split, baselines, out)
            records.append(record)
            place = (record["task"], record["corpus"], split)
            tables.setdefault(place, []).append((evaluation.label(), record))
            if examples:
                evaluation.show_examples(split, examples)
            if scores:
                append_scores(scores, record)
    if not records:
        raise UserError(f"no dataset of {patterns} has examples in the splits {', '.join(splits)}")
    for (name, corpus, split), rows in tables.items():
        print_records(rows, tasks[name], corpus, split)
    for name in sorted({record["task"] for record in records}):
        print_summary(tasks[name], [record for record in records if record["task"] == name])
    return records
