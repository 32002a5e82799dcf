"""A chat with a generation model."""

import pathlib

import numpy as np

from base.files import UserError
from data.tokenizers import TOKENIZERS, normalize
from data.vocabulary import EOS_ID, UNK_ID, Vocabulary
from models.decoding import Decoder, Decoding
from tasks.generation.batches import LENGTHS
from tasks.generation.search import attention, reply_to, words_of

SHADES = " .:-=+*#%@"
CJK_FONTS = ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "SimHei", "PingFang SC")


class Chat:
    """Answers what is said, in view of what was said before.

    Args:
        run: A `engine.runs.Run` of a generation model.
        seed: Of sampling; each answer goes on drawing.

    Raises:
        UserError: where the run lacks a file, or its files do not fit.
    """

    HELP = """/beam N         looks for the likeliest reply among N, and shows all N (1: greedy search)
/sample T       draws replies at temperature T
/attention      shows where the model looked when it wrote its last reply; with a name, as a picture: /attention a.png
/reset          forgets what was said"""

    def __init__(self, run, seed=1):
        self.vocabulary = Vocabulary.load(run.path / "vocabulary.txt")
        self.model = run.load_model()
        if self.model.config.vocabulary_size != len(self.vocabulary):
            raise UserError(
                f"{run.path}: expected {self.model.config.vocabulary_size} words. Received: {len(self.vocabulary)}"
            )
        text = run.config["dataset"]["text"]
        self.tokenizer, self.lower, self.turns = TOKENIZERS[text["tokenizer"]], text["lower"], text["turns"]
        self.rng, self.said, self.last = np.random.default_rng(seed), [], None
        self._decode_by(Decoding())
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
        self.said.append(self.tokenizer.tokenize(normalize(text, self.lower)))
        turns = [words for words in self.said if words][-self.turns :]
        source = [word for words in turns for word in (*words, "_EOS_")] or ["_EOS_"]
        ids = [id for words in turns for id in (*self.vocabulary.encode(words), EOS_ID)] or [EOS_ID]
        source, ids = source[-LENGTHS["max_source"] :], ids[-LENGTHS["max_source"] :]
        found, scores = reply_to(self.decoder, ids, self.rng)
        replies = [words_of(each, self.vocabulary) for each in found]
        self.said.append(replies[0])
        self.last = source, ids, found[0]
        texts = [self.tokenizer.detokenize(words) for words in replies]
        if len(texts) == 1:
            return texts
        return [f"{text}  ({score:.1f})" for text, score in zip(texts, scores, strict=True)]

    def _decode_by(self, decoding):
        self.decoder = Decoder(self.model, decoding, EOS_ID, UNK_ID)

    # === Commands ===

    def beam(self, argument=""):
        """Looks for replies by a beam."""
        if not argument.isdecimal() or not 0 < int(argument) <= 100:
            return f"/beam expects a number from 1 to 100. Received: {argument}"
        beam = int(argument)
        self._decode_by(Decoding(beam=beam, length_penalty=1.0))
        return f"beam of {beam}" if beam > 1 else "greedy search"

    def sample(self, argument=""):
        """Draws replies."""
        try:
            self._decode_by(Decoding(sample=True, temperature=float(argument or 1.0)))
        except ValueError:
            return f"/sample expects a temperature above 0, as 0.7. Received: {argument}"
        return f"sampling at temperature {self.decoder.decoding.temperature:g}"

    def reset(self, _=""):
        """Forgets what was said."""
        self.said, self.last = [], None
        return "forgotten"

    def attention(self, path=""):
        """Where the model looked when it wrote its last reply, as text, or as a picture in a PNG file."""
        if self.last is None:
            return "Say something first."
        source, ids, found = self.last
        weights = attention(self.model, ids, found)
        if weights is None:
            return "This model has no attention."
        written = words_of(found, self.vocabulary)
        written += ["_EOS_"] * (len(weights) - len(written))
        if not path:
            return heat_map(weights, source, written)
        return draw(weights, source, written, pathlib.Path(path))


def heat_map(weights, source, target):
    """Attention weights as text: a row a written word, a column a word of the source, darker where it looked more.

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
