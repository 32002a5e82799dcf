"""The candidates that a dialog model gives, over a whole split."""

import numpy as np

from data.batching import batches_by_size
from engine.parallel import results_of


def predict(model, split, config, batch_size=32, progress=iter, length_multiple=4):
    """The candidate that a model gives at each turn, the best over the whole list.

    Args:
        model: Takes what `config.reads` names, returns logits `(B, T, C)`.
        split: A `tasks.dialog.data.DialogSplit`.
        config: The model's.
        batch_size: Dialogs at once.
        progress: Wraps the list of batches.
        length_multiple: Lengths are rounded up to it.

    Returns:
        Int `(responses,)`, dialog by dialog as in `split.answers`.
    """
    first = np.searchsorted(split.dialog, np.arange(len(split)))
    predicted = np.zeros(len(split.answers), np.int32)

    def arrays_of(rows):
        return split.collate(rows, config.reads, config.entities, length_multiple)

    def best_of(arrays):
        inputs, answers = arrays
        return answers, np.argmax(np.asarray(model.predict_on_batch(inputs)), axis=2)

    batches = batches_by_size(split.sizes, batch_size)
    for rows, (answers, best) in results_of(best_of, arrays_of, batches, model, progress):
        for row, real, chosen in zip(rows, answers >= 0, best, strict=True):
            predicted[first[row] : first[row] + real.sum()] = chosen[real]
    return predicted
