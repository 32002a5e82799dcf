"""A response-selection model that answers plain text."""

import copy
import functools
import itertools
from typing import NamedTuple

import numpy as np
from pydantic import field_validator

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.sequences import Sequences
from colloquy.data.tokenizer_config import TokenizerConfig
from colloquy.data.tokenizers import spoken_words
from colloquy.engine.cancellation import checkpoint
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor
from colloquy.engine.run import VOCABULARY
from colloquy.tasks.selection.data import read_tokenizer_config
from colloquy.tasks.selection.doubt import load_threshold
from colloquy.tasks.selection.matching import Matching
from colloquy.tasks.selection.split import SelectionSplit, inputs_of

# `inputs_of` rounds the lengths of turns and responses up to multiples of 3/2 of this, of 6.
LENGTH_MULTIPLE = 4
# Candidates per call of the model. Between two calls, a server can give up a request. With a
# multiple of eight, the logits are bit-identical to those of one call with all candidates.
CANDIDATES_PER_CALL = 32
# The index of the only context of an instance.
CONTEXT_1 = np.array([0])
NO_SHARED_WORD = "no response shares a word with the conversation"
LOW_SCORES = "the best response scores lower than nearly all correct ones on dev"


class _Read(NamedTuple):
    """The words of an instance, and the same words encoded."""

    turns: list
    """The words of the turns."""
    candidates: list
    """The words of the candidates."""
    split: SelectionSplit
    """The encoded words: one context, and a line for each candidate."""


class SelectionPredictor(Predictor):
    """Ranks candidate responses to a conversation."""

    class Instance(Config):
        """A conversation and responses to it."""

        turns: list[str]
        """The conversation, the oldest turn first, as people write it; at least one turn is not
        white space. Turns of white space are dropped, since an empty turn between two others would
        change the scores."""
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
        """False if no candidate shares a word with the conversation, or if the best logit is below
        the threshold of the run; a run that was not evaluated on dev has none."""
        reason: str = ""
        """Why `good` is false; left out otherwise."""

    def __init__(self, run):
        if not (run.path / VOCABULARY).is_file():
            raise UserError(f"{run.path} cannot answer text: its dataset had no {VOCABULARY}")
        self.text = read_tokenizer_config(run)
        self.threshold = load_threshold(run)
        self.model = run.load_model()
        self.vocabulary = run.vocabulary
        compile_for_all_sizes(self.model)

    def for_scored_examples(self):
        # The texts of scored examples are words with spaces between them.
        predictor = copy.copy(self)
        predictor.text = TokenizerConfig()
        return predictor

    def answer(self, instances):
        return [self._answer(self._read(instance)) for instance in instances]

    def _answer(self, read):
        logits = self._score(read.split)
        scores = 1 / (1 + np.exp(-logits.astype(np.float64)))
        order = np.argsort(-logits, kind="stable")
        return self.Answer(
            scores=scores.tolist(),
            logits=logits.tolist(),
            order=order.tolist(),
            **self._judge(read, logits),
        )

    def _judge(self, read, logits):
        """Returns the fields `good` and, if it is false, `reason` of an answer."""
        said = spoken_words(itertools.chain(*read.turns))
        offered = spoken_words(itertools.chain(*read.candidates))
        # An instance without candidates returns here: it has no logits.
        if set(said).isdisjoint(offered):
            return {"good": False, "reason": NO_SHARED_WORD}
        if logits.max() < self.threshold:
            return {"good": False, "reason": LOW_SCORES}
        return {"good": True}

    def _score(self, split):
        """The logits of the candidates of a split with one context, float32 `(lines,)`.

        Each call of the model encodes the context once, for `CANDIDATES_PER_CALL` candidates. In
        all calls the candidates are padded to the length of the longest one.
        """
        lines_1N = np.arange(len(split))[None]
        inputs = inputs_of(split, self.model.config, CONTEXT_1, lines_1N, LENGTH_MULTIPLE)
        logits = np.zeros(len(split), np.float32)
        for start in range(0, len(split), CANDIDATES_PER_CALL):
            part = slice(start, start + CANDIDATES_PER_CALL)
            batch = dict(inputs)
            # `candidates` are the responses as DAM's lexical match reads them.
            for name in ("responses", "candidates"):
                if name in inputs:
                    batch[name] = inputs[name][:, part]
            logits_1N = np.asarray(self.model.predict_on_batch(batch))
            logits[part] = logits_1N[0]
            checkpoint()  # a server may give up the request here
        return logits

    def padded_rows(self, instance):
        """One row for each candidate, at least one."""
        return max(1, len(instance.candidates))

    def show(self, instance):
        read = self._read(instance)
        answer = self._answer(read)
        turns = []
        for number, words in enumerate(self._limit(read.turns), 1):
            turns.append((f"turn {number}", self.vocabulary.in_brackets(words)))
        ranked = [(answer.logits[i], instance.candidates[i]) for i in answer.order]
        return turns, ranked

    def answer_with_attention(self, instance, details):
        """Returns the answer and the maps of the best candidate, see `Matching.maps`.

        There are no maps if the instance has no candidates or the model has no match matrices.
        """
        read = self._read(instance)
        answer = self._answer(read)
        if not answer.order or self._matching is None:
            return answer, []
        best = answer.order[0]
        lines_11 = np.array([[best]])
        inputs = inputs_of(read.split, self.model.config, CONTEXT_1, lines_11, length_multiple=1)
        turns = self._limit(read.turns)
        [response] = self._limit([read.candidates[best]])
        return answer, self._matching.maps(inputs, turns, response, details)

    @functools.cached_property
    def _matching(self):
        return Matching(self.model) if hasattr(self.model, "match_matrices") else None

    def _read(self, instance):
        """Splits the texts of an instance into words, and encodes them."""
        turns = [self.text.words(turn) for turn in instance.turns]
        candidates = [self.text.words(text) for text in instance.candidates]
        split = SelectionSplit(
            turns=Sequences.of([self.vocabulary.encode(words) for words in turns]),
            first_turn_of_context=np.array([0]),
            num_turns_of_context=np.array([len(turns)]),
            responses=Sequences.of([self.vocabulary.encode(words) for words in candidates]),
            context_of_line=np.zeros(len(candidates), np.int64),
            label=np.zeros(len(candidates), np.int32),
        )
        return _Read(turns, candidates, split)

    def _limit(self, texts):
        """The words that the network reads: the last `max_words` of each of the last `max_turns`.

        A lexical match may read more of them.
        """
        config = self.model.config
        return [words[-config.max_words :] for words in texts[-config.max_turns :]]
