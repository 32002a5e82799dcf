"""Rankings that may have no right response: the logit from which a first one counts as good.

It is chosen on dev by `metrics.thresholds`: nearly all right responses that are first reach it.
Every second context decides; the others show how many right ones are kept, and how many rankings
are doubted when their right response is left out.
"""

import numpy as np

from colloquy.metrics.thresholds import threshold_of
from colloquy.tasks.selection.scoring import best_scores


def measure_doubt(split, scores):
    """Chooses the threshold of a split, and measures it.

    Args:
        split: A `SelectionSplit`.
        scores: The logits of its lines.

    Returns:
        The fields of an `engine.records.Doubt`; `None` if the split is too small.
    """
    best_right = best_scores(split, scores, split.label == 1)
    best_wrong = best_scores(split, scores, split.label == 0)
    is_ranked = np.isfinite(best_right) & np.isfinite(best_wrong)
    is_right_first = is_ranked & (best_right > best_wrong)
    decides = np.arange(len(best_right)) % 2 == 0
    fitted = best_right[is_right_first & decides]
    measured = best_right[is_right_first & ~decides]
    if not len(fitted) or not len(measured):
        return None

    threshold = threshold_of(fitted)
    doubted = best_wrong[is_ranked & ~decides] < threshold
    return {
        "threshold": threshold,
        "right_kept": float(np.mean(measured >= threshold)),
        "without_right_doubted": float(np.mean(doubted)),
    }


def load_threshold(run):
    """The threshold of a run whose dev was evaluated; of another run, minus infinity."""
    record = run.metrics().get("dev", {}).get("doubt")
    return record["threshold"] if record else -np.inf
