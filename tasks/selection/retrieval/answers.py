"""Answers by retrieval: an index finds candidates, a model ranks them (Zhou et al. 2018, 1).

The model encodes the conversation once for all its candidates.
"""

import re

from colloquy.base.files import UserError
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, apply_rules
from colloquy.engine.helplines import helpline_of_turns
from colloquy.engine.parallel import in_order
from colloquy.engine.predictor import Predictor
from colloquy.tasks.selection.lexical import is_spoken
from colloquy.tasks.selection.predictor import SelectionPredictor
from colloquy.tasks.selection.retrieval.index import Hit, RetrievalIndex

# Responses that the model ranks; with 25, 50 or 100 answers are as good (docs/retrieval.md).
CANDIDATES = 32
# Weight of the questions' similarity beside the model's logit; chosen on dev, docs/retrieval.md.
QUESTION_WEIGHT = 16.0
# Texts are near-duplicates from this fraction of common words among all their words.
DUPLICATE_FRACTION = 0.8
# Answers of the index that a predictor lists.
SHOWN = 20
NOTHING_FOUND = "the index has no response with these words"
# Tokens of commands, paths and addresses in the logs of #ubuntu; people write no spaces in them.
JOINED_TOKENS = re.compile(
    r"\bppa : \S+ / \S+|(?<!\d)\d+(?: : \d+)+|~ / [\w.-]+|(?<!\S)/ [\w.-]+(?: / [\w.-]+)+"
    r"|(?<!\S)\S+ @ [\w-]+\.\w+|\* \. \w+|- - [a-z]{2}|& &|\| \|"
)
QUOTES = (
    (r"< ([a-z][\w -]*) >", r"<\1>"),
    (r"(?<!\S)([`']) ([^`']+) \1", r"\1\2\1"),
)


def as_written(text, tokenizer):
    """A text of an index as people write it, without the spaces between its tokens.

    >>> as_written("sudo add-apt-repository ppa : ondrej / php5 & & kill - 9 !", "terms")
    'sudo add-apt-repository ppa:ondrej/php5 && kill -9!'
    >>> as_written("try ' dpkg - - configure - a ' , and mail me @ ubuntu.com", "terms")
    "try 'dpkg --configure -a', and mail me@ubuntu.com"
    """
    if tokenizer == WHITESPACE:
        return text
    text = " ".join(text.split())
    text = JOINED_TOKENS.sub(lambda match: match[0].replace(" ", ""), text)
    text = TOKENIZERS[tokenizer].detokenize(text.split())
    return apply_rules(text, QUOTES)


def candidates_of(index, turns, count=CANDIDATES):
    """The first `count` `Hit`s of a search, without near-duplicates and what was said already."""
    words_of_turns = [index.split(turn) for turn in turns]
    return without_duplicates(index.search(turns), words_of_turns, count)


def ranked(predictor, turns, hits):
    """Ranks `Hit`s by a model.

    Returns:
        The hits with their `score` and `total`, the best first.
        The fields `good` and `reason` of the model's answer.
    """
    candidates = [hit.text for hit in hits]
    [prediction] = predictor.predict([{"turns": turns, "candidates": candidates}])
    answers = []
    for hit, score, logit in zip(hits, prediction["scores"], prediction["logits"], strict=True):
        total = logit + QUESTION_WEIGHT * hit.question_similarity
        answers.append(hit._replace(score=score, total=total))
    answers.sort(key=lambda answer: -answer.total)
    return answers, {name: prediction[name] for name in ("good", "reason") if name in prediction}


def without_duplicates(answers, said, count=None):
    """Drops near-duplicates of better answers and of texts that were said.

    The model ranks a near-duplicate as high as the original.

    Args:
        answers: `Hit`s of an index, the best first.
        said: The words of each text of the conversation.
        count: Number of answers to return; `None`: all.

    >>> from colloquy.tasks.selection.retrieval.index import Hit
    >>> texts = ("Use apt-get !", "use apt-get .", "hello", "ok")
    >>> hits = [Hit(text, words=frozenset(text.split())) for text in texts]
    >>> [answer.text for answer in without_duplicates(hits, [["Hello", "!"]])]
    ['Use apt-get !', 'ok']
    """
    taken = [_without_punctuation(words) for words in said]
    kept = []
    for answer in answers:
        if len(kept) == count:
            break
        words = _without_punctuation(answer.words)
        if any(_are_near_duplicates(words, other) for other in taken):
            continue
        taken.append(words)
        kept.append(answer)
    return kept


def _are_near_duplicates(words, others):
    shared = len(words & others)
    return shared >= DUPLICATE_FRACTION * (len(words) + len(others) - shared)


def _without_punctuation(words):
    """The distinct lower-case words of a text without punctuation; all if it has no others."""
    kept = {word.lower() for word in words if is_spoken(word)}
    return kept or set(words)


class AnsweringPredictor(Predictor):
    """Ranks the candidate responses of an instance; of one without any, other responses.

    Args:
        predictor: `SelectionPredictor`.
        index: Directory of an index, which finds responses to an instance without candidates.
        candidates: Without an index: the responses to all instances without candidates.
    """

    class Instance(SelectionPredictor.Instance):
        """A conversation, and responses to it if there are any."""

        candidates: list[str] = []
        """Responses to choose from; none: those of the model's index or list."""

    class Answer(SelectionPredictor.Answer):
        """Scores of the candidates; of those of the model `totals` in place of `logits`."""

        logits: list[float] = []
        totals: list[float] = []
        """The numbers that the candidates of the model are ordered by: the model's logit, plus 16
        times the similarity of the last turn and the one that was answered, in an index."""
        candidates: list[str] = []
        """The best of the index or list, the best first; missing if the instance has candidates."""
        said_to: list[list[str]] = []
        """For each of them, in an index, the turns that it was once a response to."""

    def __init__(self, predictor, index=None, candidates=None):
        if (index is None) == (candidates is None):
            raise UserError("expected an index or a list of candidates, one of them")
        self.predictor = predictor
        self.index = None
        self.hits = []
        if index is not None:
            self.index = RetrievalIndex(index, predictor.vocabulary)
            self.responses = self.index.size
            return
        is_list = isinstance(candidates, list | tuple) and len(candidates) > 0
        if not is_list or not all(isinstance(text, str) and text.strip() for text in candidates):
            raise UserError(f"candidates are a list of texts. Received: {candidates!r:.80}")
        self.hits = [Hit(text) for text in candidates]
        self.responses = len(self.hits)

    def answer(self, instances):
        with_candidates = [instance for instance in instances if instance.candidates]
        without_candidates = [instance for instance in instances if not instance.candidates]
        ranked_answers = iter(self.predictor.answer(with_candidates) if with_candidates else [])
        # One call of the model for all of them takes as long as one call for each.
        chosen_answers = in_order(self._choose_answer, without_candidates)
        answers = []
        for instance in instances:
            own_answers = ranked_answers if instance.candidates else chosen_answers
            answers.append(next(own_answers))
        return answers

    def padded_rows(self, instance):
        return len(instance.candidates) or len(self.hits) or CANDIDATES

    def conversation(self, said, decode=""):
        return {"turns": [text for _, text in said]}

    def reply(self, answer):
        return answer["candidates"][0] if answer["candidates"] else answer["reason"]

    def answer_with_attention(self, instance, details):
        if instance.candidates:
            return self.predictor.answer_with_attention(instance, details)
        answer = self._choose_answer(instance)
        if helpline_of_turns(instance.turns) is not None:
            return answer, []
        best = instance.replace(candidates=answer.candidates[:1])
        _, attention = self.predictor.answer_with_attention(best, details)
        return answer, attention

    def _choose_answer(self, instance):
        """Answers an instance without candidates."""
        helpline = helpline_of_turns(instance.turns)
        if helpline is not None:
            return self._answer([helpline], [Hit(helpline, score=1.0)])
        if self.index is None:
            answers, verdict = ranked(self.predictor, instance.turns, self.hits)
            return self._answer([answer.text for answer in answers], answers, **verdict)

        hits = candidates_of(self.index, instance.turns)
        if not hits:
            return self._answer([], [], said_to=[], good=False, reason=NOTHING_FOUND)
        answers, verdict = ranked(self.predictor, instance.turns, hits)
        answers = answers[:SHOWN]
        tokenizer = self.predictor.tokenizer_config["tokenizer"]
        texts = [as_written(answer.text, tokenizer) for answer in answers]
        said_to = []
        for answer in answers:
            said_to.append([as_written(turn, tokenizer) for turn in answer.context])
        return self._answer(texts, answers, said_to=said_to, **verdict)

    def _answer(self, texts, hits, good=True, **fields):
        return self.Answer(
            candidates=texts,
            scores=[hit.score for hit in hits],
            totals=[hit.total for hit in hits],
            order=list(range(len(hits))),
            good=good,
            **fields,
        )


def add_responses(predictor, run, index=None, candidates=None):
    """Returns a predictor that has responses of its own.

    Args:
        predictor: The `SelectionPredictor` of the run.
        index, candidates: See `AnsweringPredictor`. Without either, the index is that of
            `retrieval.build.index_of_run`; if there is none, `predictor` is returned.
    """
    # Answers from an index or a list need nothing of building one.
    from colloquy.tasks.selection.retrieval.build import index_of_run

    if index is None and candidates is None:
        index = index_of_run(run.path, predictor)
        if index is None:
            return predictor
    return AnsweringPredictor(predictor, index, candidates)
