"""Training batches of questions that are asked twice: of their own contexts, which have the
answers, and of second contexts, which do not.

`losses.shared_norm_loss` is their loss. Some contexts are changed by sentences that mislead a
model, see `misleading`.
"""

from typing import NamedTuple

import numpy as np

from colloquy.data.batching import batches_by_size
from colloquy.tasks.reading_comprehension.passages import (
    Passage,
    own_passage,
    with_sentence,
    without_answer,
)
from colloquy.tasks.reading_comprehension.second_contexts import NONE
from colloquy.tasks.reading_comprehension.training import Training


class TwoContexts(NamedTuple):
    """A batch of questions, each asked of two contexts."""

    rows: np.ndarray
    """Indices of the questions, int `(Q,)`."""
    second: np.ndarray
    """The second context of each question, int `(Q,)`."""
    training: Training
    seed: int
    """Seed of the random changes of contexts."""

    def collate(self, split, multiples):
        """Makes the arrays of a batch of a `ReadingSplit`, see `Questions.collate`."""
        questions = ask_twice(split, self)
        rows = np.arange(len(questions))
        windows = questions.windows_of_answers(rows, self.training.max_context)
        return questions.collate(rows, windows, self.training.max_question, multiples)


def shared_norm_batches(split, rows, training, rng):
    """The batches of an epoch of questions `rows`, a list of `TwoContexts`.

    Questions without a second context are left out. The contexts of a batch are padded to one
    length, so of two drawn second contexts the one is taken whose length is nearer to that of the
    question's own context.
    """
    one = _draw_second_contexts(split, rng)
    other = _draw_second_contexts(split, rng)
    rows = rows[one[rows] != NONE]

    lengths = split.contexts.lengths
    own_length = lengths[split.context_of_question[rows]]
    difference_of_one = np.abs(lengths[one[rows]] - own_length)
    difference_of_other = np.abs(lengths[other[rows]] - own_length)
    is_other_nearer = difference_of_other < difference_of_one
    second = np.where(is_other_nearer, other[rows], one[rows])

    sizes = np.maximum(own_length, lengths[second])[:, None]
    batches = []
    for batch in batches_by_size(sizes, training.batch_size, rng):
        seed = int(rng.integers(2**32))
        batches.append(TwoContexts(rows[batch], second[batch], training, seed))
    return batches


def _draw_second_contexts(split, rng):
    """Draws a second context for each question, int `(questions,)`; `NONE` where there is none."""
    # A row of `second_contexts` is the contexts of a question, then `NONE`: [7, 4, -1, -1]. The
    # choice is among the first two of this row. In a row of `NONE` alone, it is the first.
    num_choices = (split.second_contexts != NONE).sum(axis=1)
    choice = rng.integers(np.maximum(num_choices, 1))
    return split.second_contexts[np.arange(len(split)), choice]


def ask_twice(split, batch):
    """Returns the `Questions` of `TwoContexts`: row 2i is a question on its own context, row 2i + 1
    the same question on its second context.
    """
    rng = np.random.default_rng(batch.seed)
    passages = []
    for row, second in zip(batch.rows.tolist(), batch.second.tolist(), strict=True):
        passages.append(_own_passage(split, row, batch.training, rng))
        passages.append(_passage_without_answer(split, row, second, batch.training, rng))
    return split.on_passages(np.repeat(batch.rows, 2), passages)


def _own_passage(split, row, training, rng):
    """The passage of a question, by chance with a sentence that does not answer it."""
    passage = own_passage(split, row)
    has_added_sentence = rng.random() < training.added_sentences
    if not has_added_sentence:
        return passage
    is_misleading = rng.random() < training.question_words
    if is_misleading:
        sentence = split.misleading_sentences.draw(row, rng)
    else:
        sentence = split.other_sentences[row]
    return with_sentence(split, row, passage, sentence, rng)


def _passage_without_answer(split, row, second, training, rng):
    """The second context of a question; by chance its own passage with the answer removed."""
    is_own_passage = rng.random() < training.removed_answers
    if is_own_passage:
        sentence = split.misleading_sentences.draw(row, rng)
        passage = without_answer(split, row, sentence)
        if passage:
            return passage
    [tokens] = split.contexts.lists([second])
    return Passage(tokens, [])
