"""Passages of questions for training: with an added sentence, or without the answers.

The settings `added_sentences`, `question_words` and `removed_answers` are the probabilities of
these changes, see `training.Training`.
"""

from typing import NamedTuple

from colloquy.tasks.reading_comprehension.second_contexts import sentence_bounds


class Passage(NamedTuple):
    """A passage as training reads it."""

    tokens: list[int]
    """Its words, numbers of the split's `tokens`."""
    spans: list[list[int]]
    """Indices of the first and the last word of each answer."""


def draw_own_passage(split, row, training, rng):
    """The passage of question `row`, by chance with a sentence that does not answer it."""
    passage = Passage(split.context_tokens(row), split.spans[row])
    if rng.random() >= training.added_sentences:
        return passage
    if rng.random() < training.question_words:
        sentence = split.misleading_sentences.draw(row, rng)
    else:
        sentence = split.other_sentences[row]
    return with_sentence(split, row, passage, sentence, rng)


def draw_passage_without_answer(split, row, second, training, rng):
    """A passage that does not answer question `row`: context number `second`.

    By chance, it is the question's own passage without the answers, if that can be made.
    """
    if rng.random() < training.removed_answers:
        sentence = split.misleading_sentences.draw(row, rng)
        passage = without_answer(split, row, sentence)
        if passage:
            return passage
    [tokens] = split.contexts.lists([second])
    return Passage(tokens, [])


def with_sentence(split, row, passage, sentence, rng):
    """Puts a sentence before the passage of question `row`, after it or between two sentences.

    It is not put inside an answer.
    """
    bounds = sentence_bounds(split, split.context_of_question[row])
    places = [start for start, _ in bounds] + [len(passage.tokens)]
    for first, last in passage.spans:
        places = [place for place in places if not first < place <= last]
    place = _draw_place(places, rng)

    spans = []
    for first, last in passage.spans:
        shift = len(sentence) if first >= place else 0
        spans.append([first + shift, last + shift])
    return Passage([*passage.tokens[:place], *sentence, *passage.tokens[place:]], spans)


def _draw_place(places, rng):
    """Draws the first place, the last place or one between, with probability 1/3 each.

    Of fewer than three places, it is always the last one.
    """
    choice = rng.integers(3)
    if choice == 0 or len(places) < 3:
        return places[-1]
    if choice == 1:
        return places[0]
    return places[1 + rng.integers(len(places) - 2)]


def without_answer(split, row, sentence):
    """The passage of question `row` with `sentence` in place of the one that has the answers.

    Returns `None` if `sentence` is empty, if no single sentence has all answers, or if the new
    passage still has an answer.
    """
    own_tokens = split.context_tokens(row)
    spans = split.spans[row]
    first_answer = min(first for first, _ in spans)
    last_answer = max(last for _, last in spans)
    for start, end in sentence_bounds(split, split.context_of_question[row]):
        if sentence and start <= first_answer and last_answer < end:
            tokens = [*own_tokens[:start], *sentence, *own_tokens[end:]]
            text = _join_words(split, tokens)
            answers = [_join_words(split, own_tokens[first : last + 1]) for first, last in spans]
            if not any(answer in text for answer in answers):
                return Passage(tokens, [])
    return None


def _join_words(split, tokens):
    # The spaces at both ends let an answer match whole words only.
    words = [split.tokens.texts[token].lower() for token in tokens]
    return f" {' '.join(words)} "
