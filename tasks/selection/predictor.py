"""A response-selection model that answers plain text."""

import keras
import numpy as np

from base.files import UserError
from data.sequences import Sequences
from data.tokenizers import words_of
from data.vocabulary import Vocabulary
from engine.predictor import Predictor
from engine.runs import VOCABULARY
from tasks.selection.batches import SelectionSplit, inputs_of
from tasks.selection.ranking import CANDIDATES, score
from tasks.selection.text import text_settings


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
            "description": "The conversation, the oldest turn first, as people write it.",
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
        self.text = text_settings(run)
        self.model = run.load_model()
        self.vocabulary = Vocabulary.load(run.path / VOCABULARY, getattr(self.model.config, "hashed_words", 0))

    def answer(self, instances):
        split = self._split(instances)
        # Many candidates for one context are scored at once, so that it is encoded once.
        at_once = max(CANDIDATES, len(split)) if len(instances) == 1 else CANDIDATES
        logits = (
            score(self.model, split, self.model.config, candidates=at_once) if len(split) else np.zeros(0, np.float32)
        )
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
        """As of `Predictor`; empty for a model without match matrices.

        `attention` shows the best candidate's matches with each turn that is read: the mean of the model's match
        matrices, a row per word of the turn and a column per word of the response, divided by the best match."""
        answer = self.answer([instance])[0]
        return {**answer, "attention": self._matches(instance, answer["order"][0]) if answer["order"] else []}

    def _matches(self, instance, candidate):
        if "aggregation" not in {layer.name for layer in self.model.layers}:
            return []
        config = self.model.config
        turns = [self._words(text)[-config.max_words :] for text in instance["turns"][-config.max_turns :]]
        response = self._words(instance["candidates"][candidate])[-config.max_words :]
        if not hasattr(self, "_match_model"):
            *matches, _mask = self.model.get_layer("aggregation").input
            self._match_model = keras.Model(self.model.input, matches)
        split = self._split([{**instance, "candidates": [instance["candidates"][candidate]]}])
        inputs = inputs_of(split, config, np.array([0]), np.array([[0]]), 1)
        channels = keras.tree.flatten(self._match_model.predict_on_batch(inputs))  # one alone comes without a list
        M_TKJ = np.mean([keras.ops.convert_to_numpy(keras.ops.cast(m, "float32")) for m in channels], axis=0)[0, 0]
        M_TKJ = np.maximum(M_TKJ, 0.0) / max(M_TKJ.max(), 1e-9)
        return [
            {"title": f"turn {t + 1}", "rows": words, "columns": response, "weights": M_KJ.tolist()}
            for t, words in enumerate(turns)
            if words and response
            for M_KJ in [M_TKJ[t, : len(words), : len(response)]]
        ]

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

    def _words(self, text):
        return words_of(text, **self.text)

    def _ids(self, text):
        return self.vocabulary.encode(self._words(text))
