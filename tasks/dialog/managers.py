"""Dialog managers of task 6, and splits of train and dev by them.

Task 6 was recorded with three managers (Henderson, Thomson and Williams 2014): train and dev have
two, the smaller one in dev almost alone, and test has a third.

Shape suffixes:  D dialogs   K templates   L managers, 2
"""

import collections

import numpy as np

MANAGERS = ("smaller", "larger")
COMMON = 20  # dialogs that contain a template, at least
STARTS = 10  # of the expectation maximisation
STEPS = 100  # of each of them
HELD_OUT = 150  # training dialogs of the larger manager that dev gets


def split_by_manager(splits, templates, wanted):
    """Splits train and dev by their dialog managers.

    Dev has hardly any dialogs of the larger manager, so it gets `HELD_OUT` of train, or half of
    them if there are fewer.

    Args:
        splits: `{split: dialogs}`.
        templates: The template of each candidate.
        wanted: One of `MANAGERS`, or `both`.

    Returns:
        `{split: dialogs}` with train and dev of the wanted managers; each of their dialogs gets its
        `manager`.
    """
    dialogs = splits["train"] + splits["dev"]
    templates_of_dialogs = []
    for dialog in dialogs:
        templates_of_dialogs.append({templates[answer] for answer in dialog["answers"]})
    managers_D = find_managers(templates_of_dialogs)

    in_dev_D = np.arange(len(dialogs)) >= len(splits["train"])
    is_larger_D = managers_D == MANAGERS.index("larger")
    movable = np.flatnonzero(is_larger_D & ~in_dev_D)
    count = min(HELD_OUT, len(movable) // 2)
    moved = np.random.default_rng(1).choice(movable, count, replace=False)
    in_dev_D[moved] = True

    train = []
    dev = []
    for dialog, number, in_dev in zip(dialogs, managers_D, in_dev_D, strict=True):
        manager = MANAGERS[number]
        if wanted in ("both", manager):
            part = dev if in_dev else train
            part.append({**dialog, "manager": manager})
    return {**splits, "train": train, "dev": dev}


def find_managers(templates):
    """Separates dialogs by a mixture of two products of Bernoulli distributions over templates.

    Args:
        templates: For each dialog, the set of its responses with types in place of entities.

    Returns:
        The index into `MANAGERS` of each dialog, int `(D,)`; the second has more dialogs.
    """
    counts = collections.Counter()
    for templates_of_dialog in templates:
        counts.update(templates_of_dialog)
    common = sorted(template for template, count in counts.items() if count >= COMMON)
    X_DK = np.zeros((len(templates), len(common)))
    for d, templates_of_dialog in enumerate(templates):
        X_DK[d] = [template in templates_of_dialog for template in common]

    rng = np.random.default_rng(1)
    best_likelihood = -np.inf
    for _ in range(STARTS):
        start_DL = rng.dirichlet((1, 1), len(X_DK))
        likelihood, P_DL = _maximise(X_DK, start_DL)
        if likelihood > best_likelihood:
            best_likelihood = likelihood
            best_DL = P_DL
    by_size = np.argsort(best_DL.sum(axis=0))
    rank_L = np.argsort(by_size)
    return rank_L[best_DL.argmax(axis=1)]


def _maximise(X_DK, P_DL):
    """Maximises the expectation in `STEPS` steps.

    Returns:
        The log-likelihood.
        The posterior, `(D, L)`.
    """
    for _ in range(STEPS):
        size_L = P_DL.sum(axis=0)
        p_LK = (P_DL.T @ X_DK + 1) / (size_L[:, None] + 2)
        prior_L = np.log(size_L / len(X_DK))
        present_DL = X_DK @ np.log(p_LK).T
        absent_DL = (1 - X_DK) @ np.log(1 - p_LK).T
        joint_DL = present_DL + absent_DL + prior_L
        total_D = np.logaddexp(*joint_DL.T)
        P_DL = np.exp(joint_DL - total_D[:, None])
    return total_D.sum(), P_DL
