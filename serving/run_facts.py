"""What clients are told of a run before its model is loaded: its page, its card and its scores."""

import functools

from markdown_it import MarkdownIt

from colloquy.base.config import Config
from colloquy.data.text_files import read_json
from colloquy.engine.records import Example
from colloquy.engine.run import CARD, PAGE

# Fields of a row of `history.jsonl` that are no metric.
PROGRESS = {"step", "epoch", "loss", "steps_per_second", "seconds"}
# The metric by which the best validation of each task is chosen.
MAIN_METRICS = ("R10@1", "F1", "per_response", "perplexity")


class Page(Config):
    """`page.json` of a run, which is optional: how the pages present it."""

    title: str = ""
    label: str = ""
    """Short name, such as a language, in a switch between the models of a task."""
    default: bool = False
    """True: the pages open with this model of its task."""
    lead: str = ""
    """The sentence of its tab: the article, what it was trained on, and what to expect."""
    examples: list[Example] = []


def describe_run(run):
    """Where a run comes from, its scores, the text of its model card, and its page."""
    page_file = run.path / PAGE
    if page_file.is_file():
        page = read_json(page_file, Page)
    else:
        page = Page(examples=run.examples())
    card_file = run.path / CARD
    card = ""
    if card_file.is_file():
        card = card_file.read_text(encoding="utf-8", errors="replace")
    corpus = run.dataset.get("name") or ""
    return {
        "task": run.task,
        "model": run.model,
        "corpus": corpus,
        "note": run.note,
        "scores": _scores(run),
        **page.model_dump(),
        "title": page.title or f"{run.model}, {corpus or None}",
        "card": card,
    }


@functools.cache
def render_markdown(text):
    """Renders Markdown as HTML. Markup in the text stays text, and links have safe schemes alone.

    >>> render_markdown("# A <b>card</b>")
    '<h1>A &lt;b&gt;card&lt;/b&gt;</h1>\\n'
    """
    return MarkdownIt("commonmark", {"html": False}).enable("table").render(text)


def _scores(run):
    """The metrics of the splits that evaluate.py scored; without dev, of the best validation."""
    scores = {split: record["metrics"] for split, record in run.metrics().items()}
    best = _best_validation(run)
    if best and "dev" not in scores:
        scores["dev"] = best
    return scores


def _best_validation(run):
    rows = []
    for row in run.history():
        metrics = {name: value for name, value in row.items() if name not in PROGRESS}
        if metrics:
            rows.append(metrics)
    for metric in MAIN_METRICS:
        scored = [row for row in rows if metric in row]
        if scored:
            choose = min if metric == "perplexity" else max
            return choose(scored, key=lambda row: row[metric])
    return None
