"""Losses and scores of response selection.

Letters: B batch   N candidates of a context
"""

from typing import Literal

import numpy as np
from keras import ops

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.metrics.ranking import TIES, ranking_metrics
from colloquy.tasks.selection.ranking_batches import ranking_batches
from colloquy.tasks.selection.split import inputs_of


class Options(Config):
    """Settings of scoring."""

    ties: Literal[tuple(TIES)] = "loss"
    """Treatment of equal scores, see `metrics.ranking.ranking_metrics`."""
    partial_batches: Literal["keep", "drop"] = "keep"
    """drop: the last lines are left out if they fill no batch, as DAM's release does. 49,996 of
    Ubuntu's 50,000 contexts and 665 of Douban's 667 remain at a batch size of 256."""


def pointwise_loss(labels, logits, clip=0.0):
    """The paper's loss: `-log p(y | c, r)`, averaged over the candidates of a context.

    Args:
        labels: Float `(B, N)`, 1 for a positive, 0 for a negative.
        logits: Float `(B, N)`.
        clip: The loss of a candidate is cut at this, and has no gradient beyond; 0: not at all.

    Returns:
        Float32 `(B,)`.

    >>> float(pointwise_loss(np.array([[1.0, 0.0]]), np.array([[0.0, 20.0]]), clip=10.0)[0])
    5.346573590279973
    """
    loss_BN = ops.binary_crossentropy(labels, logits, from_logits=True)
    if clip:
        loss_BN = ops.minimum(loss_BN, clip)
    return ops.mean(loss_BN, axis=-1)


def softmax_loss(labels, logits):
    """Cross-entropy over the candidates of a context, float32 `(B,)`; see `pointwise_loss`."""
    return ops.categorical_crossentropy(labels, logits, from_logits=True)


def score(model, split, config, progress=iter, length_multiple=4):
    """The model's logit for every line of a `SelectionSplit`, float32 `(lines,)`, in file order."""

    def make_inputs(batch):
        contexts, lines = batch
        return inputs_of(split, config, contexts, lines, length_multiple)

    scores = np.zeros(len(split), np.float32)
    batches = ranking_batches(split, config)
    compile_for_all_sizes(model)
    results = results_of(model.predict_on_batch, make_inputs, batches, progress)
    for (_, lines_BN), logits_BN in results:
        is_candidate_BN = lines_BN >= 0
        scores[lines_BN[is_candidate_BN]] = np.asarray(logits_BN)[is_candidate_BN]
    return scores


def rank(where, scores, split, **options):
    """`metrics.ranking.ranking_metrics` of the first `len(scores)` lines of a split.

    Raises:
        UserError: The scores cannot be ranked; the message begins with `where`.
    """
    lines = slice(len(scores))
    try:
        return ranking_metrics(scores, split.label[lines], split.context_of_line[lines], **options)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


def best_scores(split, scores, label):
    """The highest score of the lines of each context with this label, float `(contexts,)`.

    A context without such a line has `-inf`.
    """
    best = np.full(split.num_contexts, -np.inf)
    has_label = split.label == label
    np.maximum.at(best, split.context_of_line[has_label], scores[has_label])
    return best
