"""A response-selection model that answers plain text."""

import copy
import functools

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

# Lengths are rounded up to multiples of this.
LENGTH_MULTIPLE = 4
# Candidates computed at once, so that small requests pass; by eights, logits are the same to the
# bit.
CANDIDATES_AT_ONCE = 32
NO_SHARED_WORD = "no response shares a word with the conversation"
LOW_SCORES = "the best one scores lower than nearly all right ones did"


class SelectionPredictor(Predictor):
    """Ranks candidate responses to a conversation."""

    class Instance(Config):
        """A conversation and responses to it."""

        turns: list[str]
        """The conversation, the oldest turn first, as people write it; at least one has text. Turns
        without text are dropped: between two others, one would change the scores."""
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
        """Places of the candidates, the best first."""
        good: bool
        """False: probably none of them continues the conversation."""
        reason: str = ""
        """Why the answer is not good."""

    def __init__(self, run):
        if not (run.path / VOCABULARY).is_file():
            raise UserError(f"{run.path} cannot answer text: its dataset had no {VOCABULARY}")
        self.text = read_tokenizer_config(run)
        self.threshold = load_threshold(run)
        self.model = run.load_model()
        self.vocabulary = run.vocabulary
        compile_for_all_sizes(self.model)

    def for_scored_examples(self):
        predictor = copy.copy(self)
        predictor.text = {"tokenizer": WHITESPACE, "lower": False}
        return predictor

    def answer(self, instances):
        split = self._split(instances)
        if len(instances) == 1 and len(split):
            logits = self._logits_of_one_context(split)
        else:
            logits = score(self.model, split, self.model.config, length_multiple=LENGTH_MULTIPLE)

        answers = []
        start = 0
        for instance in instances:
            end = start + len(instance.candidates)
            answers.append(self._answer(instance, logits[start:end]))
            start = end
        return answers

    def _answer(self, instance, logits):
        scores = 1 / (1 + np.exp(-logits.astype(np.float64)))
        order = np.argsort(-logits, kind="stable")
        return self.Answer(
            scores=scores.tolist(),
            logits=logits.tolist(),
            order=order.tolist(),
            **self._judge(instance, logits),
        )

    def _judge(self, instance, logits):
        """The fields `good` and, if it is false, `reason` of an answer."""
        said = self._spoken_words(instance.turns)
        if said.isdisjoint(self._spoken_words(instance.candidates)):
            return {"good": False, "reason": NO_SHARED_WORD}
        if logits.max() < self.threshold:
            return {"good": False, "reason": LOW_SCORES}
        return {"good": True}

    def _spoken_words(self, texts):
        """The distinct words of texts that have a letter or a digit."""
        words = set()
        for text in texts:
            words.update(word for word in self._words(text) if is_spoken(word))
        return words

    def _logits_of_one_context(self, split):
        """Encodes the context once for up to `CANDIDATES_AT_ONCE` candidates, padded alike."""
        lines = np.arange(len(split))[None]
        inputs = inputs_of(split, self.model.config, np.array([0]), lines, LENGTH_MULTIPLE)
        logits = []
        for start in range(0, len(split), CANDIDATES_AT_ONCE):
            part = {}
            for name, ids in inputs.items():
                of_candidates = name in ("responses", "candidates")
                part[name] = ids[:, start : start + CANDIDATES_AT_ONCE] if of_candidates else ids
            logits.append(np.asarray(self.model.predict_on_batch(part))[0])
            checkpoint()
        return np.concatenate(logits)

    def padded_rows(self, instance):
        """A row for each candidate."""
        return max(1, len(instance.candidates))

    def show(self, instance):
        [answer] = self.answer([instance])
        read = []
        for number, words in enumerate(self._read(instance.turns), 1):
            read.append((f"turn {number}", in_brackets(words, self.vocabulary)))
        ranked = [(answer.logits[place], instance.candidates[place]) for place in answer.order]
        return read, ranked

    def answer_with_attention(self, instance, details):
        """The maps are those of the best candidate, see `Matching.maps`.

        A model without match matrices has none.
        """
        [answer] = self.answer([instance])
        if not answer.order or self._matching is None:
            return answer, []
        best_candidate = instance.candidates[answer.order[0]]
        # A copy is not checked again: an example keeps its turns without words.
        asked = instance.model_copy(update={"candidates": [best_candidate]})
        split = self._split([asked])
        inputs = inputs_of(split, self.model.config, np.array([0]), np.array([[0]]), 1)
        turns = self._read(instance.turns)
        [response] = self._read([best_candidate])
        return answer, self._matching.maps(inputs, turns, response, details)

    @functools.cached_property
    def _matching(self):
        return Matching(self.model) if hasattr(self.model, "match_matrices") else None

    def _split(self, instances):
        """A `SelectionSplit` with a line for each candidate of each instance."""
        eos_id = self.vocabulary.eos_id
        contexts = []
        responses = []
        for instance in instances:
            context = []
            for turn in instance.turns:
                context += self.vocabulary.encode(self._words(turn))
                context.append(eos_id)
            for candidate in instance.candidates:
                contexts.append(context)
                responses.append(self.vocabulary.encode(self._words(candidate)))
        labels = [0] * len(responses)
        return SelectionSplit.of(contexts, responses, labels, eos_id)

    def _words(self, text):
        return words_of(text, **self.text)

    def _read(self, texts):
        """The words that the model reads of the last texts."""
        config = self.model.config
        return [self._words(text)[-config.max_words :] for text in texts[-config.max_turns :]]
