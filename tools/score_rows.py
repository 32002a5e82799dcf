"""Rows of scores, selected for tables and plots.

There are three kinds: measured rows, of a run, have a `seed`; published ones have a `source`;
baselines and upper bounds have neither.
"""

from fnmatch import fnmatchcase

from colloquy.metrics.published import published, scores
from colloquy.tasks import RECIPES

VARIANTS = {"budget", "ensemble", "search", "trained_on"}
"""Keys of rows with changed settings or data, which are not a recipe's own score."""


def select(patterns, corpus="*", split="dev"):
    """Selects rows of results/scores.jsonl and results/published.json by patterns.

    A published row matches by its name, `published: MODEL (SPLIT)`, whatever the pattern of splits.
    """
    rows = [row for row in scores() if fnmatchcase(row["split"], split)]
    rows += name_published(published())
    selected = []
    for row in rows:
        is_named = any(fnmatchcase(row["recipe"], pattern) for pattern in patterns)
        if is_named and fnmatchcase(row["corpus"], corpus):
            selected.append(row)
    return selected


def select_own(recipe, corpus="*", split="dev"):
    """Selects a recipe's own scores: without ensembles, smaller budgets and other variants."""
    rows = select([recipe], corpus, split)
    return [row for row in rows if not VARIANTS & row.keys()]


def name_published(rows):
    """Returns published rows with a name in place of a recipe."""
    return [{**row, "recipe": f"published: {row['model']} ({row['split']})"} for row in rows]


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
