"""A response-selection model that answers plain text."""

import functools

import numpy as np

from base.config import Config
from base.files import UserError
from data.sequences import Sequences
from data.tokenizers import words_of
from engine.predictor import Predictor
from engine.run import VOCABULARY
from engine.vocabularies import vocabulary_of
from tasks.selection.data import text_settings
from tasks.selection.matching import Matching
from tasks.selection.scoring import CANDIDATES, score
from tasks.selection.split import SelectionSplit, inputs_of


class SelectionPredictor(Predictor):
    """Ranks candidate responses to a conversation.

    Args:
        run: A `engine.run.Run` of a selection model.

    Raises:
        UserError: where the run has no vocabulary, or cannot be loaded.
    """

    class Instance(Config):
        """A conversation and responses to it."""

        turns: list[str]
        """The conversation, the oldest turn first, as people write it."""
        candidates: list[str]
        """Responses to choose from."""

    class Answer(Config):
        """Scores of the candidates."""

        scores: list[float]
        """The paper's `g(c, r)` of each candidate, in (0, 1)."""
        logits: list[float]
        """Scores before the sigmoid."""
        order: list[int]
        """Places of the candidates, the best first."""

    def __init__(self, run):
        if not (run.path / VOCABULARY).is_file():
            raise UserError(f"{run.path} cannot answer text: its dataset had no {VOCABULARY}")
        self.text = text_settings(run)
        self.model = run.load_model()
        self.vocabulary = vocabulary_of(run)

    def answer(self, instances):
        split = self._split(instances)
        # Many candidates for one context are scored at once, so that it is encoded once.
        at_once = max(CANDIDATES, len(split)) if len(instances) == 1 else CANDIDATES
        logits = (
            score(self.model, split, self.model.config, candidates=at_once) if len(split) else np.zeros(0, np.float32)
        )
        ends = np.cumsum([len(instance.candidates) for instance in instances])
        return [
            self.Answer(
                scores=(1 / (1 + np.exp(-of_instance.astype(np.float64)))).tolist(),
                logits=of_instance.tolist(),
                order=np.argsort(-of_instance, kind="stable").tolist(),
            )
            for of_instance in np.split(logits, ends[:-1])
        ]

    def answer_with_attention(self, instance, details):
        """As of `Predictor`; empty for a model without match matrices.

        The maps show the best candidate's matches with each turn that is read: the mean of the model's match matrices,
        a row per word of the turn and a column per word of the response, divided by the best match. The details are
        every match matrix, and what every attentive module attended to.
        """
        [answer] = self.answer([instance])
        if not answer.order or self._matching is None:
            return answer, []
        read = self._read(instance.turns, instance.candidates[answer.order[0]])
        maps = self._matching.summary(*read)
        if details:
            maps += self._matching.matches(*read) + self._matching.attention(*read)
        return answer, maps

    @functools.cached_property
    def _matching(self):
        return Matching(self.model) if hasattr(self.model, "match_matrices") else None

    def _read(self, turns, candidate):
        """The model's inputs with one candidate, the words of each turn that is read, and of the candidate."""
        config = self.model.config
        split = self._split([self.Instance(turns=turns, candidates=[candidate])])
        words = [self._words(text)[-config.max_words :] for text in [*turns[-config.max_turns :], candidate]]
        return inputs_of(split, config, np.array([0]), np.array([[0]]), 1), words[:-1], words[-1]

    def _split(self, instances):
        turns = [self._ids(turn) for instance in instances for turn in instance.turns]
        count = np.array([len(instance.turns) for instance in instances], np.int64)
        candidates = [len(instance.candidates) for instance in instances]
        return SelectionSplit(
            turns=Sequences.of(turns),
            context_start=np.cumsum(count) - count,
            context_turns=count,
            responses=Sequences.of([self._ids(text) for instance in instances for text in instance.candidates]),
            context=np.repeat(np.arange(len(instances)), candidates),
            label=np.zeros(sum(candidates), np.int32),
        )

    def _words(self, text):
        return words_of(text, **self.text)

    def _ids(self, text):
        return self.vocabulary.encode(self._words(text))
