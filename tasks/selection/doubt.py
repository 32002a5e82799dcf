"""The threshold of a selection model. A ranking whose best logit is lower is doubted: probably none
of its candidates continues the conversation.

The threshold is fitted to every second context of a split: nearly all correct responses that are
ranked first there reach it, see `metrics.thresholds`. It is measured on the other contexts: how
many of these responses reach it, and how many rankings are doubted without their correct response.
Each evaluated split records its own threshold; a predictor uses that of dev.
"""

import numpy as np

from colloquy.metrics.thresholds import threshold_of
from colloquy.tasks.selection.scoring import best_scores


def measure_doubt(split, scores):
    """Fits the threshold to one half of a split, and measures it on the other.

    Args:
        split: A `SelectionSplit`.
        scores: The logits of its lines.

    Returns:
        The fields of an `engine.records.Doubt`; `None` if one half has no correct response that is
        ranked first.
    """
    best_right = best_scores(split, scores, label=1)
    best_wrong = best_scores(split, scores, label=0)
    is_ranked = np.isfinite(best_right) & np.isfinite(best_wrong)
    is_right_first = is_ranked & (best_right > best_wrong)
    is_fitted = np.arange(len(best_right)) % 2 == 0  # every second context
    fitted = best_right[is_right_first & is_fitted]
    measured = best_right[is_right_first & ~is_fitted]
    if not len(fitted) or not len(measured):
        return None

    threshold = threshold_of(fitted)
    doubted = best_wrong[is_ranked & ~is_fitted] < threshold
    return {
        "threshold": threshold,
        "right_kept": float(np.mean(measured >= threshold)),
        "without_right_doubted": float(np.mean(doubted)),
    }


def load_threshold(run):
    """The threshold of dev; minus infinity, below which no ranking is, if dev has none."""
    record = run.metrics().get("dev", {}).get("doubt")
    return record["threshold"] if record else -np.inf
