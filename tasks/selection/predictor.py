"""A response-selection model that answers plain text, with maps of its matches and attention.

Letters: T turns   K utterance words   J response words
"""

import collections
import copy
import functools

import keras
import numpy as np
from pydantic import field_validator

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.tokenizers import WHITESPACE, words_of
from colloquy.engine.checkpoints import checkpoint
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, attention_map, in_brackets
from colloquy.engine.run import VOCABULARY
from colloquy.tasks.selection.data import read_tokenizer_config
from colloquy.tasks.selection.scoring import score
from colloquy.tasks.selection.split import SelectionSplit, inputs_of

# Lengths are rounded up to multiples of this.
LENGTH_MULTIPLE = 4
# Candidates computed at once, so that small requests pass; by eights, logits are the same to the
# bit.
CANDIDATES_AT_ONCE = 32


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

    def __init__(self, run):
        if not (run.path / VOCABULARY).is_file():
            raise UserError(f"{run.path} cannot answer text: its dataset had no {VOCABULARY}")
        self.text = read_tokenizer_config(run)
        self.model = run.load_model()
        self.vocabulary = run.vocabulary
        compile_for_all_sizes(self.model)

    def of_examples(self):
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
            answers.append(self._answer(logits[start:end]))
            start = end
        return answers

    def _answer(self, logits):
        scores = 1 / (1 + np.exp(-logits.astype(np.float64)))
        order = np.argsort(-logits, kind="stable")
        return self.Answer(scores=scores.tolist(), logits=logits.tolist(), order=order.tolist())

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


class Matching:
    """Reads match matrices and attention weights out of a `models.dam.DAM`."""

    def __init__(self, model):
        self.model = model
        outputs = {"M": dict(model.match_matrices), **model.representations}
        self._values = keras.Model(model.input, outputs)
        compile_for_all_sizes(self._values)

    def maps(self, inputs, turns, response, details=False):
        """The matches of one response with each turn, see `engine.predictor.Predictor.explain`.

        The first maps, one for each turn, show the mean of the match matrices divided by its
        maximum; negative matches are zero.

        Args:
            inputs: The model's, of one context and one response.
            turns: The words that are read of each turn.
            response: The words that are read of the response.
            details: Add every match matrix, then the weights of every attentive module.
        """
        values = self._values.predict_on_batch(inputs)
        matches = {name: _array(M)[0, 0] for name, M in values["M"].items()}
        mean_TKJ = np.maximum(np.mean(list(matches.values()), axis=0), 0.0)
        mean_TKJ /= max(mean_TKJ.max(), 1e-9)

        maps = Maps()
        for t, words in enumerate(turns):
            maps.add("", f"turn {t + 1}", words, response, mean_TKJ[t])
            if details:
                group = f"turn {t + 1}: matches"
                for name, M_TKJ in matches.items():
                    maps.add(group, f"turn {t + 1}: {name}", words, response, M_TKJ[t])
        if details and response:
            self._add_attention(maps, values, inputs, turns, response)
        return maps.in_groups()

    def _add_attention(self, maps, values, inputs, turns, response):
        """Adds the weights of every attentive module.

        Response and turns attend to themselves, then each to the other.
        """
        u_mask = np.asarray(inputs["turns"] != 0)[:, None]  # (1, 1, T, K)
        r_mask = np.asarray(inputs["responses"] != 0)[:, :, None]  # (1, 1, 1, J)
        layers = {layer.name: layer for layer in self.model.layers}
        for level, (U, R) in enumerate(zip(values["U"], values["R"], strict=True)):
            attends = layers.get(f"self_attention_{level}")
            if attends is not None:
                title = f"self-attention {level + 1}"
                Att_JJ = attends.attention(R, R, r_mask, r_mask)[0, 0, 0]
                maps.add("response: attention", f"response: {title}", response, response, Att_JJ)
                Att_TKK = attends.attention(U, U, u_mask, u_mask)[0, 0]
                for t, words in enumerate(turns):
                    group = f"turn {t + 1}: attention"
                    maps.add(group, f"turn {t + 1}: {title}", words, words, Att_TKK[t])

            match = layers.get(f"cross_match_{level}")
            if match is not None:
                Att_TKJ = match.utterance_attends.attention(U, R, u_mask, r_mask)[0, 0]
                Att_TJK = match.response_attends.attention(R, U, r_mask, u_mask)[0, 0]
                for t, words in enumerate(turns):
                    group = f"turn {t + 1}: attention"
                    on_response = f"turn {t + 1} on response {level}"
                    on_turn = f"response on turn {t + 1} {level}"
                    maps.add(group, on_response, words, response, Att_TKJ[t])
                    maps.add(group, on_turn, response, words, Att_TJK[t])


class Maps:
    """Attention maps, collected by group."""

    def __init__(self):
        self.maps_by_group = collections.defaultdict(list)

    def add(self, group, title, rows, columns, weights):
        """Adds a map without its padding, unless it has no words; group "": none."""
        if not rows or not columns:
            return
        weights = _array(weights)[: len(rows), : len(columns)]
        group_field = {"group": group} if group else {}
        shown = attention_map(title, rows, columns, weights, **group_field)
        self.maps_by_group[group].append(shown)

    def in_groups(self):
        """All maps, those of a group together."""
        return [shown for maps in self.maps_by_group.values() for shown in maps]


def _array(x):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
