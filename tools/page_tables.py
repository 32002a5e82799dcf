"""Tables of scores in pages: a line per recipe."""

import collections

from colloquy.metrics import dialog, generation, ranking, reading_comprehension
from colloquy.metrics.published import published_beside
from colloquy.metrics.tables import by_corpus, by_metric, cost, markdown, mean_over_corpora
from colloquy.tools.score_rows import name_of, name_published, select

COLUMNS = {
    "selection": ranking.METRICS[:-1],  # P@1 is R10@1 where each context has one positive response
    "reading_comprehension": reading_comprehension.METRICS,
    "generation": generation.METRICS,
}
MAIN_METRICS = {
    "selection": "R10@1",
    "reading_comprehension": "EM",
    "generation": "perplexity",
}
"""The metric that sorts a table."""


def score_table(*recipes, corpus="*", split="dev", epochs=None):
    """Makes a table of scores: a line per recipe, the best first, then the references.

    References are baselines and published scores. A column is a metric, or for dialogs a bAbI task.

    Args:
        *recipes: Patterns, see `tools.score_rows.select`.
        corpus: Pattern.
        split: Pattern.
        epochs: Shows the best validation within this number of epochs: models side by side at equal
            budgets.
    """
    rows = select([*recipes, "baseline: *", "upper bound: *"], corpus, split)
    measured = [row for row in rows if "seed" in row and _has_budget(row, epochs)]
    places = {_place(row) for row in measured}
    references = []
    for row in rows:
        is_baseline = "seed" not in row and _place(row) in places
        if is_baseline or "source" in row:
            references.append(row)
    shown = measured + references
    if not shown:
        raise ValueError("no score matches")

    task = shown[0]["task"]
    if corpus != "*" and not any("source" in row for row in references):
        references += name_published(published_beside(task, corpus))
    if task == "dialog":
        # Means over fewer bAbI tasks do not compare.
        return _dialog_table(_with_all_places(measured, places), references)
    return _metric_table(measured, references, task)


def _has_budget(row, epochs):
    """Whether the score is the best within a number of epochs; `None`: of the whole training."""
    if epochs is None:
        return "budget" not in row
    return row.get("budget", round(row["epochs"], 1)) == float(epochs)


def _place(row):
    return row["corpus"], row["split"]


def _group_by_name(rows):
    rows_by_name = collections.defaultdict(list)
    for row in rows:
        rows_by_name[name_of(row)].append(row)
    return rows_by_name


# === Dialogs: a column per bAbI task ===


def _with_all_places(measured, places):
    """The rows of the models with a score in every place."""
    rows = []
    for own_rows in _group_by_name(measured).values():
        if {_place(row) for row in own_rows} == places:
            rows += own_rows
    return rows


def _dialog_table(measured, references):
    rows = [{**row, "recipe": name_of(row)} for row in measured + references]
    header, lines = by_corpus(rows, dialog.METRICS)
    rows_by_name = _group_by_name(measured)
    for line in lines:
        # References have no commit.
        line.append(_stale_commits(rows_by_name.get(line[0], [])))
    return markdown([*header, "commit"], lines)


# === Other tasks: a column per metric ===


def _metric_table(measured, references, task):
    metrics = COLUMNS[task]
    main_metric = MAIN_METRICS[task]
    rows_by_name = _group_by_name(measured)

    def cost_of(name):
        return cost(main_metric, mean_over_corpora(rows_by_name[name], main_metric))

    lines = []
    for name in sorted(rows_by_name, key=cost_of):
        rows = rows_by_name[name]
        scores = by_metric([row["metrics"] for row in rows], metrics)
        minutes = f"{mean_over_corpora(rows, 'minutes'):.0f}"
        lines.append([name, *scores, _epochs(rows), _seeds(rows), minutes, _stale_commits(rows)])
        for part, scores_of_part in rows[0].get("parts", {}).items():
            lines.append(_untrained_line(f"{name}, {part}", scores_of_part, metrics))
    lines += [_untrained_line(name_of(row), row["metrics"], metrics) for row in references]
    return markdown(["", *metrics, "epochs", "seeds", "minutes", "commit"], lines)


def _untrained_line(name, scores, metrics):
    """A line without a training: of a reference, or of a part of a split."""
    no_training = [""] * 4  # epochs, seeds, minutes, commit
    return [name, *by_metric([scores], metrics), *no_training]


def _epochs(rows):
    """The epochs of all trainings that the weights come from: `2 + 0.5`."""
    # All seeds of a recipe begin with the same trainings.
    earlier = rows[0].get("epochs_before", [])
    stages = [*earlier, mean_over_corpora(rows, "epochs")]
    return " + ".join(f"{round(epochs, 2):g}" for epochs in stages)


def _seeds(rows):
    return ", ".join(str(seed) for seed in sorted({row["seed"] for row in rows}))


def _stale_commits(rows):
    """Names commits of rows that the code does not reproduce, as `c0ffee1 and 2 more`."""
    commits = []
    for row in rows:
        if "stale" in row and row["commit"] not in commits:
            commits.append(row["commit"])
    if not commits:
        return ""
    if len(commits) == 1:
        return commits[0]
    return f"{commits[0]} and {len(commits) - 1} more"
