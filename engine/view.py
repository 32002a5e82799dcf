"""Examples as a model sees them: which words it reads, which of them it does not know, and which are the answer.

`tasks/<task>/view.py` has `lines_of(dataset, split, number, settings)`, the `Line`s of an example of a split, by the
settings of a model and its training, `{field: value}`, or as models are by default, and `count(split)`.
"""

from typing import NamedTuple

from rich.text import Text

STYLES = {"unknown": "bold yellow", "cut": "strike dim", "answer": "bold reverse"}
SIGNS = {"unknown": "[{}]", "cut": "{{{}}}", "answer": "*{}*"}
LEGEND = {"unknown": "has no vector of its own", "cut": "is not read", "answer": "is the answer"}


class Word(NamedTuple):
    """A word of an example, or a token."""

    text: str
    known: bool = True
    """Whether the vocabulary has it."""
    read: bool = True
    """Whether it is among the words and turns that a model reads."""
    answer: bool = False
    """Whether it belongs to the answer."""

    @property
    def marks(self):
        """Keys of `STYLES`."""
        found = {"unknown": not self.known, "cut": not self.read, "answer": self.answer}
        return [name for name, holds in found.items() if holds]


class Line(NamedTuple):
    """Words that belong together."""

    label: str
    """What they are, as `turn 1`."""
    words: list[Word]


def render(lines, colored):
    """The lines of an example.

    Args:
        lines: List of `Line`.
        colored: Whether words are marked by colors, else by signs.

    Returns:
        A `rich.text.Text`.

    >>> words = [Word("i"), Word("like"), Word("zorbs", known=False), Word(".", read=False)]
    >>> print(render([Line("turn 1", words), Line("response", [Word("really", known=False, answer=True)])], False))
    turn 1     i like [zorbs] {.}
    response   *[really]*
    """
    width = max((len(line.label) for line in lines), default=0) + 3
    return Text("\n").join(
        Text.assemble((line.label.ljust(width), "bold cyan"), Text(" ").join(_shown(w, colored) for w in line.words))
        for line in lines
    )


def legend(colored):
    """What the marks of `render` mean."""
    parts = [Text.assemble(_marked("word", [mark], colored), f" {meaning}") for mark, meaning in LEGEND.items()]
    return Text(", ").join(parts)


def _shown(word, colored):
    return _marked(word.text, word.marks, colored)


def _marked(text, marks, colored):
    if colored:
        return Text(text, " ".join(STYLES[mark] for mark in marks))
    for mark in marks:
        text = SIGNS[mark].format(text)
    return Text(text)
