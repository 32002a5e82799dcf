"""Losses of dialog models, their predictions, and metrics of each dialog.

Letters: B dialogs   T turns   C candidates
"""

import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.engine.task import ScoringOptions
from colloquy.layers.dialog_state import INPUTS as STATE_INPUTS
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.dialog import ADDED


class Options(ScoringOptions):
    """Settings of `evaluate.py --set` for dialogs."""

    action_mask: bool = False
    """Choose only responses that the run's action mask allows."""


# === Losses ===


def softmax_loss(answers_BT, logits_BTC):
    """Cross-entropy over the candidates.

    Args:
        answers_BT: Int `(B, T)`, -1 for padding.
        logits_BTC: Float `(B, T, C)`.

    Returns:
        Loss of each dialog, float32 `(B,)`, scaled so that the mean over dialogs is the mean over
        all real turns.

    >>> loss = softmax_loss(np.array([[1, -1]]), np.log([[[1.0, 3.0], [9.0, 9.0]]]))
    >>> round(float(ops.exp(-loss[0])), 3)
    0.75
    """
    logits_BTC = _restore_candidates(logits_BTC, answers_BT)
    losses_BT = ops.sparse_categorical_crossentropy(
        _labels(answers_BT), logits_BTC, from_logits=True
    )
    return _sum_over_turns(losses_BT, answers_BT)


def margin_loss(answers_BT, logits_BTC, margin):
    """Sums `max(0, margin - f(correct) + f(y))` over all negative candidates `y`; `f` is the logit.

    Args:
        answers_BT, logits_BTC: As for `softmax_loss`.
        margin: The loss is 0 if the correct logit exceeds every other by at least this.

    Returns:
        As `softmax_loss`.
    """
    logits_BTC = _restore_candidates(logits_BTC, answers_BT)
    labels_BT = _labels(answers_BT)
    correct_BT1 = ops.take_along_axis(logits_BTC, labels_BT[:, :, None], axis=2)
    hinge_BTC = ops.relu(margin - correct_BT1 + logits_BTC)
    # The sum includes the correct candidate, whose term is `margin`.
    losses_BT = ops.sum(hinge_BTC, axis=2) - margin
    return _sum_over_turns(losses_BT, answers_BT)


def _restore_candidates(logits, answers_BT):
    """Restores the axis of candidates, which Keras drops if there is only one; casts to float32."""
    return ops.cast(ops.reshape(logits, (*ops.shape(answers_BT), -1)), "float32")


def _labels(answers_BT):
    """Replaces padding, -1, by candidate 0; `_sum_over_turns` ignores its loss."""
    return ops.maximum(ops.cast(answers_BT, "int32"), 0)


def _sum_over_turns(losses_BT, answers_BT):
    """Sums the losses of each dialog's real turns, `(B,)`, scaled as in `softmax_loss`."""
    weights_BT = ops.cast(answers_BT >= 0, "float32")
    num_dialogs = ops.cast(ops.shape(weights_BT)[0], "float32")
    num_turns = ops.maximum(ops.sum(weights_BT), 1.0)
    loss_B = ops.sum(losses_BT * weights_BT, axis=1)
    # Keras takes the mean over dialogs. With this factor it is the mean over real turns.
    return loss_B * num_dialogs / num_turns


# === Predictions ===


def predict(model, split, batch_size=32, progress=iter, length_multiple=4, mask=None):
    """Predicts the candidate with the largest logit at each turn.

    Args:
        model: A dialog model.
        split: A `DialogSplit`.
        batch_size: Dialogs per batch.
        progress: Wraps the list of batches, to show progress.
        length_multiple: Sizes of a batch are rounded up to a multiple of it.
        mask: An `ActionMask`, or `None`. Where it allows no candidate, the prediction is -1.

    Returns:
        The predicted candidate of each response, int `(responses,)`, in the order of
        `split.answers`.
    """
    input_names = model.config.reads

    def make_arrays(dialogs):
        names = set(input_names)
        if mask is not None:
            names.update(STATE_INPUTS)
        return split.collate(dialogs, names, model.config.entities, length_multiple)

    def predict_batch(arrays):
        inputs, answers_BT = arrays
        is_real_BT = answers_BT >= 0
        model_inputs = {name: inputs[name] for name in input_names}
        logits_BTC = np.asarray(model.predict_on_batch(model_inputs))
        if mask is None:
            return is_real_BT, np.argmax(logits_BTC, axis=2)
        mask_inputs = {name: inputs[name] for name in STATE_INPUTS}
        allowed_BTC, _ = mask.predict_on_batch(mask_inputs)
        best_BT = np.argmax(np.where(allowed_BTC, logits_BTC, -np.inf), axis=2)
        has_allowed_BT = allowed_BTC.any(axis=2)
        return is_real_BT, np.where(has_allowed_BT, best_BT, -1)

    predicted = np.zeros_like(split.answers)
    batches = batches_by_size(split.sizes, batch_size)
    compile_for_all_sizes(model)
    results = results_of(predict_batch, make_arrays, batches, progress)
    for dialogs, (is_real_BT, best_BT) in results:
        for dialog, is_real_T, best_T in zip(dialogs, is_real_BT, best_BT, strict=True):
            predicted[split.dialog == dialog] = best_T[is_real_T]
    return predicted


def metrics_by_dialog(split, predicted):
    """Returns `{metric: Additive}`, whose examples are dialogs, for intervals of `dialog_metrics`.

    A metric of `metrics.dialog.ADDED` that is not a mean over responses is left out.
    """
    num_responses = split.sizes[:, 1]
    num_correct = np.bincount(split.dialog, weights=predicted == split.answers)
    metrics = {
        "per_response": Additive(np.stack([num_correct, num_responses], axis=1)),
        "per_dialog": Additive.mean(num_correct == num_responses),
    }

    # The metrics of `ADDED` are computed for each response alone, as arrays of length 1. Then the
    # terms of each dialog's responses are added up.
    arguments = (predicted, split.answers, split.dialog)
    columns = [values[:, None] for values in arguments]  # each `(responses, 1)`
    own_metrics = means_of(ADDED, arguments, zip(*columns, strict=True))
    for name, metric in own_metrics.items():
        terms_of_dialogs = np.zeros((len(split), 2))
        np.add.at(terms_of_dialogs, split.dialog, metric.terms)
        metrics[name] = Additive(terms_of_dialogs)
    return metrics
