"""Answers by retrieval: an index finds candidates, a model ranks them (Zhou et al. 2018, 1).

The model encodes the conversation once for all its candidates.
"""

import itertools
import re

from colloquy.base.files import UserError
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, apply_rules
from colloquy.engine.helplines import helpline_of_turns
from colloquy.engine.parallel import in_order
from colloquy.engine.predictor import Predictor
from colloquy.tasks.selection.predictor import SelectionPredictor
from colloquy.tasks.selection.retrieval.build import index_of_run
from colloquy.tasks.selection.retrieval.index import Hit, RetrievalIndex

# Responses that the model ranks; with 25, 50 or 100 answers are as good (docs/retrieval.md).
CANDIDATES = 32
# Weight of the questions' similarity beside the model's logit; chosen on dev, docs/retrieval.md.
QUESTION_WEIGHT = 16.0
# Texts are near-duplicates from this fraction of common words among all their words.
DUPLICATE_FRACTION = 0.8
# Answers that a predictor lists.
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


def candidates_of(index, turns):
    """The first `CANDIDATES` `Hit`s of a search, without near-duplicates and what was said."""
    words_of_turns = [index.text.words(turn) for turn in turns]
    hits = without_duplicates(index.search(words_of_turns), words_of_turns)
    return list(itertools.islice(hits, CANDIDATES))


def without_duplicates(answers, said):
    """Yields answers without near-duplicates of better ones and of texts that were said.

    The model ranks a near-duplicate as high as the original.

    Args:
        answers: `Hit`s of an index, the best first.
        said: The words of each text of the conversation.

    >>> from colloquy.tasks.selection.retrieval.index import Hit
    >>> texts = ("Use apt-get !", "use apt-get .", "hello", "ok")
    >>> hits = [Hit(text, words=frozenset(text.split())) for text in texts]
    >>> [answer.text for answer in without_duplicates(hits, [["Hello", "!"]])]
    ['Use apt-get !', 'ok']
    """
    taken = [_without_punctuation(words) for words in said]
    for answer in answers:
        words = _without_punctuation(answer.words)
        if not any(_are_near_duplicates(words, other) for other in taken):
            taken.append(words)
            yield answer


def _are_near_duplicates(words, others):
    shared = len(words & others)
    return shared >= DUPLICATE_FRACTION * (len(words) + len(others) - shared)


def _without_punctuation(words):
    """The distinct lower-case words of a text without punctuation; all if it has no others.

    They are parts of tokens: `as_written` joins `ppa : ondrej / php5`, and a reply comes back so.
    """
    kept = set(re.findall(r"[^\W_]+", " ".join(words).lower()))
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
        return list(in_order(self._answer, instances))

    def _answer(self, instance):
        if instance.candidates:
            [answer] = self.predictor.answer([instance])
            return answer
        answer, _ = self._choose_answer(instance)
        return answer

    def helpline_answer(self, instance):
        helpline = helpline_of_turns(instance.turns)
        if instance.candidates or helpline is None:
            return None
        return self.Answer(candidates=[helpline], scores=[1.0], totals=[0.0], order=[0], good=True)

    def padded_rows(self, instance):
        return len(instance.candidates) or len(self.hits) or CANDIDATES

    def conversation(self, said, decode=""):
        return {"turns": [text for _, text in said]}

    def reply(self, answer):
        return answer["candidates"][0] if answer["candidates"] else answer["reason"]

    def answer_with_attention(self, instance, details):
        if instance.candidates:
            return self.predictor.answer_with_attention(instance, details)
        answer, best_texts = self._choose_answer(instance)
        best = instance.replace(candidates=best_texts[:1])
        _, attention = self.predictor.answer_with_attention(best, details)
        return answer, attention

    def _choose_answer(self, instance):
        """Answers an instance without candidates.

        Returns the answer, and its candidates as the model reads them, see `as_written`.
        """
        hits = self.hits
        if self.index is not None:
            hits = candidates_of(self.index, instance.turns)
        if not hits:
            nothing = self.Answer(
                candidates=[],
                said_to=[],
                scores=[],
                totals=[],
                order=[],
                good=False,
                reason=NOTHING_FOUND,
            )
            return nothing, []
        [ranking] = self.predictor.answer([instance.replace(candidates=[hit.text for hit in hits])])
        rows = []
        for hit, score, logit in zip(hits, ranking.scores, ranking.logits, strict=True):
            rows.append((logit + QUESTION_WEIGHT * hit.question_similarity, score, hit))
        rows.sort(key=lambda row: -row[0])
        totals, scores, best_hits = zip(*rows[:SHOWN], strict=True)

        fields = ranking.model_dump(include={"good", "reason"}, exclude_unset=True)
        read_texts = [hit.text for hit in best_hits]
        texts = read_texts
        if self.index is not None:
            tokenizer = self.predictor.text.tokenizer
            texts = [as_written(text, tokenizer) for text in texts]
            fields["said_to"] = []
            for hit in best_hits:
                fields["said_to"].append([as_written(turn, tokenizer) for turn in hit.context])
        answer = self.Answer(
            candidates=texts,
            scores=list(scores),
            totals=list(totals),
            order=list(range(len(texts))),
            **fields,
        )
        return answer, read_texts


def add_responses(predictor, run, index=None, candidates=None):
    """Returns a predictor that has responses of its own.

    Args:
        predictor: The `SelectionPredictor` of the run.
        index, candidates: See `AnsweringPredictor`. Without either, the index is that of
            `retrieval.build.index_of_run`; if there is none, `predictor` is returned.
    """
    if index is None and candidates is None:
        index = index_of_run(run.path, predictor)
        if index is None:
            return predictor
    return AnsweringPredictor(predictor, index, candidates)
