"""Paired differences of metrics, with an interval by a bootstrap over examples.

The examples of a split are drawn with replacement, the same ones for both models, and each draw
gives a difference (Koehn 2004, for BLEU).

Letters:  E examples   S sums   N draws
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

DRAWS = 10_000
SEED = 1
MEAN_TOLERANCE = 1e-6
NUMBERS_AT_ONCE = 1 << 25
"""Draws are made in blocks: a block counts the drawn examples in at most this many numbers."""


def ratio(sums: np.ndarray) -> np.ndarray:
    """The ratio of two sums, or the mean of several ratios.

    `sums`, `(..., S)`, has numerators and denominators in turn: of `[a, b, c, d]` the result is the
    mean of `a / b` and `c / d`.

    >>> float(ratio(np.array([1.0, 2.0, 3.0, 4.0])))
    0.625
    """
    return np.mean(sums[..., 0::2] / sums[..., 1::2], axis=-1)


@dataclasses.dataclass(frozen=True)
class Additive:
    """A metric that is a function of sums over examples."""

    terms: np.ndarray
    """What each example adds to the sums, float `(E, S)`."""
    of_sums: Callable = ratio
    """Computes the metric from sums, `(..., S)`."""

    @classmethod
    def mean(cls, values: Any) -> Self:
        """The mean of a value per example: the sum of the values divided by the sum of ones."""
        values = np.asarray(values, np.float64)
        return cls(np.stack([values, np.ones(len(values))], axis=1))


def means_of(
    own_metrics: Mapping[str, Callable],
    arguments: Sequence,
    arguments_of_examples: Iterable[Sequence],
) -> dict[str, Additive]:
    """A user's own metrics as means over examples, for an interval.

    Args:
        own_metrics: `{name: function}`. All functions take the same arguments.
        arguments: Their arguments for all examples together.
        arguments_of_examples: Their arguments for each example alone.

    Returns:
        `{name: Additive}`. A metric whose value for all examples is not the mean of its values for
        each of them is left out, and a line says so.

    >>> own = {"length": lambda replies: np.mean([len(reply) for reply in replies])}
    >>> list(means_of(own, [["i see .", "yes ."]], [[["i see ."]], [["yes ."]]]))
    ['length']
    """
    if not own_metrics:
        return {}
    means = {}
    arguments_of_examples = list(arguments_of_examples)
    for name, metric in own_metrics.items():
        values = [float(metric(*example)) for example in arguments_of_examples]
        if abs(np.mean(values) - metric(*arguments)) <= MEAN_TOLERANCE:
            means[name] = Additive.mean(values)
        else:
            print(f"note: {name} is no mean over examples, so it has no interval")
    return means


def differences(ones: list, others: list) -> dict[str, dict[str, float]]:
    """Compares models on the same examples.

    Args:
        ones: For each seed of a model, `{metric: Additive}`. Metrics are averaged over seeds.
        others: The same of another model.

    Returns:
        `{metric: {"one", "other", "difference", "low", "high"}}`, `low` and `high` the ends of the
        95 per cent interval of the difference.

    >>> one, other = {"EM": Additive.mean([1, 1, 1])}, {"EM": Additive.mean([0, 0, 0])}
    >>> differences([one], [other])["EM"]["low"]
    1.0
    """
    models = [*ones, *others]
    names = [name for name in ones[0] if all(name in model for model in models)]
    # All metrics of all models have the same draws, so their sums are computed together, and are
    # then taken in the same order.
    terms = [model[name].terms for name in names for model in models]
    stops = np.cumsum([terms_ES.shape[1] for terms_ES in terms])
    sums = iter(np.split(_sums(np.concatenate(terms, axis=1)), stops[:-1], axis=1))

    compared = {}
    for name in names:
        # A row for each model: the value of all examples, then that of each draw.
        values = [model[name].of_sums(next(sums)) for model in models]
        one = np.mean(values[: len(ones)], axis=0)
        other = np.mean(values[len(ones) :], axis=0)
        difference = one - other
        low, high = np.nanpercentile(difference[1:], [2.5, 97.5])
        compared[name] = {
            "one": float(one[0]),
            "other": float(other[0]),
            "difference": float(difference[0]),
            "low": float(low),
            "high": float(high),
        }
    return compared


def _sums(terms_ES):
    """The sums over all examples, each once, and over each draw of examples, `(1 + N, S)`."""
    E = len(terms_ES)
    generator = np.random.default_rng(SEED)
    sums = [terms_ES.sum(axis=0)[None]]
    draws_at_once = max(1, NUMBERS_AT_ONCE // E)
    for start in range(0, DRAWS, draws_at_once):
        size = min(draws_at_once, DRAWS - start)
        # How often each example is drawn. Of three examples the draw [0, 2, 2] -> [1, 0, 2].
        counts_NE = np.empty((size, E))
        for row in range(size):
            drawn = generator.integers(E, size=E)
            counts_NE[row] = np.bincount(drawn, minlength=E)
        sums.append(counts_NE @ terms_ES)
    return np.concatenate(sums)
