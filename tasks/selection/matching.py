"""Maps of the matches and the attention of a `models.dam.DAM`, as the paper's figures show them.

Letters: T turns   K utterance words   J response words
"""

import keras
import numpy as np

from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import attention_map


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

        maps = []
        for t, words in enumerate(turns):
            _add_map(maps, "", f"turn {t + 1}", words, response, mean_TKJ[t])
        if not details or not response:
            return maps
        for t, words in enumerate(turns):
            group = f"turn {t + 1}: matches"
            for name, M_TKJ in matches.items():
                _add_map(maps, group, f"turn {t + 1}: {name}", words, response, M_TKJ[t])
        self._add_attention(maps, values, inputs, turns, response)
        # The maps of a group are neighbours; levels come one after the other.
        groups = list(dict.fromkeys(shown.get("group") for shown in maps))
        return sorted(maps, key=lambda shown: groups.index(shown.get("group")))

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
                group = "response: attention"
                _add_map(maps, group, f"response: {title}", response, response, Att_JJ)
                Att_TKK = attends.attention(U, U, u_mask, u_mask)[0, 0]
                for t, words in enumerate(turns):
                    group = f"turn {t + 1}: attention"
                    _add_map(maps, group, f"turn {t + 1}: {title}", words, words, Att_TKK[t])

            match = layers.get(f"cross_match_{level}")
            if match is not None:
                Att_TKJ = match.utterance_attends.attention(U, R, u_mask, r_mask)[0, 0]
                Att_TJK = match.response_attends.attention(R, U, r_mask, u_mask)[0, 0]
                for t, words in enumerate(turns):
                    group = f"turn {t + 1}: attention"
                    on_response = f"turn {t + 1} on response {level}"
                    on_turn = f"response on turn {t + 1} {level}"
                    _add_map(maps, group, on_response, words, response, Att_TKJ[t])
                    _add_map(maps, group, on_turn, response, words, Att_TJK[t])


def _add_map(maps, group, title, rows, columns, weights):
    """Adds a map without its padding, unless it has no words; group "": none."""
    if rows and columns:
        weights = _array(weights)[: len(rows), : len(columns)]
        maps.append(attention_map(title, rows, columns, weights, group))


def _array(x):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
