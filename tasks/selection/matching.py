"""What a DAM matched and attended to, as maps of words.

Letters: T turns   K utterance words   J response words; one context with one response
"""

import keras
import numpy as np


class Matching:
    """Reads match matrices and attention weights out of a model.

    Args:
        model: A `models.dam.DAM`.

    Call arguments of its methods:
        inputs: The model's, of one context and one response.
        turns: The words of each turn that is read; a list of lists.
        response: The words of the response that are read.
    """

    def __init__(self, model):
        self.model = model
        self._values = keras.Model(model.input, {"M": dict(model.match_matrices), **model.representations})

    def summary(self, inputs, turns, response):
        """For each turn the mean over all match matrices, divided by the best match; negative ones are zero."""
        found = self._computed(inputs)["M"].values()
        M_TKJ = np.mean([_array(m)[0, 0] for m in found], axis=0)
        M_TKJ = np.maximum(M_TKJ, 0.0) / max(M_TKJ.max(), 1e-9)
        return [_map(f"turn {t + 1}", words, response, M_TKJ[t]) for t, words in enumerate(turns) if words and response]

    def matches(self, inputs, turns, response):
        """Every match matrix of every turn, as it is."""
        values = self._computed(inputs)["M"]
        found = {name: _array(values[name])[0, 0] for name in self.model.match_matrices}
        return [
            {"group": f"turn {t + 1}: matches", **_map(f"turn {t + 1}: {name}", words, response, M_TKJ[t])}
            for t, words in enumerate(turns)
            if words and response
            for name, M_TKJ in found.items()
        ]

    def attention(self, inputs, turns, response):
        """The weights of every attentive module: turns and response on themselves, then each on the other."""
        values = self._computed(inputs)
        u_mask = np.asarray(inputs["turns"] != 0)[:, None]  # (1, 1, T, K)
        r_mask = np.asarray(inputs["responses"] != 0)[:, :, None]  # (1, 1, 1, J)
        layers = {layer.name: layer for layer in self.model.layers}
        found, of_response = [[] for _ in turns], []
        for l, (U, R) in enumerate(zip(values["U"], values["R"], strict=True)):
            if attend := layers.get(f"self_attention_{l}"):
                name = f"self-attention {l + 1}"
                Att_TKK = _array(attend.attention(U, U, u_mask, u_mask))[0, 0]
                Att_JJ = _array(attend.attention(R, R, r_mask, r_mask))[0, 0, 0]
                of_response.append(_map(f"response: {name}", response, response, Att_JJ))
                for t, words in enumerate(turns):
                    found[t].append(_map(f"turn {t + 1}: {name}", words, words, Att_TKK[t]))
            if match := layers.get(f"cross_match_{l}"):
                Att_TKJ = _array(match.utterance_attends.attention(U, R, u_mask, r_mask))[0, 0]
                Att_TJK = _array(match.response_attends.attention(R, U, r_mask, u_mask))[0, 0]
                for t, words in enumerate(turns):
                    found[t].append(_map(f"turn {t + 1} on response {l}", words, response, Att_TKJ[t]))
                    found[t].append(_map(f"response on turn {t + 1} {l}", response, words, Att_TJK[t]))
        groups = {"response: attention": of_response} if response else {}
        groups |= {f"turn {t + 1}: attention": found[t] for t, words in enumerate(turns) if words and response}
        return [{"group": group, **each} for group, maps in groups.items() for each in maps]

    def _computed(self, inputs):
        return self._values.predict_on_batch(inputs)


def _array(x):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))


def _map(title, rows, columns, weights):
    """A map of an array that may be padded."""
    weights = weights[: len(rows), : len(columns)].tolist()
    return {"title": title, "rows": rows, "columns": columns, "weights": weights}
