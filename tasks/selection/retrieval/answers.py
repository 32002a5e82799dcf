"""Answers by retrieval: an index finds candidates, a response-selection model ranks them (Zhou et
al. 2018, section 1).

The model encodes the conversation once for all its candidates.
"""

import math
import re

from colloquy.base.files import UserError
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, words_of
from colloquy.engine.predictor import Predictor
from colloquy.tasks.selection.predictor import SelectionPredictor
from colloquy.tasks.selection.retrieval.index import RetrievalIndex

# responses that the model ranks; with 25, 50 or 100 answers are as good (docs/retrieval.md)
CANDIDATES = 32
# weight of the questions' similarity beside the model's logit; chosen on dev, docs/retrieval.md
QUESTION = 16.0
ALIKE = 0.8  # texts are near-duplicates from this ratio of common words to all of their words
SHOWN = 20  # answers of the index that a predictor lists
TOGETHER = re.compile(
    r"\bppa : \S+ / \S+|\d+(?: : \d+)+|~ / [\w.-]+|(?<!\S)/ [\w.-]+(?: / [\w.-]+)+"
    r"|\S+ @ [\w-]+\.\w+|\* \. \w+|- - [a-z]{2}|& &|\| \|"
)
"""Tokens of commands, paths and addresses in the logs of #ubuntu, which people write without
spaces.
"""
QUOTED = ((r"< ([a-z][\w -]*) >", r"<\1>"), (r"(?<!\S)([`']) ([^`']+) \1", r"\1\2\1"))


def as_written(text, tokenizer):
    """A text of an index as people write it, without the spaces between its tokens.

    >>> as_written("sudo add-apt-repository ppa : ondrej / php5 & & kill - 9 < pid of process > !", "terms")
    'sudo add-apt-repository ppa:ondrej/php5 && kill -9 <pid of process>!'
    >>> as_written("try ' dpkg - - configure - a ' , and mail me @ ubuntu.com from / etc / fstab", "terms")
    "try 'dpkg --configure -a', and mail me@ubuntu.com from /etc/fstab"
    """
    if tokenizer == WHITESPACE:
        return text
    text = TOGETHER.sub(lambda match: match[0].replace(" ", ""), " ".join(text.split()))
    text = TOKENIZERS[tokenizer].detokenize(text.split())
    for pattern, replacement in QUOTED:
        text = re.sub(pattern, replacement, text)
    return text


def answers_of(predictor, index, turns, count=CANDIDATES):
    """The best `count` candidates of an index for a conversation, see `candidates_of`, as `ranked`
    by the model.
    """
    return ranked(predictor, turns, candidates_of(index, turns, count))


def candidates_of(index, turns, count=CANDIDATES):
    """`Hit`s without near-duplicates, first the responses to turns that are most similar to the
    last one.
    """
    hits = sorted(index.search(turns), key=lambda hit: hit.places.get("contexts", math.inf))
    return without_duplicates(hits, turns, count)


def ranked(predictor, turns, hits):
    """`Hit`s with their `score` and `total`, the best first."""
    [found] = predictor.predict([{"turns": turns, "candidates": [hit.text for hit in hits]}])
    scored = zip(hits, found["scores"], found["logits"], strict=True)
    answers = [
        hit._replace(score=score, total=logit + QUESTION * hit.question)
        for hit, score, logit in scored
    ]
    return sorted(answers, key=lambda answer: -answer.total)


def without_duplicates(answers, said, count=None):
    """The first `count` of some answers without near-duplicates of better ones and of the texts
    that were said.

    DAM ranks near-duplicates as high as the original.

    >>> from colloquy.tasks.selection.retrieval.index import Hit
    >>> found = [Hit(text) for text in ("Use apt-get!", "use  apt-get .", "hello", "ok")]
    >>> [answer.text for answer in without_duplicates(found, ["Hello!"])]
    ['Use apt-get!', 'ok']
    """
    taken, kept = [_word_set(text) for text in said], []
    for answer in answers:
        words = _word_set(answer.text)
        if not any(len(words & other) >= ALIKE * len(words | other) for other in taken):
            taken.append(words)
            kept.append(answer)
        if len(kept) == count:
            break
    return kept


def _word_set(text):
    return frozenset(
        word for word in words_of(text, "terms") if any(map(str.isalnum, word))
    ) or frozenset([text])


class AnsweringPredictor(Predictor):
    """Ranks candidate responses to a conversation: given ones, or those that an index finds."""

    class Instance(SelectionPredictor.Instance):
        """A conversation, and responses to it if there are any."""

        candidates: list[str] = []
        """Responses to choose from; none: those of the index."""

    class Answer(SelectionPredictor.Answer):
        """Scores of the candidates; of those of the index `totals` in place of `logits`."""

        logits: list[float] = []
        totals: list[float] = []
        """The numbers that the candidates of the index are ordered by: the model's logit, plus 16
        times the similarity of the last turn and the one that was answered."""
        candidates: list[str] = []
        """The best of the index, the best first; missing if the instance has candidates."""
        said_to: list[list[str]] = []
        """For each of them the turns that it was once a response to."""

    def __init__(self, predictor, index):
        self.predictor, self.index = predictor, RetrievalIndex(index, predictor.vocabulary)
        self.responses = self.index.size

    def answer(self, instances):
        given = [instance for instance in instances if instance.candidates]
        answers = iter(self.predictor.answer(given) if given else [])
        return [
            next(answers) if instance.candidates else self._found(instance)
            for instance in instances
        ]

    def size(self, instance):
        size = self.predictor.size(instance)
        if instance.candidates:
            return size
        words = self.predictor.model.config.max_words
        return size._replace(rows=CANDIDATES, shape=(size.shape[0], size.shape[1] + words))

    def conversation(self, said, decode=""):
        return {"turns": [text for _, text in said]}

    def reply(self, answer):
        if not answer["candidates"]:
            raise UserError("the index has no response with these words")
        return answer["candidates"][0]

    def answer_with_attention(self, instance, details):
        if instance.candidates:
            return self.predictor.answer_with_attention(instance, details)
        found = self._found(instance)
        best = instance.replace(candidates=found.candidates[:1])
        return found, self.predictor.answer_with_attention(best, details)[1]

    def _found(self, instance):
        answers = answers_of(self.predictor, self.index, instance.turns)[:SHOWN]
        tokenizer = self.predictor.text["tokenizer"]
        return self.Answer(
            candidates=[as_written(answer.text, tokenizer) for answer in answers],
            scores=[answer.score for answer in answers],
            totals=[answer.total for answer in answers],
            order=list(range(len(answers))),
            said_to=[
                [as_written(turn, tokenizer) for turn in answer.context] for answer in answers
            ],
        )
