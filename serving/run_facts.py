"""Describes a run to clients before its model is loaded."""

import functools

from markdown_it import MarkdownIt

from colloquy.base.config import Config
from colloquy.data.json_files import read_json
from colloquy.engine.records import Example
from colloquy.engine.run import CARD, PAGE


class Page(Config):
    """The optional file `page.json` of a run: how the web pages present it."""

    title: str = ""
    """Name in the list of models; default: model and corpus."""
    label: str = ""
    """Short name, such as a language, in a switch between the models of a task."""
    default: bool = False
    """True for the model that the pages select first for its task."""
    lead: str = ""
    """A sentence on the model's tab: the article, what it was trained on, and what to expect."""
    examples: list[Example] = []
    """Examples to try; without a `page.json`, those of `examples.json`."""


def describe_run(run):
    """Returns what clients may know about a run, a dict ready for JSON.

    It has task, model, corpus, note, `scores` (`{split: metrics}`), the fields of its `Page`, and
    `card`, its model card in Markdown.
    """
    page_file = run.path / PAGE
    if page_file.is_file():
        page = read_json(page_file, Page)
    else:
        page = Page(examples=run.examples())
    card_file = run.path / CARD
    card = card_file.read_text("utf-8", errors="replace") if card_file.is_file() else ""
    scores = {split: result["metrics"] for split, result in run.metrics().items()}
    corpus = run.dataset["name"]
    return {
        "task": run.task,
        "model": run.model,
        "corpus": corpus,
        "note": run.note,
        "scores": scores,
        **page.model_dump(),
        # It may be empty in `page.json`.
        "title": page.title or f"{run.model}, {corpus}",
        "card": card,
    }


# Each request for the card of a model renders the same text.
@functools.cache
def render_markdown(text):
    """Renders Markdown as HTML. HTML in the text is escaped.

    A link to `javascript:`, `vbscript:` or `file:` stays text, as does `data:` except for images.

    >>> render_markdown("# A <b>card</b>")
    '<h1>A &lt;b&gt;card&lt;/b&gt;</h1>\\n'
    """
    return MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
