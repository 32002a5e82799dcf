"""Sentences that mislead a reader, and passages with them: for training and to measure.

Jia and Liang 2017 showed that a reader follows a sentence with the words of the question; Wang and
Bansal 2018, that training cures it if the places and the words of such sentences vary. Here a
sentence of another passage of the article gets the question's words at its end, at its front or in
place of some of its own; or it is a statement, made from the question by the answer of another one
and by other names:

    Where does Ann live?    The wheel of the mill is where does ann live .
                            Bob live in Bern does .

What is measured, `add_sentences`, has the question's words at the end alone.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import UNK_ID
from colloquy.tasks.reading_comprehension.second_contexts import (
    CANDIDATES,
    FREQUENT,
    NONE,
    SecondContexts,
    sentence_ends,
    sentences_of,
)

ASKING_WORDS = frozenset("what who whom whose when where which why how".split())
DROPPED_WORDS = (0.0, 0.0, 0.2, 0.4)
"""Fractions of the question's words that are left out; one is drawn for each sentence."""
DRAWS = 10
"""Answers of other questions that are drawn, at most, to find one that is not the question's."""


class Passage(NamedTuple):
    """A passage as training reads it."""

    numbers: list[int]
    """Its words, as numbers of `data.Tokens`."""
    spans: list[list[int]]
    """First and last words of the answers."""


class MisleadingSentences:
    """Draws sentences for the questions of a `data.ReadingSplit`."""

    def __init__(self, split):
        self.split = split
        self.rows_of_asking_words = {}
        """`{asking word: questions with it}`."""
        for row, numbers in enumerate(split.questions.lists()):
            word = self._asking_word(numbers)
            self.rows_of_asking_words.setdefault(word, []).append(row)

    def draw(self, row, rng):
        """The words of a sentence that misleads question `row`; none where there is no sentence."""
        contexts = [context for context in self.split.second_contexts[row] if context != NONE]
        sentence = _draw_sentence(self.split, contexts, rng)
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
        """The question with the answer of another one and with names of `words`."""
        asking_word = self._asking_word(question)
        statement = []
        has_changed = False
        others = [number for number in words if self._is_content(number)]
        names = [number for number in others if self._is_name(number)]
        for number in question:
            text = self.split.tokens.texts[number].lower()
            if text == asking_word:
                statement += self._answer_of_another(row, asking_word, rng)
                asking_word = None
            elif self._is_name(number) and names:
                statement.append(names[rng.integers(len(names))])
                has_changed = True
            elif self._is_content(number) and others and rng.random() < 0.3:
                statement.append(others[rng.integers(len(others))])
                has_changed = True
            else:
                statement.append(number)
        if not has_changed:
            # Unchanged, it might be true.
            return [*statement, *words]
        return statement

    def _answer_of_another(self, row, asking_word, rng):
        """The words of the answer of another question with the same asking word."""
        rows = self.rows_of_asking_words[asking_word]
        own = {answer.lower() for answer in self.split.answers[row]}
        for _ in range(DRAWS):
            other = rows[rng.integers(len(rows))]
            answers = {answer.lower() for answer in self.split.answers[other]}
            if not answers & own:
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
        first = self.split.tokens.texts[number][0]
        return self._is_content(number) and (first.isupper() or first.isdigit())

    def _is_content(self, number):
        id = self.split.tokens.words[number]
        return id == UNK_ID or id > FREQUENT


def _draw_sentence(split, contexts, rng):
    """The words of one of the sentences of some contexts; none where there is no sentence."""
    sentences = []
    for context in contexts:
        sentences += sentences_of(split, context)
    if not sentences:
        return []
    return sentence_numbers(split, sentences[rng.integers(len(sentences))])


def _question_words(split, row):
    """The words of a question without its question mark."""
    [numbers] = split.questions.lists([row])
    return [number for number in numbers if split.tokens.texts[number] != "?"]


def sentence_numbers(split, sentence):
    """The words of a `Sentence`; none of `None`."""
    if sentence is None:
        return []
    [numbers] = split.contexts.lists([sentence.context])
    return numbers[sentence.first : sentence.end]


# === Passages ===


def own_passage(split, row):
    """The passage of a question as it is."""
    [numbers] = split.contexts.lists([split.context[row]])
    return Passage(numbers, split.spans[row])


def with_sentence(split, row, passage, sentence, rng):
    """The question's passage with a sentence before it, after it or between two of its sentences.

    The sentence does not part an answer.
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
    """One of the places: the first, the last or one between, each as probable."""
    kind = rng.integers(3)
    if kind == 0 or len(places) < 3:
        return places[-1]
    if kind == 1:
        return places[0]
    return places[1 + rng.integers(len(places) - 2)]


def without_answer(split, row, sentence):
    """The question's passage with `sentence` in place of the one that has the answer.

    `None` where another sentence has the answer, too.
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
    text = _words_in_spaces(split, numbers)
    [context] = split.contexts.lists([split.context[row]])
    for first, last in split.spans[row]:
        if _words_in_spaces(split, context[first : last + 1]) in text:
            return True
    return False


def _words_in_spaces(split, numbers):
    words = [split.tokens.texts[number].lower() for number in numbers]
    return f" {' '.join(words)} "


# === Measuring ===


def add_sentences(split, rows, seed=1):
    """Returns questions `rows` of a split, each asked of its passage and a misleading sentence.

    The sentence comes after the passage. It is drawn from those of the passages of the article that
    share most words with the question, and the words of the question are put before its last sign.
    Questions without such a sentence are left out.
    """
    rng = np.random.default_rng(seed)
    second_contexts = SecondContexts(split)
    kept = []
    passages = []
    texts = []
    offsets = []
    for row in rows:
        contexts = second_contexts.of_same_article(row, CANDIDATES)
        sentence = _draw_sentence(split, contexts, rng)
        if not sentence:
            continue
        *words, last_sign = sentence
        added = [*words, *_question_words(split, row), last_sign]
        passage = own_passage(split, row)
        kept.append(row)
        passages.append(Passage([*passage.numbers, *added], passage.spans))

        text = split.texts[split.context[row]]
        [places] = split.offsets.lists([split.context[row]])
        for number in added:
            start = len(text) + 1
            text = f"{text} {split.tokens.texts[number]}"
            places += [start, len(text)]
        texts.append(text)
        offsets.append(places)

    asked = split.with_passages(kept, passages)
    return dataclasses.replace(asked, texts=texts, offsets=Sequences.of(offsets))
