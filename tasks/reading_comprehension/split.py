"""The questions of a split of a prepared dataset, with texts and reference answers."""

import dataclasses
import functools

import numpy as np

from colloquy.data.sequences import Sequences
from colloquy.tasks.reading_comprehension.misleading import MisleadingSentences
from colloquy.tasks.reading_comprehension.questions import Questions
from colloquy.tasks.reading_comprehension.second_contexts import (
    contexts_of_same_article,
    sentences_to_add,
)


@dataclasses.dataclass(frozen=True)
class ReadingSplit(Questions):
    """The questions of a split. The contexts are those of all splits."""

    texts: list[str]
    """The contexts as texts."""
    offsets: Sequences
    """For each context: the start of its first word, the end of it, the start of the second word,
    and so on, in characters.
    """
    articles: np.ndarray
    """Article of each context, int `(contexts,)`; a negative number of its own, where the dataset
    names none.
    """
    ids: list[str]
    """Id of each question in the corpus."""
    answers: list[list[str]]
    """Reference answers of each question."""
    question_texts: list[str]
    """The questions as they were asked."""

    @property
    def references(self):
        """`{question id: reference answers}`."""
        return dict(zip(self.ids, self.answers, strict=True))

    # Computed from the split when they are asked for.
    second_contexts = functools.cached_property(contexts_of_same_article)
    """Contexts that do not answer each question."""
    other_sentences = functools.cached_property(sentences_to_add)
    """A sentence of these contexts for each question."""
    misleading_sentences = functools.cached_property(MisleadingSentences)
    """Draws sentences with the words of a question."""

    def asked_of(self, rows, contexts):
        """Returns question `rows[i]`, asked of context `contexts[i]`, for each `i`.

        Answers and spans are not changed: they stay those of the question's own context.
        """
        return dataclasses.replace(
            self,
            context_of_question=contexts,
            questions=self.questions.take(rows),
            ids=[self.ids[row] for row in rows],
            answers=[self.answers[row] for row in rows],
            spans=[self.spans[row] for row in rows],
            question_texts=[self.question_texts[row] for row in rows],
        )

    def answer(self, row, first, last):
        """The text from word `first` to word `last` of the context of question `row`."""
        context = self.context_of_question[row]
        [offsets] = self.offsets.lists([context])
        # The start of word w is offset 2w, and its end offset 2w + 1.
        return self.texts[context][offsets[2 * first] : offsets[2 * last + 1]]
