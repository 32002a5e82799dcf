"""A chat with a generation model."""

import pathlib

import numpy as np

from models.decoding import Decoding

SHADES = " .:-=+*#%@"
CJK_FONTS = ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "SimHei", "PingFang SC")


class GenerationChat:
    """Answers what is said, in view of what was said before.

    Args:
        predictor: A `tasks.generation.predictor.GenerationPredictor`.
    """

    HELP = """/beam N         looks for the likeliest reply among N, and shows all N (1: greedy search)
/sample T       draws replies at temperature T
/attention      shows what the model attended to in its last reply; with a name, as a picture: /attention a.png
/reset          forgets what was said"""

    def __init__(self, predictor):
        self.predictor, self.said, self.last = predictor, [], None
        self.commands = {
            "/beam": self.beam,
            "/sample": self.sample,
            "/attention": self.attention,
            "/reset": self.reset,
        }

    def reply(self, text):
        """The replies to what was said, the best first; the best is remembered as said.

        Args:
            text: What the user says.

        Returns:
            List of texts.
        """
        self.said.append(text)
        found = self.predictor.explain({"turns": self.said})
        self.said.append(found["response"])
        self.last = found
        if len(found["best"]) == 1:
            return [found["response"]]
        return [f"{each['text']}  ({each['score']:.1f})" for each in found["best"]]

    # === Commands ===

    def beam(self, argument=""):
        """Looks for replies by a beam."""
        if not argument.isdecimal() or not 0 < int(argument) <= 100:
            return f"/beam expects a number from 1 to 100. Received: {argument}"
        beam = int(argument)
        self.predictor.decode_by(Decoding(beam=beam, length_penalty=1.0))
        return f"beam of {beam}" if beam > 1 else "greedy search"

    def sample(self, argument=""):
        """Draws replies."""
        try:
            self.predictor.decode_by(Decoding(sample=True, temperature=float(argument or 1.0)))
        except ValueError:
            return f"/sample expects a temperature above 0, as 0.7. Received: {argument}"
        return f"sampling at temperature {self.predictor.decoding.temperature:g}"

    def reset(self, _=""):
        """Forgets what was said."""
        self.said, self.last = [], None
        return "forgotten"

    def attention(self, path=""):
        """What the model attended to when it wrote its last reply, as text, or as a picture in a PNG file."""
        if self.last is None:
            return "Say something first."
        if not self.last["attention"]:
            return "This model has no attention."
        [found] = self.last["attention"]
        weights, source, written = np.array(found["weights"]), found["columns"], found["rows"]
        if not path:
            return heat_map(weights, source, written)
        return draw(weights, source, written, pathlib.Path(path))


def heat_map(weights, source, target):
    """Attention weights as text: a row a written word, a column a word of the source, darker where it attended more.

    Args:
        weights: Float `(T, S)`, in [0, 1].
        source, target: S and T words.

    >>> print(heat_map(np.array([[0.0, 1.0], [0.5, 0.5]]), ["a", "bc"], ["yes", "no"]))
        a bc
    yes   @@
     no + ++
    """
    width = max(map(len, target))
    lines = [" ".join([" " * width, *source])]
    for word, row in zip(target, weights, strict=True):
        shades = [SHADES[min(round(w * len(SHADES)), len(SHADES) - 1)] for w in row.tolist()]
        cells = [shade * len(column) for shade, column in zip(shades, source, strict=True)]
        lines.append(" ".join([word.rjust(width), *cells]).rstrip())
    return "\n".join(lines)


def draw(weights, source, target, path):
    """Writes attention weights as a PNG picture, in a font that has the words' characters where one is installed.

    Args:
        weights, source, target: As of `heat_map`.
        path: The file, which ends in `.png`.

    Returns:
        What was done, or why not.
    """
    if path.suffix != ".png":
        return f"/attention expects the name of a .png file. Received: {path}"
    from matplotlib import font_manager  # takes a second
    from matplotlib.figure import Figure

    installed = {font.name for font in font_manager.fontManager.ttflist}
    family = [name for name in CJK_FONTS if name in installed] + ["DejaVu Sans"]
    figure = Figure(figsize=(1.5 + 0.45 * len(source), 1.5 + 0.3 * len(target)), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Greys", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(source)), source, rotation=60, ha="right", family=family)
    axes.set_yticks(range(len(target)), target, family=family)
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        return f"{path}: expected a file that can be written. {error}"
    return f"{path} written"
