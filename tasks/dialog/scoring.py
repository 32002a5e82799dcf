"""Losses of dialog models, predictions over a split, and the metrics of its dialogs.

Letters: B dialogs   T turns   C candidates
"""

import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import results_of
from colloquy.engine.task import ScoringOptions
from colloquy.layers.dialog_state import INPUTS
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.dialog import ADDED


class Options(ScoringOptions):
    """Settings of scoring."""

    action_mask: bool = False
    """Choose only responses that the run's action mask allows."""


# === Losses ===


def softmax_loss(answers_BT, logits_BTC):
    """Cross-entropy over the candidates.

    Args:
        answers_BT: Int `(B, T)`, -1 for padding.
        logits_BTC: Float `(B, T, C)`.

    Returns:
        The losses of dialogs, float32 `(B,)`; their mean is the mean over all real turns.

    >>> loss = softmax_loss(np.array([[1, -1]]), np.log([[[1.0, 3.0], [9.0, 9.0]]]))
    >>> round(float(ops.exp(-loss[0])), 3)
    0.75
    """
    logits_BTC = ops.cast(_restore_candidates(logits_BTC, answers_BT), "float32")
    losses_BT = ops.sparse_categorical_crossentropy(
        _labels(answers_BT), logits_BTC, from_logits=True
    )
    return _mean_over_turns(losses_BT, answers_BT)


def margin_loss(answers_BT, logits_BTC, margin):
    """`sum_y max(0, margin - f(x, correct) + f(x, y))` over all negative `y`.

    Arguments and result are those of `softmax_loss`.
    """
    logits_BTC = _restore_candidates(logits_BTC, answers_BT)
    correct_BT1 = ops.take_along_axis(logits_BTC, _labels(answers_BT)[:, :, None], axis=2)
    # The sum is over all candidates: the correct one adds the margin.
    losses_BT = ops.sum(ops.relu(margin - correct_BT1 + logits_BTC), axis=2) - margin
    return _mean_over_turns(losses_BT, answers_BT)


def _restore_candidates(logits, answers_BT):
    """Restores the axis of candidates, which Keras drops if there is only one."""
    return ops.reshape(logits, (*ops.shape(answers_BT), -1))


def _labels(answers_BT):
    return ops.maximum(ops.cast(answers_BT, "int32"), 0)


def _mean_over_turns(losses_BT, answers_BT):
    real_BT = ops.cast(answers_BT >= 0, "float32")
    num_dialogs = ops.cast(ops.shape(real_BT)[0], "float32")
    loss_B = ops.sum(losses_BT * real_BT, axis=1)
    return loss_B * num_dialogs / ops.maximum(ops.sum(real_BT), 1.0)


# === Predictions ===


def predict(model, split, batch_size=32, progress=iter, length_multiple=4, mask=None):
    """Predicts the candidate with the largest logit at each turn.

    Args:
        model: A dialog model.
        split: A `DialogSplit`.
        batch_size: Dialogs per batch.
        progress: Wraps the list of batches.
        length_multiple: Sizes of a batch are rounded up to it.
        mask: An `ActionMask`; where it allows no candidate, the prediction is -1.

    Returns:
        The candidates, int `(responses,)` as `split.answers`.
    """
    reads = model.config.reads

    def make_arrays(rows):
        return split.collate(rows, {*reads, *INPUTS}, model.config.entities, length_multiple)

    def predict_batch(arrays):
        inputs, answers_BT = arrays
        is_real_BT = answers_BT >= 0
        logits_BTC = model.predict_on_batch({name: inputs[name] for name in reads})
        logits_BTC = np.asarray(logits_BTC)
        if mask is None:
            return is_real_BT, np.argmax(logits_BTC, axis=2)
        allowed_BTC, _ = mask.predict_on_batch({name: inputs[name] for name in INPUTS})
        best_BT = np.argmax(np.where(allowed_BTC, logits_BTC, -np.inf), axis=2)
        return is_real_BT, np.where(allowed_BTC.any(axis=2), best_BT, -1)

    predicted = np.zeros_like(split.answers)
    batches = batches_by_size(split.sizes, batch_size)
    results = results_of(predict_batch, make_arrays, batches, model, progress)
    for rows, (is_real_BT, best_BT) in results:
        for row, is_real_T, best_T in zip(rows, is_real_BT, best_BT, strict=True):
            predicted[split.dialog == row] = best_T[is_real_T]
    return predicted


def metrics_by_dialog(split, predicted):
    """`{metric: Additive}` over the dialogs of a split, as `dialog_metrics` averages them."""
    responses = split.sizes[:, 1]
    correct = np.bincount(split.dialog, weights=predicted == split.answers)
    metrics = {
        "per_response": Additive(np.stack([correct, responses], axis=1)),
        "per_dialog": Additive.mean(correct == responses),
    }
    arguments = (predicted, split.answers, split.dialog)
    arguments_of_responses = zip(*[x[:, None] for x in arguments], strict=True)
    for name, of_responses in means_of(ADDED, arguments, arguments_of_responses).items():
        terms = np.zeros((len(split), 2))
        np.add.at(terms, split.dialog, of_responses.terms)
        metrics[name] = Additive(terms)
    return metrics
