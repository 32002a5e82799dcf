"""Questions on one's own text: the answer is shown in its sentence."""

import pathlib
import re

from rich.text import Text

from data.corpora.squad import tokenize

SENTENCE_END = re.compile("[.!?\u3002\uff01\uff1f]\\s+|\\n")


class ReadingComprehensionChat:
    """Answers questions on the paragraphs of a text.

    Args:
        predictor: A `tasks.reading_comprehension.predictor.ReadingComprehensionPredictor`.
    """

    HELP = "/read FILE  takes a text to ask about; its paragraphs are separated by empty lines"

    def __init__(self, predictor):
        self.predictor = predictor
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
        found = self.predictor.predict([{"passage": text, "question": question} for text in self.paragraphs])
        place = max(range(len(found)), key=lambda number: found[number]["score"])
        return place, found[place]["start"], found[place]["end"], found[place]["score"]
