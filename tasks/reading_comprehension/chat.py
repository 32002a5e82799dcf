"""Answers questions on a text of the user; an answer is shown in its sentence."""

import pathlib
import re

from rich.text import Text

from colloquy.data.offsets import read_text
from colloquy.engine.chat import Chat, Note

MIN_UNKNOWN_PERCENT = 15
"""The chat remarks on words without a vector if they are at least this percentage."""
# Only Latin sentence ends need a space behind them. A line that begins in lower case continues the
# sentence of the line before.
SENTENCE_END = re.compile(
    "[.!?]\\s+|[\u3002\uff01\uff1f][\u201d\u2019\u300d\u300f\uff09]*\\s*|\\n(?!\\s*[a-z])\\s*"
)


class ReadingComprehensionChat(Chat):
    """Answers questions on the paragraphs of a text."""

    HELP = "/read FILE      reads a text to ask about; its paragraphs are separated by empty lines"
    paragraphs = ()

    def read(self, path=""):
        """The command `/read`, which `Chat.commands` finds by `HELP`; returns a line to print."""
        if not path:
            return "/read expects the name of a UTF-8 text file."
        try:
            text = pathlib.Path(path).expanduser().read_text(encoding="utf-8-sig")
        except (OSError, RuntimeError, UnicodeDecodeError) as error:  # `~nobody`: RuntimeError
            return f"/read expects a UTF-8 text file. {error}"
        return self.take(text)

    def take(self, text):
        """Replaces the text to ask about; empty lines separate its paragraphs."""
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if read_text(part).words]
        if not paragraphs:
            return "There are no words in this text."
        self.paragraphs = paragraphs
        self.last = None  # `/explain` must not show an answer about the former text.
        words = sum(len(read_text(part).words) for part in paragraphs)
        return f"{words:,} words in {len(paragraphs):,} paragraphs."

    def reply(self, question):
        """The best answer in all paragraphs, highlighted in its sentence, and remarks on it."""
        if not self.paragraphs:
            return [Note("Give me a text first: /read FILE")]
        if not read_text(question).words:
            return [Note("Ask a question.")]
        asked = [{"passage": text, "question": question} for text in self.paragraphs]
        answers = self.predictor.predict(asked)
        # Confidence rises with the score, and a run may have no confidence.
        best = max(range(len(answers)), key=lambda number: answers[number]["score"])
        self.last = asked[best]
        sentence = _highlight_in_sentence(self.paragraphs[best], answers[best])
        return [sentence, *_remarks(answers[best])]

    def explanation(self, answer):
        """The likeliest first and last words."""
        probabilities, *_ = answer["attention"]
        words = probabilities["columns"]
        start_p, end_p = probabilities["weights"]
        lines = [_likeliest("first word", words, start_p), _likeliest("last word", words, end_p)]
        return "\n".join(lines)


def _likeliest(title, words, probabilities):
    """A line with the three likeliest words."""
    best = sorted(range(len(words)), key=lambda i: probabilities[i], reverse=True)[:3]
    texts = [f"{words[i]} {probabilities[i]:.2f}" for i in best]
    return f"{title:10}  " + ", ".join(texts)


def _highlight_in_sentence(text, answer):
    """The sentence of an answer, in which the answer is highlighted."""
    start = answer["start"]
    end = answer["end"]
    bounds = [0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)]
    first = max(bound for bound in bounds if bound <= start)
    last = min(bound for bound in bounds if bound >= end)
    sentence = Text(text[first:last].rstrip().replace("\n", " "))
    sentence.stylize("bold reverse", start - first, end - first)
    return sentence


def _remarks(answer):
    """The text of an answer with its confidence or score, then remarks on it."""
    measure = f"score {answer['score']:.1f}"
    if answer["verdict"] is not None:
        measure = f"{answer['verdict']}, confidence {100 * answer['confidence']:.0f} %"
    yield Note(f"{answer['answer']}  ({measure})")
    if answer["remark"]:
        yield Note(f"[{answer['remark']}]")
    unknown = answer["unknown_percent"]
    if unknown >= MIN_UNKNOWN_PERCENT:
        yield Note(f"[The model has no vector for {unknown:.0f} % of these words.]")
