"""Questions on one's own text: the answer is shown in its sentence."""

import pathlib
import re

import numpy as np
from rich.text import Text

from base.files import UserError
from data.corpora.squad import tokenize
from data.sequences import Sequences
from data.vocabulary import Vocabulary
from layers.span_search import best_spans
from tasks.reading_comprehension.batches import ReadingSplit, Tokens
from tasks.reading_comprehension.task import MAX_LENGTH

SENTENCE_END = re.compile("[.!?\u3002\uff01\uff1f]\\s+|\\n")


class Chat:
    """Answers questions on the paragraphs of a text.

    Args:
        run: A `engine.runs.Run` of a reading model.

    Raises:
        UserError: where the run lacks a file, or its files do not fit.
    """

    HELP = "/read FILE  takes a text to ask about; its paragraphs are parted by empty lines"

    def __init__(self, run):
        self.vocabulary = Vocabulary.load(run.path / "vocabulary.txt")
        self.characters = Vocabulary.load(run.path / "characters.txt")
        self.model = run.load_model()
        config = self.model.config
        if (config.vocabulary_size, config.characters) != (len(self.vocabulary), len(self.characters)):
            raise UserError(
                f"{run.path}: expected {config.vocabulary_size} words and {config.characters} characters. "
                f"Received: {len(self.vocabulary)} and {len(self.characters)}"
            )
        self.commands = {"/read": self.read}
        self.paragraphs = []

    def read(self, path=""):
        """Takes the text of a file; what it says of itself."""
        try:
            text = pathlib.Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return f"/read expects a UTF-8 text file. {error}"
        return self.take(text)

    def take(self, text):
        """Takes a text to ask about.

        Args:
            text: Any text; an empty line ends a paragraph.
        """
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text)]
        paragraphs = [part for part in paragraphs if tokenize(part)]
        if not paragraphs:
            return "There are no words in this text."
        self.paragraphs = paragraphs
        words = sum(len(tokenize(part)) for part in paragraphs)
        return f"{words:,} words in {len(paragraphs):,} paragraphs."

    def reply(self, question):
        """The answer that scores highest over all paragraphs.

        Returns:
            One line, the sentence with its answer highlighted, or what is missing.
        """
        if not self.paragraphs:
            return ["Give me a text first: /read FILE"]
        if not tokenize(question):
            return ["Ask a question."]
        place, start, end, score = self.answer(question)
        text = self.paragraphs[place]
        ends = [match.end() for match in SENTENCE_END.finditer(text)]
        first = max([at for at in ends if at <= start], default=0)
        last = min([at for at in ends if at >= end], default=len(text))
        shown = Text(text[first:last].strip())
        lead = len(text[first:last]) - len(text[first:last].lstrip())
        shown.stylize("bold reverse", start - first - lead, end - first - lead)
        return [shown, Text(f"{text[start:end]}  (score {score:.1f})", style="dim")]

    def answer(self, question):
        """Finds the best span.

        Returns:
            The paragraph's number, start and end of the answer in its text, and the sum of the two logits, which can be
            compared between paragraphs and questions of one model.
        """
        tokens = {}

        def encode(text):
            return [tokens.setdefault(text[i:j], len(tokens) + 1) for i, j in tokenize(text)]

        contexts = [encode(text) for text in self.paragraphs]
        query = encode(question)
        split = ReadingSplit(
            Tokens.of(list(tokens), self.vocabulary, self.characters),
            Sequences.of(contexts),
            self.paragraphs,
            [[place for span in tokenize(text) for place in span] for text in self.paragraphs],
            ids=[""] * len(contexts),
            context=np.arange(len(contexts)),
            questions=Sequences.of([query] * len(contexts)),
            answers=[[]] * len(contexts),
            spans=[[]] * len(contexts),
        )
        best = None
        for place in range(len(contexts)):
            inputs, _ = split.collate([place], multiple=16)
            first, last, score = best_spans(self.model.predict_on_batch(inputs), MAX_LENGTH)
            first, last, score = int(first[0, 0]), int(last[0, 0]), float(score[0, 0])
            offsets = split.offsets[place]
            if best is None or score > best[3]:
                best = place, offsets[2 * first], offsets[2 * last + 1], score
        return best
