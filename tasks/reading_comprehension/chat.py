"""Questions on one's own text: the answer is shown in its sentence."""

import pathlib
import re

from rich.text import Text

from colloquy.data.corpora.squad import tokenize
from colloquy.engine.chat import Chat, Note

UNKNOWN = 15  # per cent of words without a vector above which a remark is shown
# A line that begins in lower case continues the sentence of the line before.
SENTENCE_END = re.compile("[.!?\u3002\uff01\uff1f]\\s+|\\n(?!\\s*[a-z])\\s*")


class ReadingComprehensionChat(Chat):
    """Answers questions on the paragraphs of a text."""

    HELP = "/read FILE      takes a text to ask about; its paragraphs are separated by empty lines"
    paragraphs = ()

    def read(self, path=""):
        try:
            text = pathlib.Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return f"/read expects a UTF-8 text file. {error}"
        return self.take(text)

    def take(self, text):
        """Takes a text to ask about; empty lines end its paragraphs."""
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if tokenize(part)]
        if not paragraphs:
            return "There are no words in this text."
        self.paragraphs, self.last = paragraphs, None
        words = sum(len(tokenize(part)) for part in paragraphs)
        return f"{words:,} words in {len(paragraphs):,} paragraphs."

    def reply(self, question):
        """The answer of the highest confidence over all paragraphs, in its sentence, and remarks on
        it.
        """
        if not self.paragraphs:
            return [Note("Give me a text first: /read FILE")]
        if not tokenize(question):
            return [Note("Ask a question.")]
        asked = [{"passage": text, "question": question} for text in self.paragraphs]
        answers = self.predictor.predict(asked)
        measure = "score" if answers[0]["confidence"] is None else "confidence"
        best = max(range(len(answers)), key=lambda number: answers[number][measure])
        self.last = asked[best]
        return [_in_its_sentence(self.paragraphs[best], answers[best]), *_remarks(answers[best])]

    def explanation(self, found):
        """The likeliest first and last words, and the question's word that each of the answer
        attended to most.
        """
        probabilities, *flow = found["attention"]
        words, (start, end) = probabilities["columns"], probabilities["weights"]
        lines = []
        for name, row in (("first word", start), ("last word", end)):
            best = sorted(range(len(row)), key=row.__getitem__, reverse=True)[:3]
            lines.append(f"{name:10}  " + ", ".join(f"{words[i]} {row[i]:.2f}" for i in best))
        answer = [found["answer"][i:j] for i, j in tokenize(found["answer"])]
        places = [i for i in range(len(words)) if words[i : i + len(answer)] == answer]
        first = max(places, key=lambda i: start[i] * end[i + len(answer) - 1])
        for table in flow:
            if table["title"] == "passage attends to question":
                for word, row in zip(answer, table["weights"][first:], strict=False):
                    weight, other = max(zip(row, table["columns"], strict=True))
                    lines.append(f"{word:>20}  {weight:.2f}  {other}")
        return "\n".join(lines)


def _in_its_sentence(text, found):
    """The sentence of an answer, which is highlighted."""
    start, end = found["start"], found["end"]
    ends = [0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)]
    first, last = max(at for at in ends if at <= start), min(at for at in ends if at >= end)
    shown = Text(text[first:last].rstrip().replace("\n", " "))
    shown.stylize("bold reverse", start - first, end - first)
    return shown


def _remarks(found):
    sure = "" if found["confidence"] is None else f", confidence {100 * found['confidence']:.0f} %"
    yield Note(f"{found['answer']}  (score {found['score']:.1f}{sure})")
    if found["good"] is False:
        yield Note(
            "[The text may not answer this: on dev, 95 % of the correct answers have a higher confidence.]"
        )
    if found["unknown_percent"] >= UNKNOWN:
        yield Note(
            f"[The model has no vector for {found['unknown_percent']:.0f} % of these words.]"
        )
