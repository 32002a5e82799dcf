"""Contexts that do not answer a question, though they share words with it, and their sentences.

SQuAD 1.1 has an answer to every question. A question becomes unanswerable when it is asked of
another paragraph of its article (Clark and Gardner 2018, section 3.2), or of another article. That
paragraph is a second context of the question. A question is named by its row in the split.
"""

import bisect
import collections
import functools
import itertools
import re

import numpy as np

from colloquy.data.vocabulary import UNK_ID

FREQUENT = 200
"""Largest id of a frequent word. Files of word vectors have frequent words first, so these have low
ids. They say nothing about the subject of a passage."""
CANDIDATES = 4
"""Number of second contexts of a question that training draws from, as in Clark and Gardner."""
NONE = -1
"""Stands for a context that does not exist."""
SENTENCE_WORDS = range(5, 41)
"""Allowed numbers of words and signs of a sentence that is added to another context."""
_SENTENCE_END = re.compile(r"[.!?]\s+")


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


# === Sentences of second contexts, which are added to other contexts ===


def sentence_bounds(split, context):
    """The first word of each sentence of a context, and the word behind it.

    For example, [(0, 4), (4, 7)] for "Ann is here. Bob too."
    """
    text = split.texts[context]
    [offsets] = split.offsets.lists([context])
    # The offsets alternate between the start and the end of a word.
    ends_of_words = offsets[1::2]
    bounds = [0]
    for match in _SENTENCE_END.finditer(text):
        # Number of words up to the sign at `match.start()`.
        bounds.append(bisect.bisect_right(ends_of_words, match.start() + 1))
    return list(itertools.pairwise([*bounds, len(ends_of_words)]))


def sentences_of(split, context):
    """The tokens of each sentence of a context whose number of words is in `SENTENCE_WORDS`."""
    [tokens] = split.contexts.lists([context])
    bounds = sentence_bounds(split, context)
    return [tokens[start:end] for start, end in bounds if end - start in SENTENCE_WORDS]


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
    @functools.cache
    def read(context):
        sentences = sentences_of(split, context)
        return [(sentence, content_words(split.tokens, sentence)) for sentence in sentences]

    chosen = []
    for row, contexts in enumerate(split.second_contexts.tolist()):
        question = content_words(split.tokens, split.question_tokens(row))
        best = []
        most_shared = -1.0
        for context in contexts:
            if context == NONE:
                break
            for sentence, words in read(context):
                shared = shared_words(question, words)
                if shared > most_shared:
                    most_shared = shared
                    best = sentence
        chosen.append(best)
    return chosen
