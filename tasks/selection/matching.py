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

        maps = _Maps(turns, response)
        maps.add_for_turns("", "turn {}", maps.turns, maps.responses, mean_TKJ)
        if not details or not response:
            return maps.shown
        for name, M_TKJ in matches.items():
            title = f"turn {{}}: {name}"
            maps.add_for_turns("turn {}: matches", title, maps.turns, maps.responses, M_TKJ)
        self._add_attention(maps, values, inputs)
        # The maps of a group are neighbours; levels come one after the other.
        groups = list(dict.fromkeys(shown.get("group") for shown in maps.shown))
        return sorted(maps.shown, key=lambda shown: groups.index(shown.get("group")))

    def _add_attention(self, maps, values, inputs):
        """Adds the weights of every attentive module.

        Response and turns attend to themselves, then each to the other.
        """
        group = "turn {}: attention"
        turns, responses = maps.turns, maps.responses
        u_mask = np.asarray(inputs["turns"] != 0)[:, None]  # (1, 1, T, K)
        r_mask = np.asarray(inputs["responses"] != 0)[:, :, None]  # (1, 1, 1, J)
        layers = {layer.name: layer for layer in self.model.layers}
        for level, (U, R) in enumerate(zip(values["U"], values["R"], strict=True)):
            attends = layers.get(f"self_attention_{level}")
            if attends is not None:
                title = f"self-attention {level + 1}"
                Att_JJ = attends.attention(R, R, r_mask, r_mask)[0, 0, 0]
                response = responses[0]
                maps.add("response: attention", f"response: {title}", response, response, Att_JJ)
                Att_TKK = attends.attention(U, U, u_mask, u_mask)[0, 0]
                maps.add_for_turns(group, f"turn {{}}: {title}", turns, turns, Att_TKK)

            match = layers.get(f"cross_match_{level}")
            if match is not None:
                Att_TKJ = match.utterance_attends.attention(U, R, u_mask, r_mask)[0, 0]
                Att_TJK = match.response_attends.attention(R, U, r_mask, u_mask)[0, 0]
                on_response = f"turn {{}} on response {level}"
                on_turn = f"response on turn {{}} {level}"
                maps.add_for_turns(group, on_response, turns, responses, Att_TKJ)
                maps.add_for_turns(group, on_turn, responses, turns, Att_TJK)


class _Maps:
    """Collects maps of the words of turns and of a response."""

    def __init__(self, turns, response):
        self.turns = turns
        self.responses = [response] * len(turns)
        self.shown = []

    def add(self, group, title, rows, columns, weights):
        """Adds a map without its padding, unless it has no words; group "": none."""
        if rows and columns:
            weights = _array(weights)[: len(rows), : len(columns)]
            self.shown.append(attention_map(title, rows, columns, weights, group))

    def add_for_turns(self, group, title, rows, columns, weights_T):
        """Adds a map for each turn, whose number replaces `{}`."""
        for t, words in enumerate(rows):
            self.add(group.format(t + 1), title.format(t + 1), words, columns[t], weights_T[t])


def _array(x):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
