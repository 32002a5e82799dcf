"""A response-selection model that answers plain text, with maps of its matches and attention.

Letters: T turns   K utterance words   J response words
"""

import collections
import functools

import keras
import numpy as np
from pydantic import field_validator

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.data.tokenizers import words_of
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import Predictor, Size, attention_map, in_brackets
from colloquy.engine.run import VOCABULARY
from colloquy.tasks.selection.data import read_tokenizer_config
from colloquy.tasks.selection.scoring import score
from colloquy.tasks.selection.split import SelectionSplit, inputs_of

LENGTH_MULTIPLE = 4  # that lengths are rounded up to
# candidates computed at once, so that small requests pass; by eights, logits are the same to the
# bit
PART = 32
CONTEXT, RESPONSE = 60, 16  # words that each costs beside its own


class SelectionPredictor(Predictor):
    """Ranks candidate responses to a conversation."""

    class Instance(Config):
        """A conversation and responses to it."""

        turns: list[str]
        """The conversation, the oldest turn first, as people write it; at least one turn has
        text.
        """
        candidates: list[str]
        """Responses to choose from."""

        @field_validator("turns")
        @classmethod
        def _has_text(cls, turns):
            if not any(map(str.strip, turns)):
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
        self.text, self.model, self.vocabulary = (
            read_tokenizer_config(run),
            run.load_model(),
            run.vocabulary,
        )
        compile_for_all_sizes(self.model)

    def answer(self, instances):
        split, config = self._split(instances), self.model.config
        # many candidates at once, so that their context is encoded once
        if len(instances) == 1 and len(split):
            inputs = inputs_of(
                split, config, np.array([0]), np.arange(len(split))[None], LENGTH_MULTIPLE
            )
            logits = [np.asarray(self.model.predict_on_batch(part))[0] for part in _parts(inputs)]
            logits = np.concatenate(logits)
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

    def size(self, instance):
        """Like `Predictor`'s: a row for each candidate, of the padded context and response."""
        config = self.model.config
        turns, candidates = (
            [len(self._words(text)) for text in texts]
            for texts in (instance.turns, instance.candidates)
        )
        T, K, J = config.max_turns, config.max_words, config.max_words
        if config.masking == "exact":  # else padding is computed up to the limits
            T, K, J = (
                min(T, len(turns)),
                min(K, max(turns, default=0)),
                min(J, max(candidates, default=0)),
            )
        shape = CONTEXT + max(T * K, sum(turns)), RESPONSE + J
        return Size({"turns": sum(turns), "candidates": sum(candidates)}, len(candidates), shape)

    def show(self, instance):
        [answer], turns = self.answer([instance]), self._read(instance.turns)
        read = [
            (f"turn {n}", in_brackets(words, self.vocabulary)) for n, words in enumerate(turns, 1)
        ]
        return read, [(answer.logits[place], instance.candidates[place]) for place in answer.order]

    def answer_with_attention(self, instance, details):
        """The maps are those of the best candidate, see `Matching.maps`; none for a model without
        match matrices.
        """
        [answer] = self.answer([instance])
        if not answer.order or self._matching is None:
            return answer, []
        best = instance.replace(candidates=[instance.candidates[answer.order[0]]])
        inputs = inputs_of(
            self._split([best]), self.model.config, np.array([0]), np.array([[0]]), 1
        )
        [response] = self._read(best.candidates)
        return answer, self._matching.maps(inputs, self._read(best.turns), response, details)

    @functools.cached_property
    def _matching(self):
        return Matching(self.model) if hasattr(self.model, "match_matrices") else None

    def _split(self, instances):
        contexts, responses, eos_id = [], [], self.vocabulary.eos_id
        for instance in instances:
            context = [
                id
                for turn in instance.turns
                for id in (*self.vocabulary.encode(self._words(turn)), eos_id)
            ]
            contexts += [context] * len(instance.candidates)
            responses += [self.vocabulary.encode(self._words(text)) for text in instance.candidates]
        return SelectionSplit.of(contexts, responses, [0] * len(responses), eos_id)

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
        self._values = keras.Model(
            model.input, {"M": dict(model.match_matrices), **model.representations}
        )
        compile_for_all_sizes(self._values)

    def maps(self, inputs, turns, response, details=False):
        """The matches of one response with each turn, as `engine.predictor.Predictor.explain`
        returns them.

        The first maps, one for each turn, show the mean of the match matrices divided by its
        maximum; negative matches are zero. With `details` every match matrix follows, then the
        weights of every attentive module. `turns` and `response` are the words that are read.
        """
        groups = collections.defaultdict(list)

        def add(group, title, rows, columns, weights):
            if rows and columns:
                weights, named = (
                    _array(weights)[: len(rows), : len(columns)],
                    {"group": group} if group else {},
                )
                # without padding
                groups[group].append(attention_map(title, rows, columns, weights, **named))

        values = self._values.predict_on_batch(inputs)
        matches = {name: _array(M)[0, 0] for name, M in values["M"].items()}
        M_TKJ = np.maximum(np.mean(list(matches.values()), axis=0), 0.0)
        M_TKJ /= max(M_TKJ.max(), 1e-9)
        for t, words in enumerate(turns):
            add("", f"turn {t + 1}", words, response, M_TKJ[t])
            for name, M in matches.items() if details else ():
                add(f"turn {t + 1}: matches", f"turn {t + 1}: {name}", words, response, M[t])
        if details and response:
            self._add_attention(add, values, inputs, turns, response)
        return [each for group in groups.values() for each in group]

    def _add_attention(self, add, values, inputs, turns, response):
        """Adds the weights of every attentive module: response and turns on themselves, then each
        on the other.
        """
        u_mask = np.asarray(inputs["turns"] != 0)[:, None]  # (1, 1, T, K)
        r_mask = np.asarray(inputs["responses"] != 0)[:, :, None]  # (1, 1, 1, J)
        layers = {layer.name: layer for layer in self.model.layers}
        for l, (U, R) in enumerate(zip(values["U"], values["R"], strict=True)):
            if attend := layers.get(f"self_attention_{l}"):
                title, Att_TKK = (
                    f"self-attention {l + 1}",
                    attend.attention(U, U, u_mask, u_mask)[0, 0],
                )
                Att_JJ = attend.attention(R, R, r_mask, r_mask)[0, 0, 0]
                add("response: attention", f"response: {title}", response, response, Att_JJ)
                for t, words in enumerate(turns):
                    add(
                        f"turn {t + 1}: attention",
                        f"turn {t + 1}: {title}",
                        words,
                        words,
                        Att_TKK[t],
                    )
            if match := layers.get(f"cross_match_{l}"):
                Att_TKJ = match.utterance_attends.attention(U, R, u_mask, r_mask)[0, 0]
                Att_TJK = match.response_attends.attention(R, U, r_mask, u_mask)[0, 0]
                for t, words in enumerate(turns):
                    group = f"turn {t + 1}: attention"
                    add(group, f"turn {t + 1} on response {l}", words, response, Att_TKJ[t])
                    add(group, f"response on turn {t + 1} {l}", response, words, Att_TJK[t])


def _parts(inputs):
    """The inputs of one context in parts of at most `PART` candidates, padded alike."""
    for first in range(0, inputs["responses"].shape[1], PART):
        part = slice(first, first + PART)
        yield {
            name: x[:, part] if name in ("responses", "candidates") else x
            for name, x in inputs.items()
        }


def _array(x):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
