"""A response-selection model that answers plain text."""

import numpy as np

from base.files import UserError
from data.corpora.smn import tokenize
from data.sequences import Sequences
from data.vocabulary import Vocabulary
from engine.predictor import Predictor
from engine.runs import VOCABULARY
from tasks.selection.batches import SelectionSplit
from tasks.selection.ranking import score


class SelectionPredictor(Predictor):
    """Ranks candidate responses to a conversation.

    An answer has `logits` and `scores`, their sigmoids, of the candidates in the order given, and `order`: the
    candidates' places, best first.

    Args:
        run: A `engine.runs.Run` of a selection model.

    Raises:
        UserError: where the run has no vocabulary, or cannot be loaded.
    """

    fields = {
        "turns": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The conversation, the oldest turn first; words separated by white space as in the corpus.",
        },
        "candidates": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Responses to choose from.",
        },
    }

    def __init__(self, run):
        if not (run.path / VOCABULARY).is_file():
            raise UserError(f"{run.path} cannot answer text: its dataset had no {VOCABULARY}")
        self.vocabulary = Vocabulary.load(run.path / VOCABULARY)
        self.model = run.load_model()

    def answer(self, instances):
        split = self._split(instances)
        logits = score(self.model, split, self.model.config) if len(split) else np.zeros(0, np.float32)
        ends = np.cumsum([len(instance["candidates"]) for instance in instances])
        return [
            {
                "scores": (1 / (1 + np.exp(-of_instance.astype(np.float64)))).tolist(),
                "logits": of_instance.tolist(),
                "order": np.argsort(-of_instance, kind="stable").tolist(),
            }
            for of_instance in np.split(logits, ends[:-1])
        ]

    def answer_with_attention(self, instance):
        return {**self.answer([instance])[0], "attention": []}

    def _split(self, instances):
        turns = [self._ids(turn) for instance in instances for turn in instance["turns"]]
        count = np.array([len(instance["turns"]) for instance in instances], np.int64)
        candidates = [len(instance["candidates"]) for instance in instances]
        return SelectionSplit(
            turns=Sequences.of(turns),
            context_start=np.cumsum(count) - count,
            context_turns=count,
            responses=Sequences.of([self._ids(text) for instance in instances for text in instance["candidates"]]),
            context=np.repeat(np.arange(len(instances)), candidates),
            label=np.zeros(sum(candidates), np.int32),
        )

    def _ids(self, text):
        return self.vocabulary.encode(tokenize(text))
