"""What clients are told of a run before its model is loaded: its page, its card and its scores."""

import functools

from markdown_it import MarkdownIt

from colloquy.base.config import Config
from colloquy.data.json_files import read_json
from colloquy.engine.records import Example
from colloquy.engine.run import CARD, PAGE


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
        "scores": {split: result["metrics"] for split, result in run.metrics().items()},
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
