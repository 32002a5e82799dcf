"""Encodes the questions of a corpus as `reading.pkl` has them, see `prepare`."""

import itertools

from colloquy.base.files import UserError
from colloquy.data.offsets import read_text, tokens_of_span
from colloquy.tasks.reading_comprehension.tokens import number_tokens


class Encoder:
    """Encodes questions, and collects the distinct tokens and contexts."""

    def __init__(self):
        self.tokens = {}
        """`{token: number}`, from 1, in the order of their first occurrence."""
        self.contexts = []
        """The distinct contexts, each a dict of `reading.pkl`."""
        self.context_numbers = {}
        """`{text: index in contexts}`"""

    def encode(self, question):
        """Makes the dict of a question of `data.corpora.squad`; `spans` may be empty."""
        number = self._number_context(question)
        flat_offsets = self.contexts[number]["offsets"]
        offsets = list(zip(flat_offsets[0::2], flat_offsets[1::2], strict=True))

        answers = [question.context[start:end] for start, end in question.answers]
        spans = [tokens_of_span(offsets, start, end) for start, end in question.answers]
        return {
            "id": question.id,
            "context": number,
            "question": question.text,
            "tokens": number_tokens(read_text(question.text).words, self.tokens),
            # Dicts drop repetitions and keep the order. An answer without words has no span.
            "answers": list(dict.fromkeys(answers)),
            "spans": [list(span) for span in dict.fromkeys(spans) if span],
        }

    def _number_context(self, question):
        """The index of a question's context, which is encoded when it occurs first."""
        text = question.context
        if text in self.context_numbers:
            return self.context_numbers[text]

        context = read_text(text)
        if not context.words:
            raise UserError(
                f"question {question.id}: expected words in its context. Received: {text!r:.60}"
            )
        number = len(self.contexts)
        self.context_numbers[text] = number
        self.contexts.append(
            {
                "text": text,
                "tokens": number_tokens(context.words, self.tokens),
                "offsets": list(itertools.chain(*context.offsets)),
                "article": question.article,
            }
        )
        return number
