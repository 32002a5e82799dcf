"""The tables of README.md and docs/ that show models: by paper, by recipe, and those that are given away."""

import fnmatch
import json
import pathlib
import statistics

from engine.task import Recipe
from metrics.published import PUBLISHED
from metrics.tables import read_record
from models import MODELS
from tasks import RECIPES
from tasks.selection.retrieval.build import INDEX
from tools import markdown

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEASURED = ROOT / "results" / "measured"


def recipe_records(recipe):
    """The records of a `engine.task.Recipe`, or an empty list."""
    return [read_record(path) for path in sorted(MEASURED.glob(recipe.results))] if recipe.results else []


def recipe_score(recipe):
    """What `Recipe.score` should say."""
    records = recipe_records(recipe)
    return markdown.score_text(records, recipe.flags["epochs"]) if records else Recipe.score


def recipes(*models):
    """`recipes: MODEL MODEL`: the recipes of these models, with what they reached."""
    rows = [(name, recipe) for name, recipe in RECIPES.items() if recipe.model in models]
    lines = [[f"`{name}`", recipe.corpus, recipe.score] for name, recipe in rows]
    return markdown.markdown(["recipe", "corpus", "score"], lines)


PAPERS = (
    ("DAM", "[Zhou et al. 2018](https://aclanthology.org/P18-1103)", "dam-ubuntu-irc", ("ubuntu-v1", "DAM")),
    ("BiDAF", "[Seo et al. 2017](https://arxiv.org/abs/1611.01603)", "bidaf-squad", ("squad", "BiDAF, single (dev)")),
    (
        "Seq2seq, Luong's dot attention",
        "[Luong et al. 2015](https://aclanthology.org/D15-1166)",
        "chat-dot",
        ("dailydialog", "Attn-Seq2Seq (test)"),
    ),
    (
        "Seq2seq, additive attention",
        "[Bahdanau et al. 2015](https://arxiv.org/abs/1409.0473)",
        "chat-additive",
        ("dailydialog", "Attn-Seq2Seq (test)"),
    ),
    ("MEMMA", "[Ren et al. 2019](http://www.c-s-a.org.cn/csa/article/abstract/7057)", "babi-memma", None),
    ("MemN2N", "[Bordes et al. 2017](https://arxiv.org/abs/1605.07683)", "babi-memn2n", ("babi-*", "MemNN (test)")),
    (
        "Gated MemN2N",
        "[Liu and Perez 2017](https://aclanthology.org/E17-1001)",
        "babi-gmemn2n",
        ("babi-*", "GMemN2N (test)"),
    ),
    ("Entity MEMMA", "ours", "babi-entity-memma", None),
)
"""Rows of `models`: name, paper, recipe, and patterns of the published corpus and row to show beside it."""


def models():
    """`models`: each model with its paper, its recipe, our score, the published one and what each was measured on."""
    every = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    lines = []
    for name, paper, recipe, other in PAPERS:
        records = recipe_records(RECIPES[recipe])
        theirs = []
        if other:
            theirs = [row for row in every if fnmatch.fnmatchcase(row["corpus"], other[0])]
            theirs = markdown.chosen(theirs, other[1])
        minutes = statistics.mean(map(markdown.minutes, records))
        took = f"{minutes:.0f}" if minutes >= 1.5 else f"{minutes:.1f}"
        cells = [markdown.headline_text(group) if group else "" for group in (records, theirs)]
        lines.append([name, paper, f"`{recipe}`", *cells, took])
    return markdown.markdown(["model", "paper", "recipe", "ours", "published", "minutes"], lines)


def pretrained():
    """`pretrained`: each model of pretrained/ with the title of its card, its size, and its score on dev."""
    lines = []
    for card in sorted((ROOT / "pretrained").glob("*/README.md")):
        config, metrics = (
            json.loads((card.parent / name).read_text("utf-8")) for name in ("config.json", "metrics.json")
        )
        record = {"task": MODELS[config["model"]].task, "corpus": config["dataset"]["name"], "split": "dev"}
        title = card.read_text("utf-8").splitlines()[0].removeprefix("# ")
        files = [file for file in card.parent.rglob("*") if INDEX not in file.parts]  # chat.py builds it, on use
        size = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
        link = f"[`pretrained/{card.parent.name}`](pretrained/{card.parent.name}/README.md)"
        lines.append([link, title, markdown.headline_text([{**record, **metrics["dev"]}]), f"{size:.0f}"])
    return markdown.markdown(["run and card", "what it is", "score", "MB"], lines)
