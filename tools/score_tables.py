"""Tables of scores in pages, from results/ and the recipes."""

from fnmatch import fnmatchcase

from colloquy.metrics import dialog, generation, ranking, reading_comprehension
from colloquy.metrics.published import published, published_beside, scores
from colloquy.metrics.tables import (
    LOWER_IS_BETTER,
    by_corpus,
    by_metric,
    markdown,
    mean_over_corpora,
)
from colloquy.tasks import RECIPES

COLUMNS = {
    "selection": ranking.METRICS[:-1],  # P@1 is R10@1 where each context has one positive response
    "reading_comprehension": reading_comprehension.METRICS,
    "generation": generation.METRICS,
}
SUMMARY_METRICS = {
    "selection": ("R10@1",),
    "reading_comprehension": ("EM", "F1"),
    "generation": ("perplexity",),
    "dialog": ("per_response",),
}
"""Metrics in the table of recipes; the first sorts its lines."""
VARIANTS = {"budget", "ensemble", "search", "trained_on"}
"""Keys of rows with changed settings or data, which are not a recipe's own score."""


def select(patterns, corpus="*", split="dev"):
    """Selects rows of results/scores.jsonl and results/published.json by patterns.

    Published ones match as `published: MODEL (SPLIT)`, whatever the pattern of splits.
    """
    rows = [row for row in scores() if fnmatchcase(row["split"], split)]
    for row in published():
        rows.append({**row, "recipe": f"published: {row['model']} ({row['split']})"})
    selected = []
    for row in rows:
        if fnmatchcase(row["corpus"], corpus) and _matches_any(row["recipe"], patterns):
            selected.append(row)
    return selected


def _matches_any(name, patterns):
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def select_own(recipe, corpus="*", split="dev"):
    """Selects a recipe's own scores: without ensembles, smaller budgets and other variants."""
    rows = select([recipe], corpus, split)
    return [row for row in rows if not VARIANTS & row.keys()]


def score_table(*recipes, corpus="*", split="dev", epochs=None, layout="scores"):
    """Makes a table of scores: a line per recipe, the best first, then the references.

    References are baselines and published scores. A column is a metric, or for dialogs a bAbI task.

    Args:
        *recipes: Patterns, see `select`.
        corpus: Pattern.
        split: Pattern.
        epochs: Shows the best validation within this number of epochs: models side by side at equal
            budgets.
        layout: `recipes` makes the table of `recipe_table` instead.
    """
    if layout == "recipes":
        return recipe_table(recipes)
    rows = select([*recipes, "baseline: *", "upper bound: *"], corpus, split)
    rows_by_name = {}
    columns = set()
    for row in rows:
        if "seed" in row and _has_budget(row, epochs):
            rows_by_name.setdefault(name_of(row), []).append(row)
            columns.add(_column(row))
    references = []
    for row in rows:
        is_baseline = "seed" not in row and _column(row) in columns
        if is_baseline or "source" in row:
            references.append(row)
    if not rows_by_name and not references:
        raise ValueError("no score matches")

    measured = [row for group in rows_by_name.values() for row in group]
    task = (measured + references)[0]["task"]
    has_published = any("source" in row for row in references)
    if corpus != "*" and not has_published:
        for row in published_beside(task, corpus):
            references.append({**row, "recipe": f"published: {row['model']} ({row['split']})"})
    if task == "dialog":
        complete = {}
        for name, group in rows_by_name.items():
            if {_column(row) for row in group} == columns:
                complete[name] = group
        return _dialog_table(complete, references)
    return _metric_table(rows_by_name, references, task)


def recipe_table(patterns):
    """Lists matching recipes, measured or not, with corpus, score, time and hardware."""
    header = ["recipe", "corpus", "score", "epochs", "seeds", "training", "hardware"]
    lines = []
    for name, recipe in RECIPES.items():
        if _matches_any(name, patterns):
            lines.append([f"`{name}`", recipe.corpus, *_describe_recipe_scores(name)])
    return markdown(header, lines)


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


def _metric_table(rows_by_name, references, task):
    columns = COLUMNS[task]
    metric = SUMMARY_METRICS[task][0]

    def cost(name):
        score = mean_over_corpora(rows_by_name[name], metric)
        return score if metric in LOWER_IS_BETTER else -score

    lines = []
    for name in sorted(rows_by_name, key=cost):
        rows = rows_by_name[name]
        stages = [*rows[0].get("epochs_before", []), mean_over_corpora(rows, "epochs")]
        line = [name, *by_metric([row["metrics"] for row in rows], columns)]
        line.append(" + ".join(f"{round(epochs, 2):g}" for epochs in stages))
        line.append(_seeds(rows))
        line.append(f"{mean_over_corpora(rows, 'minutes'):.0f}")
        line.append(_stale_commits(rows))
        lines.append(line)
        for part, metrics in rows[0].get("parts", {}).items():
            lines.append([f"{name}, {part}", *by_metric([metrics], columns), "", "", "", ""])
    for row in references:
        lines.append([name_of(row), *by_metric([row["metrics"]], columns), "", "", "", ""])
    return markdown(["", *columns, "epochs", "seeds", "minutes", "commit"], lines)


def _dialog_table(rows_by_name, references):
    rows = []
    for row in [row for group in rows_by_name.values() for row in group] + references:
        row = {**row, "recipe": name_of(row)}
        parts = row.get("parts")
        if not parts:
            rows.append(row)
            continue
        # A part has a column of its own, in place of the corpus.
        for part, metrics in parts.items():
            rows.append({**row, "corpus": part, "metrics": metrics})
    header, lines = by_corpus(rows, dialog.METRICS)
    for line in lines:
        line.append(_stale_commits(rows_by_name.get(line[0], [])))
    return markdown([*header, "commit"], lines)


def _describe_recipe_scores(recipe):
    """Returns score, epochs, seeds, time and hardware of a recipe on dev, else on test."""
    rows = select_own(recipe, split="*")
    # A dialog row with parts scores dialogs of two dialog managers, not one of the six tasks.
    rows = [row for row in rows if not (row["task"] == "dialog" and "parts" in row)]
    rows = [row for row in rows if row["split"] == "dev"] or rows
    if not rows:
        return ["not measured", "", "", "", ""]

    metrics = SUMMARY_METRICS[rows[0]["task"]]
    means = {metric: mean_over_corpora(rows, metric) for metric in metrics}
    cells = by_metric([means], metrics)
    scores = [f"{metric} {cell}" for metric, cell in zip(metrics, cells, strict=True)]
    score = f"{rows[0]['split']} {', '.join(scores)}"
    corpora = {_column(row) for row in rows}
    if len(corpora) > 1:
        score += f", mean of {len(corpora)} tasks"

    trained = max(row["epochs"] for row in rows)
    planned = RECIPES[recipe].training.epochs
    epochs = f"{trained:.3g}"
    if trained < planned - 0.01:
        epochs += f" of {planned:.3g}"

    minutes = mean_over_corpora(rows, "minutes")
    duration = f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{60 * minutes:.0f} seconds"
    hardware = "; ".join(sorted({row["hardware"] for row in rows}))
    return [score, epochs, _seeds(rows), duration, hardware]


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
