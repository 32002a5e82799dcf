"""Maps of the matches and the attention of a `models.dam.DAM`, as the paper's figures show them.

Letters: T turns   K utterance words   J response words
"""

import itertools

import keras
import numpy as np

from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import attention_map


class Matching:
    """Reads match matrices and attention weights out of a `models.dam.DAM`."""

    def __init__(self, model):
        self.model = model
        outputs = {
            "M": dict(model.match_matrices),
            "U": model.representations["U"],
            "R": model.representations["R"],
        }
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
        matches = {}
        for name, M in values["M"].items():
            # M is (1, 1, T, K, J): one context with one response.
            matches[name] = _array(M)[0, 0]
        mean_TKJ = np.maximum(np.mean(list(matches.values()), axis=0), 0.0)
        mean_TKJ /= max(mean_TKJ.max(), 1e-9)

        maps = _Maps()
        for t, words in enumerate(turns):
            maps.add(f"turn {t + 1}", words, response, mean_TKJ[t])
        if details and response:
            for t, words in enumerate(turns):
                group = f"turn {t + 1}: matches"
                for name, M_TKJ in matches.items():
                    maps.add(f"turn {t + 1}: {name}", words, response, M_TKJ[t], group)
            self._add_attention(maps, inputs, values["U"], values["R"], turns, response)
        return maps.all()

    def _add_attention(self, maps, inputs, U_of_levels, R_of_levels, turns, response):
        """Adds the weights of every attentive module.

        At each level, turns and response attend to themselves, then to each other.
        """
        # The axes of size 1 are those of `models.dam`: `U` is (1, 1, T, K, D), `R` (1, 1, 1, J, D).
        u_mask = (inputs["turns"] != 0)[:, None]  # (1, 1, T, K)
        r_mask = (inputs["responses"] != 0)[:, :, None]  # (1, 1, 1, J)
        layers = {layer.name: layer for layer in self.model.layers}
        for level, (U, R) in enumerate(zip(U_of_levels, R_of_levels, strict=True)):
            self_attention = layers.get(f"self_attention_{level}")
            if self_attention is not None:
                # The layer reads level 0 to compute level 1: its maps have the number 1.
                name = f"self-attention {level + 1}"
                Att_JJ = _weights(self_attention, R, R, r_mask, r_mask)[0]
                group = "response: attention"
                maps.add(f"response: {name}", response, response, Att_JJ, group)
                Att_TKK = _weights(self_attention, U, U, u_mask, u_mask)
                for t, words in enumerate(turns):
                    group = f"turn {t + 1}: attention"
                    maps.add(f"turn {t + 1}: {name}", words, words, Att_TKK[t], group)

            cross_match = layers.get(f"cross_match_{level}")
            if cross_match is not None:
                Att_TKJ = _weights(cross_match.utterance_attends, U, R, u_mask, r_mask)
                Att_TJK = _weights(cross_match.response_attends, R, U, r_mask, u_mask)
                for t, words in enumerate(turns):
                    group = f"turn {t + 1}: attention"
                    on_response = f"turn {t + 1} on response {level}"
                    on_turn = f"response on turn {t + 1} {level}"
                    maps.add(on_response, words, response, Att_TKJ[t], group)
                    maps.add(on_turn, response, words, Att_TJK[t], group)


class _Maps:
    """Collects maps. Those of a group become neighbours, in the place of the first one."""

    def __init__(self):
        self._maps_by_group = {}

    def add(self, title, rows, columns, weights, group=""):
        """Adds a map without its padding, unless its rows or its columns have no words."""
        if rows and columns:
            weights = weights[: len(rows), : len(columns)]
            maps = self._maps_by_group.setdefault(group, [])
            maps.append(attention_map(title, rows, columns, weights, group))

    def all(self):
        return list(itertools.chain(*self._maps_by_group.values()))


def _weights(module, queries, keys, query_mask, key_mask):
    """The weights of an attentive module for the only context and its only response."""
    return _array(module.attention(queries, keys, query_mask, key_mask))[0, 0]


def _array(x):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
