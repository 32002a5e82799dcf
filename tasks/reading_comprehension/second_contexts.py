"""Contexts that do not answer a question, though they share words with it.

SQuAD 1.1 has an answer to every question. A question becomes unanswerable when it is asked of
another paragraph of its article (Clark and Gardner 2018, section 3.2), or of another article. That
paragraph is a second context of the question. A question is named by its row in the split.
"""

import collections
import re

import numpy as np

from colloquy.data.vocabulary import UNK_ID

FREQUENT = 200
"""Largest id of a frequent word. Frequent words say nothing about the subject of a passage."""
CANDIDATES = 4
"""Number of second contexts of a question that training draws from, as in Clark and Gardner."""
NONE = -1
"""Stands for a context that does not exist."""
SENTENCE_WORDS = range(5, 41)
"""Allowed numbers of words and signs of a sentence that is added to another context."""
_SENTENCE_END = re.compile(r"[.!?]\s+")


def content_words(tokens, numbers):
    """The distinct words of a text without the frequent ones, a set of integers.

    A known word is its id. All unknown words have one id, so an unknown word is minus its number.

    Args:
        tokens: `questions.Tokens`.
        numbers: The words of the text, as numbers of `tokens`.
    """
    numbers = np.unique(numbers)
    ids = tokens.words[numbers]
    is_unknown = ids == UNK_ID
    is_content = is_unknown | (ids > FREQUENT)
    words = np.where(is_unknown, -numbers, ids)
    return set(words[is_content].tolist())


def shared_words(question, passage):
    """The fraction of a question's `content_words` that a passage has; 1 if there are none."""
    if not question:
        return 1.0
    return len(question & passage) / len(question)


class SecondContexts:
    """Finds contexts of a `data.ReadingSplit` that do not answer a question.

    The text of such a context has none of the answers in it. Contexts with most of the question's
    `content_words` come first.
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

    def of_same_article(self, row):
        """The best other contexts of the article of question `row`, at most `CANDIDATES`."""
        article = self.split.articles[self.split.context[row]]
        return self._best_contexts(row, self.contexts_of_articles[article], CANDIDATES)

    def of_other_articles(self, row):
        """The best context of another article; `NONE` if there is none."""
        articles = self.split.articles
        own_article = articles[self.split.context[row]]
        others = [c for c in self.words_of_contexts if articles[c] != own_article]
        return next(iter(self._best_contexts(row, others, 1)), NONE)

    def _best_contexts(self, row, contexts, count):
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
    """Finds second contexts of each question in its article.

    Returns:
        Int `(questions, CANDIDATES)`. A row with fewer contexts ends with `NONE`.
    """
    search = SecondContexts(split)
    contexts = np.full((len(split), CANDIDATES), NONE)
    for row in range(len(split)):
        candidates = search.of_same_article(row)
        contexts[row, : len(candidates)] = candidates
    return contexts


def sentence_ends(split, context):
    """The index of the word after each sentence; the last one is the number of words."""
    text = split.texts[context]
    [offsets] = split.offsets.lists([context])
    # The offsets alternate between the start and the end of a word.
    ends_of_words = np.array(offsets[1::2])
    ends = []
    for match in _SENTENCE_END.finditer(text):
        # Count the words up to the sign that ends the sentence.
        end_of_sign = match.start() + 1
        ends.append(int(np.searchsorted(ends_of_words, end_of_sign, side="right")))
    return [*ends, len(ends_of_words)]


def sentences_of(split, context):
    """The words of each sentence of a context whose number of words is in `SENTENCE_WORDS`."""
    [words] = split.contexts.lists([context])
    sentences = []
    first = 0
    for end in sentence_ends(split, context):
        if end - first in SENTENCE_WORDS:
            sentences.append(words[first:end])
        first = end
    return sentences


def sentences_to_add(split):
    """Finds the sentence of each question's second contexts that shares most words with it.

    Returns:
        The words of a sentence for each question; none if its second contexts have no sentence.
    """
    # Two questions in one article have the same second contexts.
    sentences_by_context = {NONE: []}
    for context in np.unique(split.second_contexts).tolist():
        if context != NONE:
            sentences = sentences_of(split, context)
            content = [content_words(split.tokens, words) for words in sentences]
            sentences_by_context[context] = list(zip(sentences, content, strict=True))

    chosen = []
    for contexts, numbers in zip(
        split.second_contexts.tolist(), split.questions.lists(), strict=True
    ):
        question = content_words(split.tokens, numbers)
        best = []
        most_shared = -1.0
        for context in contexts:
            for words, content in sentences_by_context[context]:
                shared = shared_words(question, content)
                if shared > most_shared:
                    most_shared = shared
                    best = words
        chosen.append(best)
    return chosen
