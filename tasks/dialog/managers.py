"""Dialog managers of task 6, found by their responses, so that training and validation need not share one.

The corpus was recorded with three managers (Henderson, Thomson and Williams 2014): train and dev have two, the smaller
one in dev almost alone, and test has a third.

Shape suffixes:  D dialogs   K templates   L managers, 2
"""

import collections
import itertools

import numpy as np

MANAGERS = ("smaller", "larger")
COMMON = 20  # dialogs that contain a template, at least
STARTS, STEPS = 10, 100  # of the expectation maximisation
HELD_OUT = 150  # training dialogs of the larger manager that dev gets


def find_managers(templates):
    """Separates dialogs by a mixture of two products of Bernoulli distributions over the templates in a dialog.

    Each dialog is the set of its responses with types in place of entities. Returns the index into `MANAGERS` of each,
    int `(D,)`; the second has more dialogs.
    """
    counts = collections.Counter(itertools.chain.from_iterable(templates))
    common = sorted(template for template, count in counts.items() if count >= COMMON)
    X_DK = np.array([[template in each for template in common] for each in templates], float)
    rng = np.random.default_rng(1)
    starts = [_maximise(X_DK, rng.dirichlet((1, 1), len(X_DK))) for _ in range(STARTS)]
    _, P_DL = max(starts, key=lambda found: found[0])
    return np.argsort(np.argsort(P_DL.sum(axis=0)))[P_DL.argmax(axis=1)]


def _maximise(X_DK, P_DL):
    """The log-likelihood and the posterior `(D, L)` after `STEPS` steps of expectation maximisation."""
    for _ in range(STEPS):
        size_L = P_DL.sum(axis=0)
        p_LK = (P_DL.T @ X_DK + 1) / (size_L[:, None] + 2)
        joint_DL = X_DK @ np.log(p_LK).T + (1 - X_DK) @ np.log(1 - p_LK).T + np.log(size_L / len(X_DK))
        total_D = np.logaddexp(*joint_DL.T)
        P_DL = np.exp(joint_DL - total_D[:, None])
    return total_D.sum(), P_DL


def split_by_manager(splits, templates, wanted):
    """`{split: dialogs}` with train and dev of one manager or `both`; each of their dialogs gets its `manager`.

    Dev gets `HELD_OUT` training dialogs of the larger manager, or half of them if there are fewer. `templates` has the
    template of each candidate.
    """
    dialogs = splits["train"] + splits["dev"]
    managers = find_managers([{templates[answer] for answer in dialog["answers"]} for dialog in dialogs])
    in_dev = np.arange(len(dialogs)) >= len(splits["train"])
    larger = np.flatnonzero((managers == 1) & ~in_dev)
    in_dev[np.random.default_rng(1).choice(larger, min(HELD_OUT, len(larger) // 2), replace=False)] = True
    parts = {"train": [], "dev": []}
    for dialog, manager, held_out in zip(dialogs, managers, in_dev, strict=True):
        if wanted in ("both", MANAGERS[manager]):
            parts["dev" if held_out else "train"].append({**dialog, "manager": MANAGERS[manager]})
    return splits | parts
