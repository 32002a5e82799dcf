"""Losses of dialog models, predictions over a split, baselines, and scores of groups of responses.

Letters: B dialogs   T turns   C candidates
"""

import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import results_of
from colloquy.engine.scoring import Group
from colloquy.engine.task import ScoringOptions
from colloquy.layers.dialog_state import INPUTS
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.dialog import ADDED
from colloquy.tasks.dialog.domain import CALL

BREAKDOWNS = ("kind", "turns")
"""Groupings of responses: by the purpose of the correct one; by the number of turns so far, this
one among them."""
# first turn of a group -> its label
TURNS = {1: "1-2", 3: "3-4", 5: "5-6", 7: "7-8", 9: "9-10", 11: "11-15", 16: "16-20", 21: "21+"}


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
        allowed_BTC = mask.predict_on_batch({name: inputs[name] for name in INPUTS})
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
    dialogs = len(split)
    is_correct = predicted == split.answers
    responses = np.bincount(split.dialog, minlength=dialogs)
    correct = np.bincount(split.dialog, weights=is_correct, minlength=dialogs)
    has_responses = responses > 0
    responses_terms = [correct, responses]
    dialog_terms = [has_responses & (correct == responses), has_responses]
    metrics = {
        "per_response": Additive(np.stack(responses_terms, axis=1).astype(np.float64)),
        "per_dialog": Additive(np.stack(dialog_terms, axis=1).astype(np.float64)),
    }
    arguments = (predicted, split.answers, split.dialog)
    arguments_of_responses = zip(*[x[:, None] for x in arguments], strict=True)
    for name, of_responses in means_of(ADDED, arguments, arguments_of_responses).items():
        terms = np.zeros((dialogs, 2))
        np.add.at(terms, split.dialog, of_responses.terms)
        metrics[name] = Additive(terms)
    return metrics


# === Groups of responses ===


def metrics_by_group(domain, split, predicted, breakdowns):
    """Scores groups of responses, see `engine.task.Task.metrics_by_group`.

    `per_response` is the fraction of correct responses; `template` and `entities` are the fractions
    with the correct template, or the correct entities.

    Args:
        domain: A `tasks.dialog.domain.Domain`.
        split: A `DialogSplit`.
        predicted: The chosen candidates, int `(responses,)`.
        breakdowns: Some of `BREAKDOWNS`.
    """
    answers = split.answers
    templates_C = np.array(domain.tables.candidate_templates)
    entities = domain.encoded_candidates.entities.lists()
    entities_C = np.array([str(sorted(numbers)) for numbers in entities])
    is_correct = {
        "per_response": predicted == answers,
        "template": templates_C[predicted] == templates_C[answers],
        "entities": entities_C[predicted] == entities_C[answers],
    }

    groups = {
        "kind": _group_by_kind(domain, templates_C, answers),
        "turns": _group_by_turns(split.dialog),
    }
    rows_by_breakdown = {}
    for breakdown in breakdowns:
        rows = []
        for label, is_member in groups[breakdown].items():
            if is_member.any():
                metrics = {
                    name: float(right[is_member].mean()) for name, right in is_correct.items()
                }
                rows.append(Group(label, int(is_member.sum()), metrics))
        rows_by_breakdown[breakdown] = rows
    return rows_by_breakdown


def _group_by_kind(domain, templates_C, answers):
    is_call = np.char.startswith(templates_C[answers], CALL)
    # A template equals its text where there is no entity to replace by its type.
    names_entity = templates_C[answers] != np.array(domain.candidates)[answers]
    return {
        "asks the knowledge base": is_call,
        "names an entity": names_entity & ~is_call,
        "other": ~(names_entity | is_call),
    }


def _group_by_turns(dialog):
    """Groups responses by their number in the dialog, from 1."""
    # `dialog` ascends, so the first place of each dialog is where it would be inserted.
    first_place = np.searchsorted(dialog, dialog)
    turn = np.arange(len(dialog)) - first_place + 1
    group = np.digitize(turn, bins=list(TURNS))
    groups = {}
    for number, label in enumerate(TURNS.values(), start=1):
        groups[label] = group == number
    return groups
