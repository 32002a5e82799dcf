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
CELLS = 1 << 25
"""Most numbers of drawn examples in memory at a time."""


def ratio(sums: np.ndarray) -> np.ndarray:
    """The mean of ratios of sums, `(..., S)`: of `[a, b, c, d]` the mean of `a / b` and `c / d`.

    >>> float(ratio(np.array([1.0, 2.0, 3.0, 4.0])))
    0.625
    """
    numerators = sums[..., 0::2]
    denominators = sums[..., 1::2]
    return np.mean(numerators / denominators, axis=-1)


@dataclasses.dataclass(frozen=True)
class Additive:
    """A metric that is a function of sums over examples."""

    terms: np.ndarray
    """What each example adds to the sums, float `(E, S)`."""
    of_sums: Callable = ratio
    """Computes the metric from sums, `(..., S)`."""

    @classmethod
    def mean(cls, values: Any) -> Self:
        """The mean of a value per example."""
        values = np.asarray(values, np.float64)
        return cls(np.stack([values, np.ones(len(values))], axis=1))


def means_of(
    own_metrics: Mapping[str, Callable],
    arguments: Sequence,
    arguments_of_examples: Iterable[Sequence],
) -> dict[str, Additive]:
    """A user's own metrics as means over examples, for an interval.

    Args:
        own_metrics: `{name: function}`.
        arguments: The arguments of these functions for all examples.
        arguments_of_examples: For each example, the arguments for this example alone.

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
        is_mean = abs(np.mean(values) - metric(*arguments)) <= MEAN_TOLERANCE
        if is_mean:
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
    compared = {}
    for name, values in _values_by_name(models, names).items():
        one = np.mean(values[: len(ones)], axis=0)
        other = np.mean(values[len(ones) :], axis=0)
        difference = one - other
        # Place 0 is of all examples; the draws follow.
        low, high = np.nanpercentile(difference[1:], [2.5, 97.5])
        compared[name] = {
            "one": float(one[0]),
            "other": float(other[0]),
            "difference": float(difference[0]),
            "low": float(low),
            "high": float(high),
        }
    return compared


def _values_by_name(models, names):
    """Returns `{name: values of each model}`, float `(models, 1 + N)`.

    The first value of a model is that of all examples, each once; the others are those of draws.
    """
    # All metrics are computed from the same draws, so their terms are columns of one matrix.
    terms = []
    for name in names:
        terms += [model[name].terms for model in models]
    terms_ES = np.concatenate(terms, axis=1)
    sums = _sums(terms_ES)

    # The sums of a metric are its columns again.
    values_by_name = {name: [] for name in names}
    start = 0
    for name in names:
        for model in models:
            metric = model[name]
            stop = start + metric.terms.shape[1]
            values_by_name[name].append(metric.of_sums(sums[:, start:stop]))
            start = stop
    return values_by_name


def _sums(terms_ES):
    """The sums over all examples, each once, and over each draw of examples, `(1 + N, S)`."""
    E = len(terms_ES)
    generator = np.random.default_rng(SEED)
    sums = [terms_ES.sum(axis=0)[None]]
    draws_at_once = max(1, CELLS // E)
    for start in range(0, DRAWS, draws_at_once):
        size = min(draws_at_once, DRAWS - start)
        # How often each example is drawn.
        counts_NE = np.empty((size, E))
        for row in range(size):
            drawn = generator.integers(E, size=E)
            counts_NE[row] = np.bincount(drawn, minlength=E)
        sums.append(counts_NE @ terms_ES)
    return np.concatenate(sums)
