"""Passages with a sentence that misleads a reader, in the manner of Jia and Liang 2017 (AddSent).

Theirs are written by hand. Here the sentence is from another passage of the article, which does not
have the answer, and the words of the question are put before its last sign:

    The abbey was closed in 1789 who built the first bridge over the river.
"""

import dataclasses

import numpy as np

from colloquy.data.offsets import tokenize
from colloquy.data.sequences import Sequences
from colloquy.tasks.reading_comprehension.second_contexts import (
    CANDIDATES,
    SecondContexts,
    sentences_of,
)


def add_sentences(split, rows, seed=1):
    """Returns questions `rows` of a split, each asked of its passage and a misleading sentence.

    The sentence is drawn from those of the passages of the article that share most words with the
    question. Questions without such a sentence are left out.
    """
    rng = np.random.default_rng(seed)
    second_contexts = SecondContexts(split)
    kept = []
    texts = []
    tokens = []
    offsets = []
    for row in rows:
        sentences = []
        for context in second_contexts.of_same_article(row, CANDIDATES):
            sentences += sentences_of(split, context)
        if not sentences:
            continue
        sentence = sentences[rng.integers(len(sentences))]
        text, numbers, places = _with_sentence(split, row, sentence)
        kept.append(row)
        texts.append(text)
        tokens.append(numbers)
        offsets.append(places)

    asked = split.asked_of(np.array(kept, int), np.arange(len(kept)))
    return dataclasses.replace(
        asked,
        contexts=Sequences.of(tokens),
        texts=texts,
        offsets=Sequences.of(offsets),
        articles=split.articles[split.context[kept]],
    )


def _with_sentence(split, row, sentence):
    """The text, the token numbers and the offsets of a passage with a sentence after it."""
    context = split.context[row]
    text = split.texts[context]
    [numbers] = split.contexts.lists([context])
    [places] = split.offsets.lists([context])

    sentence_text = split.texts[sentence.context]
    [sentence_numbers] = split.contexts.lists([sentence.context])
    [sentence_places] = split.offsets.lists([sentence.context])
    pieces = []
    for word in range(sentence.first, sentence.end):
        start, end = sentence_places[2 * word : 2 * word + 2]
        pieces.append((sentence_text[start:end], sentence_numbers[word]))

    question = split.question_texts[row]
    [question_numbers] = split.questions.lists([row])
    question_pieces = []
    for (start, end), number in zip(tokenize(question), question_numbers, strict=True):
        if question[start:end] != "?":
            question_pieces.append((question[start:end], number))
    pieces = [*pieces[:-1], *question_pieces, pieces[-1]]

    for piece, number in pieces:
        text = f"{text} {piece}"
        numbers = [*numbers, number]
        places = [*places, len(text) - len(piece), len(text)]
    return text, numbers, places
