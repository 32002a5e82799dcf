"""Predictions of dialog models, and metrics of each dialog.

Letters: B dialogs   T turns   C candidates
"""

import numpy as np

from colloquy.base.config import Config
from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.layers.dialog_state import INPUTS as STATE_INPUTS
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.dialog import ADDED

BATCH_SIZE = 32


class Options(Config):
    """Settings of `evaluate.py --set` for dialogs."""

    action_mask: bool = False
    """Choose only responses that the run's action mask allows."""


def predict(model, split, progress=iter, length_multiple=4, mask=None):
    """Predicts the candidate with the largest logit at each turn.

    Args:
        model: A dialog model.
        split: A `DialogSplit`.
        progress: Wraps the list of batches, to show progress.
        length_multiple: Sizes of a batch are rounded up to a multiple of it.
        mask: An `ActionMask`, or `None`. Where it allows no candidate, the prediction is -1.

    Returns:
        The predicted candidate of each response, int `(responses,)`, in the order of
        `split.answers`.
    """
    names = set(model.config.reads)
    if mask is not None:
        names.update(STATE_INPUTS)

    def make_arrays(dialogs):
        return split.collate(dialogs, names, model.config.entities, length_multiple)

    def predict_batch(arrays):
        inputs, answers_BT = arrays
        read = {name: inputs[name] for name in model.config.reads}
        logits_BTC = np.asarray(model.predict_on_batch(read))
        if mask is None:
            best_BT = np.argmax(logits_BTC, axis=2)
        else:
            best_BT = _best_allowed(logits_BTC, mask, inputs)
        is_real_BT = answers_BT >= 0
        return is_real_BT, best_BT

    predicted = np.zeros_like(split.answers)
    batches = batches_by_size(split.sizes, BATCH_SIZE)
    compile_for_all_sizes(model)
    results = results_of(predict_batch, make_arrays, batches, progress)
    for dialogs, (is_real_BT, best_BT) in results:
        for dialog, is_real_T, best_T in zip(dialogs, is_real_BT, best_BT, strict=True):
            # The responses of a dialog are in the order of its turns.
            is_of_dialog = split.dialog == dialog
            predicted[is_of_dialog] = best_T[is_real_T]
    return predicted


def _best_allowed(logits_BTC, mask, inputs):
    """The candidate with the largest logit of those that an `ActionMask` allows; -1: none."""
    allowed_BTC, _wished = mask.predict_on_batch(inputs)
    allowed_logits_BTC = np.where(allowed_BTC, logits_BTC, -np.inf)
    best_BT = np.argmax(allowed_logits_BTC, axis=2)
    has_allowed_BT = allowed_BTC.any(axis=2)
    return np.where(has_allowed_BT, best_BT, -1)


def metrics_by_dialog(split, predicted):
    """Returns the metrics of `dialog_metrics` as `{metric: Additive}`, for their intervals.

    Their examples are dialogs, since the responses of one dialog depend on each other. A metric of
    `metrics.dialog.ADDED` that is not a mean over responses is left out.
    """
    num_responses = split.sizes[:, 1]
    num_correct = np.bincount(split.dialog, weights=predicted == split.answers)
    metrics = {
        "per_response": Additive(np.stack([num_correct, num_responses], axis=1)),
        "per_dialog": Additive.mean(num_correct == num_responses),
    }

    arguments = (predicted, split.answers, split.dialog)
    added = means_of(ADDED, arguments, _each_response(arguments))
    for name, metric in added.items():
        # A response has two terms, its value and 1. Those of a dialog are sums over its responses.
        sums = [np.bincount(split.dialog, term) for term in metric.terms.T]
        metrics[name] = Additive(np.stack(sums, axis=1))
    return metrics


def _each_response(arguments):
    """Yields the arguments of a metric of `ADDED` for each response alone: arrays of length 1."""
    num_responses = len(arguments[0])
    for number in range(num_responses):
        yield [values[number : number + 1] for values in arguments]
