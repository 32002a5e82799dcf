"""Sentences that mislead a model, and passages with such sentences, for training and evaluation.

Jia and Liang 2017 showed that a model finds its answer in an added sentence that has the words of
the question. Wang and Bansal 2018 showed that training prevents this if the places and the words of
such sentences vary. Here a misleading sentence is one of two:

- A sentence of another passage of the article. The question's words are put at its end, at its
  front or in place of some of its own words.
- The question as a statement. The asking word becomes the answer of another question, and names
  become other names.

For example, for the question "Where does Ann live?":

    The wheel of the mill is Where does Ann live .
    Bern does Bob live .

`add_sentences`, for evaluation, puts the question's words at the end of a sentence only.

Words are numbers of `questions.Tokens` in this file.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import UNK_ID
from colloquy.tasks.reading_comprehension.second_contexts import (
    FREQUENT,
    NONE,
    SENTENCE_WORDS,
    sentence_ends,
    sentences_of,
)

ASKING_WORDS = frozenset("what who whom whose when where which why how".split())
DROPPED_WORDS = (0.0, 0.0, 0.2, 0.4)
"""Fractions of the question's words that are left out; one is drawn for each sentence."""
REPLACED_WORDS = 0.3
"""Probability that a statement replaces a word that is not frequent.

A name is always replaced if the sentence has a name.
"""
DRAWS = 10
"""Largest number of draws to find another question that has no answer in common."""


class Passage(NamedTuple):
    """A passage as training reads it."""

    numbers: list[int]
    """Its words."""
    spans: list[list[int]]
    """Indices of the first and the last word of each answer."""


class MisleadingSentences:
    """Draws sentences for the questions of a `data.ReadingSplit`."""

    def __init__(self, split):
        self.split = split
        self.rows_of_asking_words = {}
        """`{asking word: rows of the questions with it}`; the asking word is a text or `None`."""
        for row, numbers in enumerate(split.questions.lists()):
            word = self._asking_word(numbers)
            self.rows_of_asking_words.setdefault(word, []).append(row)

    def draw(self, row, rng):
        """Draws a sentence that misleads question `row`.

        Returns its words, an empty list if the second contexts have no sentence.
        """
        sentence = _draw_sentence_words(self.split, self.split.second_contexts[row], rng)
        if not sentence:
            return []
        question = _question_words(self.split, row)
        *words, last_sign = sentence
        way = rng.choice(["end", "front", "inside", "statement"])
        if way == "statement":
            return [*self._statement(row, question, words, rng), last_sign]

        dropped = rng.choice(DROPPED_WORDS)
        question = [number for number in question if rng.random() >= dropped]
        if way == "end":
            return [*words, *question, last_sign]
        if way == "front":
            return [*question, *words, last_sign]
        start, end = sorted(rng.integers(len(words) + 1, size=2).tolist())
        return [*words[:start], *question, *words[end:], last_sign]

    def _statement(self, row, question, words, rng):
        """Makes a statement of a question, with the answer of another one and names of `words`."""
        asking_word = self._asking_word(question)
        statement = []
        has_changed = False
        other_words = [number for number in words if self._is_content(number)]
        other_names = [number for number in other_words if self._is_name(number)]
        for number in question:
            text = self.split.tokens.texts[number].lower()
            if text == asking_word:
                statement += self._draw_other_answer(row, asking_word, rng)
                # Only the first asking word is replaced.
                asking_word = None
            elif self._is_name(number) and other_names:
                statement.append(other_names[rng.integers(len(other_names))])
                has_changed = True
            elif self._is_content(number) and other_words and rng.random() < REPLACED_WORDS:
                statement.append(other_words[rng.integers(len(other_words))])
                has_changed = True
            else:
                statement.append(number)
        if not has_changed:
            # A statement without another word or name might be true.
            return [*statement, *words]
        return statement

    def _draw_other_answer(self, row, asking_word, rng):
        """Draws the answer of another question with the same asking word.

        Returns its words, an empty list if `DRAWS` draws find no such question.
        """
        rows = self.rows_of_asking_words[asking_word]
        own_answers = {answer.lower() for answer in self.split.answers[row]}
        for _ in range(DRAWS):
            other = rows[rng.integers(len(rows))]
            answers = {answer.lower() for answer in self.split.answers[other]}
            if not answers & own_answers:
                [numbers] = self.split.contexts.lists([self.split.context[other]])
                first, last = self.split.spans[other][0]
                return numbers[first : last + 1]
        return []

    def _asking_word(self, numbers):
        for number in numbers:
            word = self.split.tokens.texts[number].lower()
            if word in ASKING_WORDS:
                return word
        return None

    def _is_name(self, number):
        """True for a number, too."""
        first_character = self.split.tokens.texts[number][0]
        is_marked = first_character.isupper() or first_character.isdigit()
        return is_marked and self._is_content(number)

    def _is_content(self, number):
        word_id = self.split.tokens.words[number]
        return word_id == UNK_ID or word_id > FREQUENT


def _draw_sentence_words(split, contexts, rng):
    """Draws a sentence of the contexts; returns its words, an empty list if there is none."""
    sentences = []
    for context in contexts:
        if context != NONE:
            sentences += sentences_of(split, context)
    if not sentences:
        return []
    return sentences[rng.integers(len(sentences))]


def _question_words(split, row):
    """The words of a question without its question mark."""
    [numbers] = split.questions.lists([row])
    return [number for number in numbers if split.tokens.texts[number] != "?"]


# === Passages ===


def own_passage(split, row):
    """The unchanged passage of a question."""
    [numbers] = split.contexts.lists([split.context[row]])
    return Passage(numbers, split.spans[row])


def with_sentence(split, row, passage, sentence, rng):
    """Puts a sentence before a passage, after it or between two of its sentences.

    It is not put inside an answer. The passage is that of question `row`.
    """
    places = []
    for place in [0, *sentence_ends(split, split.context[row])]:
        if not any(first < place <= last for first, last in passage.spans):
            places.append(place)
    place = _draw_place(places, rng)

    spans = []
    for first, last in passage.spans:
        shift = len(sentence) if first >= place else 0
        spans.append([first + shift, last + shift])
    return Passage([*passage.numbers[:place], *sentence, *passage.numbers[place:]], spans)


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
    """The question's passage with `sentence` in place of the one that has the answers.

    Returns `None` if `sentence` is empty, if no single sentence has all answers, or if the new
    passage still has an answer.
    """
    passage = own_passage(split, row)
    first_answer = min(first for first, _ in passage.spans)
    last_answer = max(last for _, last in passage.spans)
    start = 0
    for end in sentence_ends(split, split.context[row]):
        if start <= first_answer and last_answer < end:
            rest = [*passage.numbers[:start], *sentence, *passage.numbers[end:]]
            if sentence and not _has_any_answer(split, row, rest):
                return Passage(rest, [])
        start = end
    return None


def _has_any_answer(split, row, numbers):
    text = _join_words(split, numbers)
    [context] = split.contexts.lists([split.context[row]])
    for first, last in split.spans[row]:
        if _join_words(split, context[first : last + 1]) in text:
            return True
    return False


def _join_words(split, numbers):
    # The spaces at both ends let an answer match whole words only.
    words = [split.tokens.texts[number].lower() for number in numbers]
    return f" {' '.join(words)} "


# === Evaluation ===


def add_sentences(split, rows, seed=1):
    """Puts a misleading sentence at the end of the passages of questions `rows`.

    The sentence is drawn from the second contexts of the question. The words of the question are
    put before its last sign.

    Returns:
        The questions with such a sentence, some of `rows`.
        A split of these questions on the new passages.

    Raises:
        UserError: The second contexts of all these questions have no such sentence.
    """
    rng = np.random.default_rng(seed)
    kept_rows = []
    contexts = []
    texts = []
    offsets = []
    for row in rows:
        sentence = _draw_sentence_words(split, split.second_contexts[row], rng)
        if not sentence:
            continue
        *words, last_sign = sentence
        added = [*words, *_question_words(split, row), last_sign]
        context = split.context[row]
        [own_words] = split.contexts.lists([context])
        [own_offsets] = split.offsets.lists([context])
        text = split.texts[context]
        for number in added:
            start = len(text) + 1
            text = f"{text} {split.tokens.texts[number]}"
            own_offsets += [start, len(text)]
        kept_rows.append(row)
        contexts.append([*own_words, *added])
        texts.append(text)
        offsets.append(own_offsets)
    if not kept_rows:
        low, high = SENTENCE_WORDS[0], SENTENCE_WORDS[-1]
        raise UserError(
            f"misleading sentences: expected sentences of {low} to {high} words in other passages "
            "of the questions' articles. Received: none"
        )

    asked = split.asked_of(np.array(kept_rows, int), np.arange(len(kept_rows)))
    misled = dataclasses.replace(
        asked, contexts=Sequences.of(contexts), texts=texts, offsets=Sequences.of(offsets)
    )
    return kept_rows, misled
