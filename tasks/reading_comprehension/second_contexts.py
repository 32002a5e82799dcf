"""Contexts that do not answer a question, though they share words with it.

SQuAD 1.1 has an answer to every question. A question becomes unanswerable when it is asked of
another paragraph of its article (Clark and Gardner 2018, section 3.2), or of another article.
"""

import collections
import re
from typing import NamedTuple

import numpy as np

from colloquy.data.vocabulary import UNK_ID

FREQUENT = 200
"""First ids of a vocabulary, its most frequent words, which say nothing of a passage's subject."""
CANDIDATES = 4
"""Contexts of a question's article that training chooses from, as many as Clark and Gardner's."""
NONE = -1
"""In place of a context that does not exist."""
SENTENCE_WORDS = range(5, 41)
"""Words, with punctuation, of a sentence that is added to another context."""
_SENTENCE_END = re.compile(r"[.!?]\s+")


class Sentence(NamedTuple):
    """Words `first` to `end - 1` of a context."""

    context: int
    first: int
    end: int


def content_words(tokens, numbers):
    """The words of a text without the most frequent ones, a set.

    `numbers` are those of `data.Tokens`. A word is its id; an unknown one is minus its number.
    """
    numbers = np.unique(numbers)
    ids = tokens.words[numbers]
    is_unknown = ids == UNK_ID
    is_content = is_unknown | (ids > FREQUENT)
    words = np.where(is_unknown, -numbers, ids)
    return set(words[is_content].tolist())


def shared_words(question, passage):
    """The fraction of a question's `content_words` that a passage has; 1 without any."""
    if not question:
        return 1.0
    return len(question & passage) / len(question)


class SecondContexts:
    """Finds contexts of a `data.ReadingSplit` that do not answer a question.

    They have none of its answers as a text. Those with most of the question's words come first.
    """

    def __init__(self, split):
        self.split = split
        self.words_of_contexts = {}
        for context in np.unique(split.context).tolist():
            [numbers] = split.contexts.lists([context])
            self.words_of_contexts[context] = content_words(split.tokens, numbers)
        self.contexts_of_articles = collections.defaultdict(list)
        for context in self.words_of_contexts:
            self.contexts_of_articles[split.articles[context]].append(context)

    def of_same_article(self, row, count):
        """At most `count` other contexts of the article of question `row`."""
        article = self.split.articles[self.split.context[row]]
        return self._best(row, self.contexts_of_articles[article], count)

    def of_other_articles(self, row, count):
        """At most `count` contexts of other articles."""
        own_article = self.split.articles[self.split.context[row]]
        contexts = []
        for context in self.words_of_contexts:
            if self.split.articles[context] != own_article:
                contexts.append(context)
        return self._best(row, contexts, count)

    def _best(self, row, contexts, count):
        [numbers] = self.split.questions.lists([row])
        question = content_words(self.split.tokens, numbers)
        words = self.words_of_contexts
        ranked = sorted(contexts, key=lambda context: -shared_words(question, words[context]))
        answers = [answer.lower() for answer in self.split.answers[row]]
        best = []
        for context in ranked:
            if len(best) == count:
                break
            text = self.split.texts[context].lower()
            is_own = context == self.split.context[row]
            if not is_own and not any(answer in text for answer in answers):
                best.append(context)
        return best


def contexts_of_same_article(split):
    """The contexts of which one is a second context for each question.

    Returns:
        Int `(questions, CANDIDATES)`, `NONE` after the last one.
    """
    second_contexts = SecondContexts(split)
    contexts = np.full((len(split), CANDIDATES), NONE)
    for row in range(len(split)):
        candidates = second_contexts.of_same_article(row, CANDIDATES)
        contexts[row, : len(candidates)] = candidates
    return contexts


def sentence_ends(split, context):
    """The word after each sentence of a context; the last is the number of its words."""
    text = split.texts[context]
    [offsets] = split.offsets.lists([context])
    ends_of_words = np.array(offsets[1::2])
    ends = []
    for match in _SENTENCE_END.finditer(text):
        ends.append(int(np.searchsorted(ends_of_words, match.start() + 1, side="right")))
    return [*ends, len(ends_of_words)]


def sentences_of(split, context):
    """The `Sentence`s of a context that have as many words as `SENTENCE_WORDS` says."""
    sentences = []
    first = 0
    for end in sentence_ends(split, context):
        if end - first in SENTENCE_WORDS:
            sentences.append(Sentence(context, first, end))
        first = end
    return sentences


def sentences_to_add(split):
    """The sentences of `contexts_of_same_article` that share most words with each question.

    Returns:
        For each question a `Sentence`, or `None`.
    """
    words_of_sentences = {}
    for context in np.unique(split.second_contexts).tolist():
        if context != NONE:
            [numbers] = split.contexts.lists([context])
            words_of_sentences[context] = [
                (sentence, content_words(split.tokens, numbers[sentence.first : sentence.end]))
                for sentence in sentences_of(split, context)
            ]

    chosen = [None] * len(split)
    for row, contexts in enumerate(split.second_contexts.tolist()):
        [numbers] = split.questions.lists([row])
        question = content_words(split.tokens, numbers)
        most_shared = -1.0
        for context in contexts:
            for sentence, words in words_of_sentences.get(context, []):
                shared = shared_words(question, words)
                if shared > most_shared:
                    most_shared = shared
                    chosen[row] = sentence
    return chosen
