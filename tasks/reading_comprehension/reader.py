"""Reads passages and questions: texts in, arrays out.

A passage and its question are tokenized once, as a `TokenizedInstance`. Checks, counts of words,
the model's inputs, answers and explanations use that.
"""

from typing import NamedTuple

import numpy as np

from colloquy.data.offsets import TokenizedText, read_text
from colloquy.data.sequences import Sequences
from colloquy.data.tokenizers import spoken_words
from colloquy.tasks.reading_comprehension.questions import Questions
from colloquy.tasks.reading_comprehension.tokens import Tokens, number_tokens

FREQUENT_WORDS = frozenset(
    "the of and a to in is was for on that by with as at from it are or an be this which".split()
)
"""English has many of these in every text, other languages hardly any."""
LEAST_FREQUENT = 0.05
"""The fraction of frequent words below which a text does not seem to be English."""
LEAST_WORDS = 20
"""Words of a passage from which its language is judged."""


class TokenizedInstance(NamedTuple):
    """A passage and a question on it, tokenized."""

    passage: TokenizedText
    question: TokenizedText

    @classmethod
    def of(cls, passage, question):
        """Tokenizes two texts."""
        return cls(read_text(passage), read_text(question))

    def remark(self):
        """A sentence if the passage does not seem to be English; otherwise `None`.

        >>> german = "Die Fähre fährt von Montag bis Freitag um acht und um zehn Uhr nach Norden. "
        >>> TokenizedInstance.of(2 * german, "When does the ferry leave?").remark()
        'The text does not seem to be English, the only language that this model reads.'
        >>> english = "The ferry leaves on Monday at eight and at ten. "
        >>> TokenizedInstance.of(2 * english, "When does the ferry leave?").remark()
        """
        words = [word.lower() for word in self.passage.words if word[0].isalpha()]
        frequent = sum(word in FREQUENT_WORDS for word in words)
        if len(words) < LEAST_WORDS or frequent >= LEAST_FREQUENT * len(words):
            return None
        return "The text does not seem to be English, the only language that this model reads."


class Reader:
    """Makes the arrays of a model with a vocabulary of words and one of characters."""

    def __init__(self, vocabulary, characters):
        self.vocabulary = vocabulary
        self.characters = characters

    def questions(self, instances):
        """The `Questions` of some `TokenizedInstance`s, each on its own passage."""
        numbers = {}
        contexts = []
        questions = []
        for instance in instances:
            contexts.append(number_tokens(instance.passage.words, numbers))
            questions.append(number_tokens(instance.question.words, numbers))
        return Questions(
            tokens=Tokens.of(list(numbers), self.vocabulary, self.characters),
            contexts=Sequences.of(contexts),
            context_of_question=np.arange(len(instances)),
            questions=Sequences.of(questions),
            spans=[[]] * len(instances),
        )

    def unknown_percent(self, instance):
        """The percentage of words without a vector; punctuation does not count."""
        spoken = spoken_words(instance.passage.words + instance.question.words)
        words = [word.lower() for word in spoken]
        unknown = self.vocabulary.encode(words).count(self.vocabulary.unk_id)
        return round(100 * unknown / max(len(words), 1), 1)
