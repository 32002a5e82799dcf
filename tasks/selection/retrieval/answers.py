"""Answers by retrieval: an index finds candidates, a response-selection model ranks them (Zhou et al. 2018, section 1).

The model encodes the conversation once for all its candidates.
"""

import math
from typing import NamedTuple

from data.tokenizers import words_of
from tasks.selection.retrieval.index import SEARCHED, SEARCHES, RetrievalIndex

CANDIDATES = 32
"""How many responses of the index the model ranks; with 25, 50 or 100 the answers are as good (docs/retrieval.md)."""
QUESTION = 16.0
"""What the likeness of the questions counts beside the model's logit; chosen on dev, docs/retrieval.md."""
ALIKE = 0.8
"""Texts are near-duplicates from this ratio of common words to all of their words."""


class Answer(NamedTuple):
    """A candidate and what the model says of it."""

    text: str
    score: float
    """The paper's `g(c, r)`, in (0, 1)."""
    hit: object = None
    """The `tasks.selection.retrieval.index.Hit` that it came from, if any."""


class Retriever:
    """Answers a conversation from an index.

    Args:
        predictor: The `tasks.selection.predictor.SelectionPredictor` of a run.
        path: Directory of an index for the same vocabulary.

    Raises:
        UserError: as of `tasks.selection.retrieval.index.RetrievalIndex`.
    """

    def __init__(self, predictor, path):
        self.predictor = predictor
        self.index = RetrievalIndex(path, predictor.vocabulary)

    def answers(self, turns, count=CANDIDATES):
        """Answers to a conversation.

        Args:
            turns: What was said, texts, the oldest first.
            count: How many candidates the model ranks.

        Returns:
            List of `Answer`, the best first: of the responses to the turns that are most like the last one, by the
            model's logit and `QUESTION` times that likeness. None is a near-duplicate of another one or of what was
            said. Where too few were said to anything like it, others that the index finds stand in.
        """
        hits = candidates_of(self.index, turns, count)
        return ranked(self.predictor, turns, [hit.text for hit in hits], hits)


def candidates_of(index, turns, count=CANDIDATES):
    """What may be answered: responses to what is most like the last turn, else others that are found.

    Args:
        index: A `tasks.selection.retrieval.index.RetrievalIndex`.
        turns: What was said, texts, the oldest first.
        count: How many to give at most.

    Returns:
        List of `tasks.selection.retrieval.index.Hit`; none is a near-duplicate of another one or of what was said.
    """
    hits = index.search(turns, len(SEARCHES) * SEARCHED)
    hits.sort(key=lambda hit: hit.places.get("contexts", math.inf))
    return without_duplicates(hits, turns, count)


def ranked(predictor, turns, candidates, hits=None):
    """Candidates as `Answer`s, the best first: by the model's logit, with hits also by their questions, see `QUESTION`.

    Args:
        predictor: A `tasks.selection.predictor.SelectionPredictor`.
        turns: What was said, texts, the oldest first.
        candidates: Texts.
        hits: The `tasks.selection.retrieval.index.Hit` of each, if any.
    """
    [found] = predictor.predict([{"turns": turns, "candidates": candidates}])
    if hits is None:
        return [Answer(candidates[i], found["scores"][i]) for i in found["order"]]
    total = [logit + QUESTION * hit.question for logit, hit in zip(found["logits"], hits, strict=True)]
    order = sorted(range(len(total)), key=lambda i: -total[i])
    return [Answer(candidates[i], found["scores"][i], hits[i]) for i in order]


def without_duplicates(answers, said, count=None):
    """Answers that are not like a better one, nor like what was said already: DAM finds that nothing fits as well.

    Args:
        answers: List of `Answer` or `tasks.selection.retrieval.index.Hit`, the best first.
        said: Texts.
        count: How many to give at most; default: all.

    >>> found = [Answer(text, 0.0) for text in ("Use apt-get!", "use  apt-get .", "hello", "ok")]
    >>> [answer.text for answer in without_duplicates(found, ["Hello!"])]
    ['Use apt-get!', 'ok']
    """
    taken, kept = [_word_set(text) for text in said], []
    for answer in answers:
        if len(kept) == count:
            break
        words = _word_set(answer.text)
        if not any(_alike(words, other) for other in taken):
            taken.append(words)
            kept.append(answer)
    return kept


def _word_set(text):
    return frozenset(word for word in words_of(text, "terms") if any(map(str.isalnum, word))) or frozenset([text])


def _alike(one, other):
    small, large = sorted((len(one), len(other)))
    return small >= ALIKE * large and len(one & other) >= ALIKE * len(one | other)
