"""Attention maps as clients get them."""

import numpy as np

MAX_CELLS = 100  # rows, and columns, of an attention map that a client gets


def cut_maps(answer):
    """Cuts the attention maps of an answer to what a page can show; `"cut": true` says so."""
    maps = []
    for whole in answer["attention"]:
        weights = np.asarray(whole["weights"])
        shown = {**whole}
        if weights.size and max(weights.shape) > MAX_CELLS:
            peak_row, peak_column = np.unravel_index(weights.argmax(), weights.shape)
            rows = _around(peak_row, weights.shape[0])
            columns = _around(peak_column, weights.shape[1])
            weights = weights[rows, columns]
            shown["rows"] = whole["rows"][rows]
            shown["columns"] = whole["columns"][columns]
            shown["cut"] = True
        shown["weights"] = weights.round(5).tolist()
        maps.append(shown)
    return {**answer, "attention": maps}


def _around(peak, size):
    """The slice of `MAX_CELLS` of `size` cells that has `peak` in its middle, or near it."""
    first = min(peak - MAX_CELLS // 2, size - MAX_CELLS)
    first = max(first, 0)
    return slice(first, first + MAX_CELLS)
