"""Contexts that do not answer a question, though they share words with it.

SQuAD 1.1 has an answer to every question. A question becomes unanswerable when it is asked of
another paragraph of its article (Clark and Gardner 2018, section 3.2), or of another article. That
paragraph is a second context of the question. A question is named by its row in the split.
"""

import collections

import numpy as np

from colloquy.data.vocabulary import UNK_ID

FREQUENT = 200
"""Largest id of a frequent word. Files of word vectors have frequent words first, so these have low
ids. They say nothing about the subject of a passage."""
CANDIDATES = 4
"""Number of second contexts of a question that training draws from, as in Clark and Gardner."""
NONE = -1
"""Stands for a context that does not exist."""


def is_content(word_ids):
    """True for words that are not frequent. Unknown words are rare, though their id is low."""
    return (word_ids == UNK_ID) | (word_ids > FREQUENT)


def content_words(tokens, text):
    """The distinct words of a text without the frequent ones, a set of integers.

    A known word is its id, whatever its case. Unknown words all have one id, so for each of them
    the set has the number of its token with a minus sign.

    Args:
        tokens: The `Tokens` that `text` has the numbers of.
        text: Numbers of tokens.
    """
    text = np.unique(text)
    word_ids = tokens.word_ids[text]
    words = np.where(word_ids == UNK_ID, -text, word_ids)
    return set(words[is_content(word_ids)].tolist())


def shared_words(question, passage):
    """The fraction of a question's `content_words` that a passage has; 1 if there are none."""
    if not question:
        return 1.0
    return len(question & passage) / len(question)


class SecondContexts:
    """Finds contexts of a `ReadingSplit` that do not answer a question.

    The text of such a context has none of the answers in it. Contexts with most of the question's
    `content_words` come first.
    """

    def __init__(self, split):
        self.split = split
        self.words_of_contexts = {}
        for context in np.unique(split.context_of_question).tolist():
            [tokens] = split.contexts.lists([context])
            self.words_of_contexts[context] = content_words(split.tokens, tokens)
        self.contexts_of_articles = collections.defaultdict(list)
        for context in self.words_of_contexts:
            self.contexts_of_articles[split.articles[context]].append(context)

    def of_same_article(self, row):
        """The best other contexts of the article of question `row`, at most `CANDIDATES`."""
        article = self.split.articles[self.split.context_of_question[row]]
        return self._best_contexts(row, self.contexts_of_articles[article], CANDIDATES)

    def of_other_articles(self, row):
        """The best context of another article; `NONE` if there is none."""
        articles = self.split.articles
        own_article = articles[self.split.context_of_question[row]]
        others = [c for c in self.words_of_contexts if articles[c] != own_article]
        best = self._best_contexts(row, others, 1)
        return best[0] if best else NONE

    def _best_contexts(self, row, contexts, count):
        question = content_words(self.split.tokens, self.split.question_tokens(row))
        words = self.words_of_contexts
        ranked = sorted(contexts, key=lambda context: -shared_words(question, words[context]))
        answers = [answer.lower() for answer in self.split.answers[row]]
        best = []
        for context in ranked:
            if len(best) == count:
                break
            text = self.split.texts[context].lower()
            is_own = context == self.split.context_of_question[row]
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
