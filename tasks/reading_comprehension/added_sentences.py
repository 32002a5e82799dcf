"""Scores of questions on passages with a misleading sentence at their end.

Training puts such sentences at several places, see `misleading`; evaluation always does the same.
"""

import dataclasses

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.batching import evenly_spaced
from colloquy.data.sequences import Sequences
from colloquy.engine.scoring import Group
from colloquy.tasks.reading_comprehension.misleading import without_question_mark
from colloquy.tasks.reading_comprehension.scoring import score_split
from colloquy.tasks.reading_comprehension.second_contexts import SENTENCE_WORDS, draw_sentence

MAX_COMPARED = 2000
"""Most questions that `by_added_sentence` asks with and without a misleading sentence."""


def by_added_sentence(model, split, progress=iter, length_multiple=4):
    """The metrics of questions on passages as they are and with a misleading sentence.

    Returns two `Group`s, named by what is added.
    """
    rows, misled = add_sentences(split, evenly_spaced(len(split), MAX_COMPARED))
    as_they_are = split.asked_of(rows, split.context_of_question[rows])
    groups = []
    for name, asked in (("nothing", as_they_are), ("a misleading sentence", misled)):
        metrics = score_split(model, asked, progress=progress, length_multiple=length_multiple)
        groups.append(Group(name, len(asked), metrics))
    return groups


def add_sentences(split, rows):
    """Puts a misleading sentence at the end of the passages of questions `rows`.

    The sentence is drawn from the second contexts of the question. The words of the question are
    put before its last sign.

    Returns:
        The questions with such a sentence, some of `rows`.
        A split of these questions on the new passages.

    Raises:
        UserError: The second contexts of all these questions have no such sentence.
    """
    rng = np.random.default_rng(1)
    kept_rows = []
    contexts = []
    texts = []
    offsets = []
    for row in rows:
        sentence = draw_sentence(split, row, rng)
        if not sentence:
            continue
        *words, last_sign = sentence
        added = [*words, *without_question_mark(split, row), last_sign]
        text, offsets_of_words = _text_with_words(split, row, added)
        kept_rows.append(row)
        contexts.append([*split.context_tokens(row), *added])
        texts.append(text)
        offsets.append(offsets_of_words)
    if not kept_rows:
        low, high = SENTENCE_WORDS[0], SENTENCE_WORDS[-1]
        raise UserError(
            f"misleading sentences: expected sentences of {low} to {high} words in other passages "
            "of the questions' articles. Received: none"
        )

    # Question i of the new split is asked of the new passage i.
    asked = split.asked_of(np.array(kept_rows, int), np.arange(len(kept_rows)))
    misled = dataclasses.replace(
        asked, contexts=Sequences.of(contexts), texts=texts, offsets=Sequences.of(offsets)
    )
    return kept_rows, misled


def _text_with_words(split, row, added):
    """The passage of question `row`, with the tokens `added` at its end, each after a space.

    Returns the text, and its offsets in the form of `ReadingSplit.offsets`.
    """
    context = split.context_of_question[row]
    text = split.texts[context]
    [offsets] = split.offsets.lists([context])
    for token in added:
        start = len(text) + 1
        text = f"{text} {split.tokens.texts[token]}"
        offsets += [start, len(text)]
    return text, offsets
