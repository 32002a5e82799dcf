"""A response-selection model that answers plain text."""

import copy
import functools
from typing import NamedTuple

import numpy as np
from pydantic import field_validator

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.tokenizers import WHITESPACE, words_of
from colloquy.engine.checkpoints import checkpoint
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, in_brackets
from colloquy.engine.run import VOCABULARY
from colloquy.tasks.selection.data import read_tokenizer_config
from colloquy.tasks.selection.doubt import load_threshold
from colloquy.tasks.selection.lexical import is_spoken
from colloquy.tasks.selection.matching import Matching
from colloquy.tasks.selection.scoring import score
from colloquy.tasks.selection.split import SelectionSplit, inputs_of

# Numbers of words are padded to multiples of this.
LENGTH_MULTIPLE = 4
# Candidates per call of the model. Between two calls, a server can give up a request. With a
# multiple of eight, the logits are equal to the bit to those of one call with all candidates.
CANDIDATES_PER_CALL = 32
NO_SHARED_WORD = "no response shares a word with the conversation"
LOW_SCORES = "the best one scores lower than nearly all right ones did"


class _Tokenized(NamedTuple):
    """The words of the texts of an instance."""

    turns: list[list[str]]
    candidates: list[list[str]]


class SelectionPredictor(Predictor):
    """Ranks candidate responses to a conversation."""

    class Instance(Config):
        """A conversation and responses to it."""

        turns: list[str]
        """The conversation, the oldest turn first, as people write it; at least one turn has text.
        Turns without text are dropped, since an empty turn between two others would change the
        scores."""
        candidates: list[str]
        """Responses to choose from."""

        @field_validator("turns")
        @classmethod
        def _drop_empty_turns(cls, turns):
            turns = [turn for turn in turns if turn.strip()]
            if not turns:
                raise ValueError("a turn with text is needed")
            return turns

    class Answer(Config):
        """Scores of the candidates."""

        scores: list[float]
        """The paper's `g(c, r)` of each candidate, in (0, 1)."""
        logits: list[float]
        """Scores before the sigmoid."""
        order: list[int]
        """Indices of the candidates, the best first."""
        good: bool
        """False if probably no candidate continues the conversation."""
        reason: str = ""
        """Why the answer is not good."""

    def __init__(self, run):
        if not (run.path / VOCABULARY).is_file():
            raise UserError(f"{run.path} cannot answer text: its dataset had no {VOCABULARY}")
        self.tokenizer_config = read_tokenizer_config(run)
        self.threshold = load_threshold(run)
        self.model = run.load_model()
        self.vocabulary = run.vocabulary
        compile_for_all_sizes(self.model)

    def for_scored_examples(self):
        # The texts of scored examples are words with spaces between them.
        predictor = copy.copy(self)
        predictor.tokenizer_config = {"tokenizer": WHITESPACE, "lower": False}
        return predictor

    def answer(self, instances):
        return self._answer_tokenized([self._tokenize(instance) for instance in instances])

    def _answer_tokenized(self, tokenized_instances):
        split = self._make_split(tokenized_instances)
        if len(tokenized_instances) == 1 and len(split):
            logits = self._score_one_context(split)
        else:
            logits = score(self.model, split, self.model.config, length_multiple=LENGTH_MULTIPLE)

        answers = []
        start = 0
        for tokenized in tokenized_instances:
            end = start + len(tokenized.candidates)
            answers.append(self._make_answer(tokenized, logits[start:end]))
            start = end
        return answers

    def _make_answer(self, tokenized, logits):
        scores = 1 / (1 + np.exp(-logits.astype(np.float64)))
        order = np.argsort(-logits, kind="stable")
        return self.Answer(
            scores=scores.tolist(),
            logits=logits.tolist(),
            order=order.tolist(),
            **self._judge(tokenized, logits),
        )

    def _judge(self, tokenized, logits):
        """Returns the fields `good` and, if it is false, `reason` of an answer."""
        words_of_turns = _spoken_words(tokenized.turns)
        # An instance without candidates returns here: it has no logits.
        if words_of_turns.isdisjoint(_spoken_words(tokenized.candidates)):
            return {"good": False, "reason": NO_SHARED_WORD}
        if logits.max() < self.threshold:
            return {"good": False, "reason": LOW_SCORES}
        return {"good": True}

    def _score_one_context(self, split):
        """The logits of the candidates of a split with one context, float32 `(lines,)`.

        Each call of the model encodes the context once, for `CANDIDATES_PER_CALL` candidates. In
        all calls the candidates are padded to the length of the longest one.
        """
        context_1 = np.array([0])
        lines_1N = np.arange(len(split))[None]
        inputs = inputs_of(split, self.model.config, context_1, lines_1N, LENGTH_MULTIPLE)
        logits = []
        for start in range(0, len(split), CANDIDATES_PER_CALL):
            end = start + CANDIDATES_PER_CALL
            batch = dict(inputs)
            for name in ("responses", "candidates"):
                if name in inputs:
                    batch[name] = inputs[name][:, start:end]
            [logits_N] = np.asarray(self.model.predict_on_batch(batch))
            logits.append(logits_N)
            checkpoint()
        return np.concatenate(logits)

    def padded_rows(self, instance):
        """One row for each candidate, at least one."""
        return max(1, len(instance.candidates))

    def show(self, instance):
        tokenized = self._tokenize(instance)
        [answer] = self._answer_tokenized([tokenized])
        turns = []
        for number, words in enumerate(self._limit(tokenized.turns), 1):
            turns.append((f"turn {number}", in_brackets(words, self.vocabulary)))
        ranked = [(answer.logits[i], instance.candidates[i]) for i in answer.order]
        return turns, ranked

    def answer_with_attention(self, instance, details):
        """Returns the answer and the maps of the best candidate, see `Matching.maps`.

        There are no maps if the instance has no candidates or the model has no match matrices.
        """
        tokenized = self._tokenize(instance)
        [answer] = self._answer_tokenized([tokenized])
        if not answer.order or self._matching is None:
            return answer, []
        best_candidates = [tokenized.candidates[answer.order[0]]]
        split = self._make_split([tokenized._replace(candidates=best_candidates)])
        context_1 = np.array([0])
        lines_11 = np.array([[0]])
        inputs = inputs_of(split, self.model.config, context_1, lines_11, length_multiple=1)
        turns = self._limit(tokenized.turns)
        [response] = self._limit(best_candidates)
        return answer, self._matching.maps(inputs, turns, response, details)

    @functools.cached_property
    def _matching(self):
        return Matching(self.model) if hasattr(self.model, "match_matrices") else None

    def _tokenize(self, instance):
        """Splits the texts of an instance into words."""
        return _Tokenized(
            turns=[words_of(turn, **self.tokenizer_config) for turn in instance.turns],
            candidates=[words_of(text, **self.tokenizer_config) for text in instance.candidates],
        )

    def _make_split(self, tokenized_instances):
        """Makes a `SelectionSplit` with a line for each candidate of each instance."""
        eos_id = self.vocabulary.eos_id
        contexts = []
        responses = []
        for tokenized in tokenized_instances:
            context = []
            for words in tokenized.turns:
                context += self.vocabulary.encode(words)
                context.append(eos_id)
            for words in tokenized.candidates:
                contexts.append(context)
                responses.append(self.vocabulary.encode(words))
        labels = [0] * len(responses)
        return SelectionSplit.of(contexts, responses, labels, eos_id)

    def _limit(self, texts):
        """The words that the model reads: the last `max_words` of each of the last `max_turns`."""
        config = self.model.config
        return [words[-config.max_words :] for words in texts[-config.max_turns :]]


def _spoken_words(texts):
    """The distinct words of texts that have a letter or a digit."""
    spoken = set()
    for words in texts:
        spoken.update(word for word in words if is_spoken(word))
    return spoken
