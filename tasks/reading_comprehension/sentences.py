"""Sentences of contexts, which training and evaluation add to other contexts."""

import re

import numpy as np

from colloquy.tasks.reading_comprehension.second_contexts import (
    NONE,
    content_words,
    shared_words,
)

SENTENCE_WORDS = range(5, 41)
"""Allowed numbers of words and signs of a sentence that is added to another context."""
_SENTENCE_END = re.compile(r"[.!?]\s+")


def sentence_ends(split, context):
    """The index of the word after each sentence; the last one is the number of words.

    For example, [4, 7] for "Ann is here. Bob too."
    """
    text = split.texts[context]
    [offsets] = split.offsets.lists([context])
    # The offsets alternate between the start and the end of a word.
    ends_of_words = np.array(offsets[1::2])
    ends = []
    for match in _SENTENCE_END.finditer(text):
        end_of_sentence = match.start() + 1
        num_words = (ends_of_words <= end_of_sentence).sum()
        ends.append(int(num_words))
    return [*ends, len(ends_of_words)]


def sentences_of(split, context):
    """The tokens of each sentence of a context whose number of words is in `SENTENCE_WORDS`."""
    [tokens] = split.contexts.lists([context])
    sentences = []
    first = 0
    for end in sentence_ends(split, context):
        if end - first in SENTENCE_WORDS:
            sentences.append(tokens[first:end])
        first = end
    return sentences


def draw_sentence(split, row, rng):
    """Draws a sentence of the second contexts of question `row`.

    Returns its tokens, an empty list if these contexts have no sentence.
    """
    sentences = []
    for context in split.second_contexts[row]:
        if context != NONE:
            sentences += sentences_of(split, context)
    if not sentences:
        return []
    return sentences[rng.integers(len(sentences))]


def sentences_to_add(split):
    """Finds the sentence of each question's second contexts that shares most words with it.

    Returns:
        The tokens of a sentence for each question; none if its second contexts have no sentence.
    """
    # Many questions have the same second contexts, so each context is read once.
    sentences_by_context = {NONE: []}
    for context in np.unique(split.second_contexts).tolist():
        if context != NONE:
            sentences = sentences_of(split, context)
            words = [content_words(split.tokens, sentence) for sentence in sentences]
            sentences_by_context[context] = list(zip(sentences, words, strict=True))

    chosen = []
    for row, contexts in enumerate(split.second_contexts.tolist()):
        question = content_words(split.tokens, split.question_tokens(row))
        best = []
        most_shared = -1.0
        for context in contexts:
            for sentence, words in sentences_by_context[context]:
                shared = shared_words(question, words)
                if shared > most_shared:
                    most_shared = shared
                    best = sentence
        chosen.append(best)
    return chosen
