"""A response-selection model that answers plain text, and the maps of what it matched and attended to.

Letters: T turns   K utterance words   J response words
"""

import functools

import keras
import numpy as np

from base.config import Config
from base.files import UserError
from data.sequences import Sequences
from data.tokenizers import words_of
from engine.parallel import compile_for_all_sizes
from engine.predictor import Predictor, in_brackets
from engine.run import VOCABULARY
from engine.vocabularies import vocabulary_of
from tasks.selection.data import text_settings
from tasks.selection.scoring import score
from tasks.selection.split import SelectionSplit, inputs_of

LENGTH_MULTIPLE = 4  # that lengths are rounded up to


class SelectionPredictor(Predictor):
    """Ranks candidate responses to a conversation.

    Args:
        run: `engine.run.Run` of a selection model.

    Raises:
        UserError: if the run has no vocabulary, or cannot be loaded.
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
        compile_for_all_sizes(self.model)
        self.vocabulary = vocabulary_of(run)

    def answer(self, instances):
        split, config = self._split(instances), self.model.config
        if not len(split):
            logits = np.zeros(0, np.float32)
        elif len(instances) == 1:  # all candidates at once, so that their context is encoded once
            inputs = inputs_of(split, config, np.array([0]), np.arange(len(split))[None], LENGTH_MULTIPLE)
            logits = np.asarray(self.model.predict_on_batch(inputs))[0]
        else:
            logits = score(self.model, split, config, length_multiple=LENGTH_MULTIPLE)
        ends = np.cumsum([len(instance.candidates) for instance in instances])
        return [
            self.Answer(
                scores=(1 / (1 + np.exp(-of_instance.astype(np.float64)))).tolist(),
                logits=of_instance.tolist(),
                order=np.argsort(-of_instance, kind="stable").tolist(),
            )
            for of_instance in np.split(logits, ends[:-1])
        ]

    def show(self, instance):
        [answer], config = self.answer([instance]), self.model.config
        read = [self._words(text)[-config.max_words :] for text in instance.turns[-config.max_turns :]]
        return (
            [(f"turn {turn}", in_brackets(words, self.vocabulary)) for turn, words in enumerate(read, 1)],
            [(answer.logits[place], instance.candidates[place]) for place in answer.order],
        )

    def answer_with_attention(self, instance, details):
        """The maps are those of the best candidate, see `Matching.maps`; none for a model without match matrices."""
        [answer] = self.answer([instance])
        if not answer.order or self._matching is None:
            return answer, []
        config, turns, candidate = self.model.config, instance.turns, instance.candidates[answer.order[0]]
        split = self._split([self.Instance(turns=turns, candidates=[candidate])])
        inputs = inputs_of(split, config, np.array([0]), np.array([[0]]), 1)
        texts = [*turns[-config.max_turns :], candidate]
        *turns, response = [self._words(text)[-config.max_words :] for text in texts]
        return answer, self._matching.maps(inputs, turns, response, details)

    @functools.cached_property
    def _matching(self):
        return Matching(self.model) if hasattr(self.model, "match_matrices") else None

    def _split(self, instances):
        count = np.array([len(instance.turns) for instance in instances], np.int64)
        candidates = [len(instance.candidates) for instance in instances]
        return SelectionSplit(
            turns=self._ids(turn for instance in instances for turn in instance.turns),
            context_start=np.cumsum(count) - count,
            context_turns=count,
            responses=self._ids(text for instance in instances for text in instance.candidates),
            context=np.repeat(np.arange(len(instances)), candidates),
            label=np.zeros(sum(candidates), np.int32),
        )

    def _ids(self, texts):
        return Sequences.of([self.vocabulary.encode(self._words(text)) for text in texts])

    def _words(self, text):
        return words_of(text, **self.text)


class Matching:
    """Reads match matrices and attention weights out of a `models.dam.DAM`."""

    def __init__(self, model):
        self.model = model
        self._values = keras.Model(model.input, {"M": dict(model.match_matrices), **model.representations})

    def maps(self, inputs, turns, response, details=False):
        """The matches of a response with each turn, and optionally all that they are made of.

        Args:
            inputs: The model's, of one context and one response.
            turns: The words of each turn that is read; lists of strings.
            response: The words of the response that are read.
            details: Adds every match matrix, then the weights of every attentive module.

        Returns:
            Maps as `engine.predictor.Predictor.explain` returns them. The first ones, one for each turn, show the mean
            of the match matrices divided by its maximum; negative matches are zero.
        """
        groups = {}

        def add(group, title, rows, columns, weights):
            if rows and columns:
                weights = weights[: len(rows), : len(columns)].tolist()  # they may be padded
                found = {"title": title, "rows": rows, "columns": columns, "weights": weights}
                groups.setdefault(group, []).append({"group": group, **found} if group else found)

        values = self._values.predict_on_batch(inputs)
        M_TKJ = np.mean([_array(M)[0, 0] for M in values["M"].values()], axis=0)
        M_TKJ = np.maximum(M_TKJ, 0.0) / max(M_TKJ.max(), 1e-9)
        for t, words in enumerate(turns):
            add("", f"turn {t + 1}", words, response, M_TKJ[t])
        if details:
            for name in self.model.match_matrices:
                M_TKJ = _array(values["M"][name])[0, 0]
                for t, words in enumerate(turns):
                    add(f"turn {t + 1}: matches", f"turn {t + 1}: {name}", words, response, M_TKJ[t])
            if response:
                self._attention(add, values, inputs, turns, response)
        return [each for maps in groups.values() for each in maps]

    def _attention(self, add, values, inputs, turns, response):
        """The weights of every attentive module: response and turns on themselves, then each on the other."""
        u_mask = np.asarray(inputs["turns"] != 0)[:, None]  # (1, 1, T, K)
        r_mask = np.asarray(inputs["responses"] != 0)[:, :, None]  # (1, 1, 1, J)
        layers = {layer.name: layer for layer in self.model.layers}
        for l, (U, R) in enumerate(zip(values["U"], values["R"], strict=True)):
            if attend := layers.get(f"self_attention_{l}"):
                name = f"self-attention {l + 1}"
                Att_TKK = _array(attend.attention(U, U, u_mask, u_mask))[0, 0]
                Att_JJ = _array(attend.attention(R, R, r_mask, r_mask))[0, 0, 0]
                add("response: attention", f"response: {name}", response, response, Att_JJ)
                for t, words in enumerate(turns):
                    add(f"turn {t + 1}: attention", f"turn {t + 1}: {name}", words, words, Att_TKK[t])
            if match := layers.get(f"cross_match_{l}"):
                Att_TKJ = _array(match.utterance_attends.attention(U, R, u_mask, r_mask))[0, 0]
                Att_TJK = _array(match.response_attends.attention(R, U, r_mask, u_mask))[0, 0]
                for t, words in enumerate(turns):
                    group = f"turn {t + 1}: attention"
                    add(group, f"turn {t + 1} on response {l}", words, response, Att_TKJ[t])
                    add(group, f"response on turn {t + 1} {l}", response, words, Att_TJK[t])


def _array(x):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
