"""Training batches of response selection.

An example is a context and its candidates: a correct response, and wrong responses, its negatives.
The negatives are those of the file, or are drawn anew in each epoch (`negatives=fresh`).

Letters: E examples   B batch   N candidates of an example
"""

import math

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.batching import Batches, cut_by_size, random_pools

POOL = 256
"""Batches of a pool. With more of them there is less padding, but a less random order."""
MAX_REDRAWS = 8
"""Largest number of times that an unsuitable negative is drawn again."""


def training_batches(split, config, training, rng):
    """Cuts one epoch into batches of examples of similar size.

    A pool is some examples that are cut into batches together.

    Returns:
        A `data.batching.Batches`. A batch is a tuple of int arrays: contexts `(B,)`, then the lines
        and the labels of their candidates, both `(B, N)`.
    """
    positives = np.flatnonzero(split.label == 1)
    pools = []
    num_batches = []
    for lines_EN in candidate_lists(split, training):
        for examples, seed in random_pools(len(lines_EN), training.batch_size, rng, POOL):
            pools.append((lines_EN[examples], seed))
            num_batches.append(math.ceil(len(examples) / training.batch_size))

    def cut_pool(number):
        lines_EN, seed = pools[number]
        rng = np.random.default_rng(seed)
        labels_EN = split.label[lines_EN]
        if training.negatives == "fresh":
            count = training.negatives_per_positive
            negatives = draw_negatives(split, lines_EN[:, 0], positives, count, rng)
            lines_EN = np.hstack([lines_EN, negatives])
            # A negative has label 1 in its own context, and 0 in this one.
            labels_EN = np.hstack([labels_EN, np.zeros_like(negatives, np.int32)])

        contexts_E = split.context_of_line[lines_EN[:, 0]]
        sizes = split.sizes(contexts_E, lines_EN, config.max_turns, config.max_words)
        batches = []
        for examples in cut_by_size(sizes, training.batch_size, rng):
            batches.append((contexts_E[examples], lines_EN[examples], labels_EN[examples]))
        return batches

    return Batches(num_batches, cut_pool)


def draw_negatives(split, lines, positives, count, rng):
    """Draws `count` of the lines `positives` as the negatives of each of `lines`.

    Returns:
        Int `(len(lines), count)`. A line of the same context, or with the same response, is no
        negative: another is drawn, up to `MAX_REDRAWS` times.
    """
    drawn = positives[rng.integers(len(positives), size=(len(lines), count))]
    own = np.broadcast_to(lines[:, None], drawn.shape)
    for _ in range(MAX_REDRAWS):
        has_own_response = split.responses.equal(drawn, own)
        has_own_context = split.context_of_line[drawn] == split.context_of_line[own]
        is_unsuitable = has_own_response | has_own_context
        num_unsuitable = is_unsuitable.sum()
        if num_unsuitable == 0:
            break
        drawn[is_unsuitable] = positives[rng.integers(len(positives), size=num_unsuitable)]
    return drawn


def candidate_lists(split, training):
    """The lines of the candidates of each training example, without fresh negatives.

    Returns:
        Int arrays `(E, N)`, one array for each number of candidates `N`.

    Raises:
        UserError: No line has the label 1, or no context has lines of both labels.
    """
    if training.negatives == "file" and training.loss == "pointwise":
        # Each line is an example: its one candidate is correct or wrong.
        return [np.arange(len(split))[:, None]]

    positives = np.flatnonzero(split.label == 1)
    if not len(positives):
        raise UserError("the training split has no line with label 1")
    if training.negatives == "fresh":
        return [positives[:, None]]

    lists = _add_negatives_of_file(positives, split)
    if not lists:
        raise UserError("loss=softmax with negatives=file needs contexts with both labels")
    return lists


def _add_negatives_of_file(positives, split):
    """Adds to each positive line all negative lines of its context.

    A context without negatives is left out. Where lines 0 to 2 have one context and the labels 1, 0
    and 0, and lines 3 to 5 another and the labels 1, 1 and 0, the result is `[[3, 5], [4, 5]]` for
    two candidates and `[[0, 1, 2]]` for three.
    """
    negatives = np.flatnonzero(split.label == 0)
    contexts_of_negatives = split.context_of_line[negatives]
    num_negatives = split.count_lines(label=0)[split.context_of_line[positives]]

    lists = []
    for count in np.unique(num_negatives[num_negatives > 0]):
        positives_E = positives[num_negatives == count]
        # The negatives of a context are neighbours in `negatives`.
        first_E = np.searchsorted(contexts_of_negatives, split.context_of_line[positives_E])
        places_EN = first_E[:, None] + np.arange(count)
        lists.append(np.column_stack([positives_E, negatives[places_EN]]))
    return lists
