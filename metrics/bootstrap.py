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
"""Numbers of examples drawn at a time."""


def ratio(sums: np.ndarray) -> np.ndarray:
    """The mean of `S / 2` ratios of sums, `(..., S)`: a numerator, its denominator, and so on.

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
        """The mean of a value per example."""
        values = np.asarray(values, np.float64)
        return cls(np.stack([values, np.ones(len(values))], axis=1))


def means_of(
    added: Mapping[str, Callable], of_all: Sequence, of_each: Iterable[Sequence]
) -> dict[str, Additive]:
    """Your own metrics as means over examples, for an interval.

    Args:
        added: `{name: function}`.
        of_all: The arguments of these functions for all examples together.
        of_each: Those for each example.

    Returns:
        `{name: Additive}`. A metric whose value for all examples is not the mean of its values for
        each of them is left out, and a line says so.

    >>> replies = ["i see .", "yes .", "i see ."]
    >>> own = {"length": lambda replies: np.mean([len(reply) for reply in replies])}
    >>> list(means_of(own, [replies], [[[reply]] for reply in replies]))
    ['length']
    """
    found = {}
    arguments_of_each = list(of_each) if added else []
    for name, metric in added.items():
        values = [float(metric(*arguments)) for arguments in arguments_of_each]
        is_mean = abs(np.mean(values) - metric(*of_all)) <= MEAN_TOLERANCE
        if is_mean:
            found[name] = Additive.mean(values)
        else:
            print(f"note: {name} is no mean over examples, so it has no interval")
    return found


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
    columns = np.concatenate([model[name].terms for name in names for model in models], axis=1)
    sums_NS = np.concatenate([columns.sum(axis=0)[None], _drawn_sums(columns)])

    compared = {}
    start = 0
    for name in names:
        values = []
        for model in models:
            end = start + model[name].terms.shape[1]
            values.append(model[name].of_sums(sums_NS[:, start:end]))
            start = end
        one_N = np.mean(values[: len(ones)], axis=0)
        other_N = np.mean(values[len(ones) :], axis=0)
        difference_N = one_N - other_N
        low, high = np.nanpercentile(difference_N[1:], [2.5, 97.5])
        compared[name] = {
            "one": float(one_N[0]),
            "other": float(other_N[0]),
            "difference": float(difference_N[0]),
            "low": float(low),
            "high": float(high),
        }
    return compared


def _drawn_sums(columns):
    """The sums of each draw of examples, `(N, S)`."""
    E = len(columns)
    generator = np.random.default_rng(SEED)
    sums = []
    block = max(1, CELLS // E)
    for start in range(0, DRAWS, block):
        size = min(block, DRAWS - start)
        counts_NE = np.empty((size, E))
        for row in range(size):
            drawn = generator.integers(E, size=E)
            counts_NE[row] = np.bincount(drawn, minlength=E)
        sums.append(counts_NE @ columns)
    return np.concatenate(sums)
