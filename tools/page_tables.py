"""Tables of scores in pages, from results/ and the recipes."""

import collections
from fnmatch import fnmatchcase

from colloquy.metrics import dialog, generation, ranking, reading_comprehension
from colloquy.metrics.published import published, published_beside, scores
from colloquy.metrics.tables import by_corpus, by_metric, cost, markdown, mean_over_corpora
from colloquy.tasks import RECIPES

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
VARIANTS = {"budget", "ensemble", "search", "trained_on"}
"""Keys of rows with changed settings or data, which are not a recipe's own score."""


def select(patterns, corpus="*", split="dev"):
    """Selects rows of results/scores.jsonl and results/published.json by patterns.

    Published ones match as `published: MODEL (SPLIT)`, whatever the pattern of splits.
    """
    rows = [row for row in scores() if fnmatchcase(row["split"], split)]
    rows += _as_rows(published())
    selected = []
    for row in rows:
        is_named = any(fnmatchcase(row["recipe"], pattern) for pattern in patterns)
        if is_named and fnmatchcase(row["corpus"], corpus):
            selected.append(row)
    return selected


def _as_rows(published_rows):
    return [
        {**row, "recipe": f"published: {row['model']} ({row['split']})"} for row in published_rows
    ]


def select_own(recipe, corpus="*", split="dev"):
    """Selects a recipe's own scores: without ensembles, smaller budgets and other variants."""
    rows = select([recipe], corpus, split)
    return [row for row in rows if not VARIANTS & row.keys()]


def score_table(*recipes, corpus="*", split="dev", epochs=None):
    """Makes a table of scores: a line per recipe, the best first, then the references.

    References are baselines and published scores. A column is a metric, or for dialogs a bAbI task.

    Args:
        *recipes: Patterns, see `select`.
        corpus: Pattern.
        split: Pattern.
        epochs: Shows the best validation within this number of epochs: models side by side at equal
            budgets.
    """
    rows = select([*recipes, "baseline: *", "upper bound: *"], corpus, split)
    measured = [row for row in rows if "seed" in row and _has_budget(row, epochs)]
    columns = {_column(row) for row in measured}
    references = []
    for row in rows:
        is_baseline = "seed" not in row and _column(row) in columns
        if is_baseline or "source" in row:
            references.append(row)
    if not measured and not references:
        raise ValueError("no score matches")

    task = (measured + references)[0]["task"]
    if corpus != "*" and not any("source" in row for row in references):
        references += _as_rows(published_beside(task, corpus))
    if task == "dialog":
        return _dialog_table(_with_all_columns(measured, columns), references)
    return _metric_table(measured, references, task)


def name_of(row):
    """Returns the title of a row's recipe, with what is special about the row.

    That is the number of models of an ensemble, another corpus of the training, and the search. An
    ablation has no recipe: its row has a `title` of its own, and its command says the settings.

    >>> name_of({"recipe": "chat-dot", "search": "beam=5"})
    "Seq2seq, Luong's dot attention, beam=5"
    >>> name_of({"recipe": "baseline: random"})
    '*baseline: random*'
    """
    recipe = row["recipe"]
    if "title" in row:
        name = row["title"]
    elif recipe in RECIPES:
        name = RECIPES[recipe].title
    else:
        name = f"*{recipe}*"
    if "ensemble" in row:
        name = f"Ensemble of {row['ensemble']}: {name}"
    if "trained_on" in row:
        name += f", trained on {row['trained_on']}"
    if "search" in row:
        name += f", {row['search']}"
    return name


def _metric_table(measured, references, task):
    columns = COLUMNS[task]
    metric = MAIN_METRICS[task]
    rows_by_name = _group_by_name(measured)

    def cost_of(name):
        return cost(metric, mean_over_corpora(rows_by_name[name], metric))

    def without_training(name, metrics):
        return [name, *by_metric([metrics], columns), "", "", "", ""]

    lines = []
    for name in sorted(rows_by_name, key=cost_of):
        rows = rows_by_name[name]
        stages = [*rows[0].get("epochs_before", []), mean_over_corpora(rows, "epochs")]
        line = [name, *by_metric([row["metrics"] for row in rows], columns)]
        line.append(" + ".join(f"{round(epochs, 2):g}" for epochs in stages))
        line.append(_seeds(rows))
        line.append(f"{mean_over_corpora(rows, 'minutes'):.0f}")
        line.append(_stale_commits(rows))
        lines.append(line)
        for part, metrics in rows[0].get("parts", {}).items():
            lines.append(without_training(f"{name}, {part}", metrics))
    lines += [without_training(name_of(row), row["metrics"]) for row in references]
    return markdown(["", *columns, "epochs", "seeds", "minutes", "commit"], lines)


def _with_all_columns(measured, columns):
    """The rows of the models with a score in every column: means of fewer do not compare."""
    rows = []
    for own_rows in _group_by_name(measured).values():
        if {_column(row) for row in own_rows} == columns:
            rows += own_rows
    return rows


def _dialog_table(measured, references):
    rows = [{**row, "recipe": name_of(row)} for row in measured + references]
    header, lines = by_corpus(rows, dialog.METRICS)
    rows_by_name = _group_by_name(measured)
    for line in lines:
        line.append(_stale_commits(rows_by_name[line[0]]))
    return markdown([*header, "commit"], lines)


def _group_by_name(rows):
    rows_by_name = collections.defaultdict(list)
    for row in rows:
        rows_by_name[name_of(row)].append(row)
    return rows_by_name


def _has_budget(row, epochs):
    if epochs is None:
        return "budget" not in row
    return row.get("budget", round(row["epochs"], 1)) == float(epochs)


def _column(row):
    return row["corpus"], row["split"]


def _seeds(rows):
    seeds = sorted({row["seed"] for row in rows})
    return ", ".join(str(seed) for seed in seeds)


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
