"""MEMMA against others as its article compares them (Ren et al. 2019, figure 5 and table 1), from results/measured.

The ten are tasks 1 to 5 of dialog bAbI on dev and on dev-oov, which stand in for the article's test sets; task 6 has no
unseen entities.
"""

import statistics

from base.files import atomic_file
from metrics.tables import read_record
from tasks import RECIPES
from tools import markdown

TEN_TASKS = (  # of the published differences: corpus, model, against; and the recipes that are compared here
    ("babi-ten-tasks", "MEMMA", "MEMR", "babi-memma-plain", "babi-memr-plain"),
    ("babi-ten-tasks", "MEMMA, speaker + time", "MEMR, speaker + time", "babi-memma", "babi-memr"),
    ("babi-task6", "MEMMA", "LTR-SEM", "babi-memma-plain", "babi-embeddings"),
    ("babi-task6", "MEMMA", "MEMR", "babi-memma-plain", "babi-memr-plain"),
    ("babi-task6", "MEMMA, speaker + time", "MEMR, speaker + time", "babi-memma", "babi-memr"),
)
PANELS = {  # of figure 5: the bars of each task, by recipe
    "no features": {"LTR-SEM": "babi-embeddings", "MEMR": "babi-memr-plain", "MEMMA": "babi-memma-plain"},
    "speaker and time": {"MEMR": "babi-memr", "MEMMA": "babi-memma"},
}
COLORS = {"LTR-SEM": "tab:gray", "MEMR": "tab:orange", "MEMMA": "tab:blue"}


def records(measured, recipe, tasks):
    """The records of a recipe of dialog bAbI.

    Args:
        measured: `pathlib.Path` of results/measured.
        recipe: Key of `tasks.RECIPES`.
        tasks: Numbers of tasks.

    Returns:
        `{(corpus, split): records}`, all of dev first; an empty list where nothing was measured.
    """
    splits = ("dev", "dev-oov") if 6 not in tasks else ("dev",)
    found = {(f"babi-task{task}", split): [] for split in splits for task in tasks}
    for split in splits:
        for path in sorted(measured.glob(RECIPES[recipe].results.replace("-dev.json", f"-{split}.json"))):
            record = read_record(path)
            if (record["corpus"], split) in found:
                found[record["corpus"], split].append(record)
    return found


def table(measured, published):
    """The means and their differences beside the published differences, as a table of Markdown.

    Args:
        measured: As of `records`.
        published: The rows of results/published.json.
    """
    lines = []
    for corpus, model, against, *recipes in TEN_TASKS:
        [row] = [
            each
            for each in published
            if (each["corpus"], each["model"], each.get("against")) == (corpus, model, against)
        ]
        tasks = range(1, 6) if corpus == "babi-ten-tasks" else [6]
        ours = [markdown.mean_of_corpora(records(measured, recipe, tasks)) for recipe in recipes]
        cells = [f"{100 * value:.1f}" if value is not None else "" for value in ours]
        difference = f"{100 * (ours[0] - ours[1]):+.2f}" if None not in ours else ""
        theirs = f"{100 * row['differences']['per_response']:+.2f}"
        name = "tasks 1 to 5, dev and dev-oov" if len(tasks) > 1 else "task 6, dev"
        lines.append([name, f"{model} - {against}", *cells, difference, theirs])
    header = ["", "", "the first, per cent", "the second", "difference", "in the article, on test"]
    return markdown.markdown(header, lines)


def bars(measured, recipe):
    """The bars of a model: one per task, and the mean of the ten.

    Args:
        measured, recipe: As of `records`.

    Returns:
        `{label: (mean, deviation)}` in per cent, over seeds; of the ten's mean no deviation is known, 0. A task without
        a record has no bar, and where one of the ten has none, neither has their mean.
    """
    ten, found = records(measured, recipe, range(1, 6)), {}
    for (corpus, split), of_seeds in [*ten.items(), *records(measured, recipe, [6]).items()]:
        values = [100 * record["metrics"]["per_response"] for record in of_seeds]
        label = corpus.replace("babi-task", "T") + "-OOV" * (split == "dev-oov")
        if values:
            found[label] = statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0
    mean = markdown.mean_of_corpora(ten)
    return found | ({"mean\nof ten": (100 * mean, 0.0)} if mean is not None else {})


def draw(measured, path):
    """Writes the article's figure 5 as a PNG: per cent of correct responses by task, a panel without and one with
    features, and after the tasks the mean of the ten; the legend has its value.

    Args:
        measured: As of `records`.
        path: The picture.
    """
    from matplotlib.figure import Figure  # takes a second

    labels = [f"T{task}{kind}" for kind in ("", "-OOV") for task in range(1, 6)] + ["T6", "mean\nof ten"]
    figure = Figure(figsize=(14, 3.6), layout="constrained")
    for axes, (title, models) in zip(figure.subplots(1, 2, sharey=True), PANELS.items(), strict=True):
        width = 0.8 / len(models)
        for number, (model, recipe) in enumerate(models.items()):
            found = bars(measured, recipe)
            places = [labels.index(label) + (number + 0.5) * width - 0.4 for label in found]
            heights, errors = [mean for mean, _ in found.values()], [deviation for _, deviation in found.values()]
            mean = f", mean of ten {heights[-1]:.1f}" if labels[-1] in found else ""
            axes.bar(places, heights, width, yerr=errors, label=f"{model}{mean}", color=COLORS[model], capsize=1)
        axes.set_xticks(range(len(labels)), labels, fontsize=7)
        axes.set_title(title, fontsize=9)
        axes.set_ylim(0, 115)
        axes.legend(fontsize=7, loc="upper center", ncols=len(models))
    figure.axes[0].set_ylabel("correct responses, per cent")
    with atomic_file(path, "wb") as file:
        figure.savefig(file, format="png", dpi=100)
