"""The questions of a split that a scale of confidence is fitted to and measured on, each with a
second passage that does not answer it.
"""

from typing import NamedTuple

import numpy as np

from colloquy.data.batching import evenly_spaced
from colloquy.tasks.reading_comprehension.second_contexts import NONE, SecondContexts

QUESTIONS = 2000
"""Largest number of questions."""


class SecondPassages(NamedTuple):
    """Questions, each with a second passage that does not answer it; all arrays are `(N,)`."""

    rows: np.ndarray
    """Indices of the questions."""
    contexts: np.ndarray
    """Their second passages."""
    is_same_article: np.ndarray
    """True if the second passage is from the same article as the question's own passage."""
    is_fitted: np.ndarray
    """True if the scale is fitted to the question, false if it is measured on it. All questions of
    an article have the same value."""


def choose_second_passages(split):
    """Chooses the second passage that shares most words with each question.

    Every second question gets a passage of its own article if there is one, the others get one of
    another article. Questions without a second passage are left out.
    """
    search = SecondContexts(split)
    rows = []
    contexts = []
    is_same_article = []
    for place, row in enumerate(evenly_spaced(len(split), QUESTIONS)):
        same_article = NONE
        if place % 2 == 1:
            same_article = split.second_contexts[row, 0]
        if same_article != NONE:
            context = same_article
        else:
            context = search.of_other_articles(row)
        if context != NONE:
            rows.append(row)
            contexts.append(context)
            is_same_article.append(same_article != NONE)

    # Articles are numbered 0, 1, 2, and so on; the scale is fitted to those with even numbers.
    article_of_question = split.articles[split.context_of_question]
    _, article_numbers = np.unique(article_of_question, return_inverse=True)
    return SecondPassages(
        rows=np.array(rows, int),
        contexts=np.array(contexts, int),
        is_same_article=np.array(is_same_article, bool),
        is_fitted=article_numbers[rows] % 2 == 0,
    )
