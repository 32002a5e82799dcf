"""Batches in which all lines of a split are scored.

A batch has some rows. A row is a context and some of its candidates.

Letters: R rows of a split   B rows of a batch   N candidates of a row   T turns   K utterance words
J response words
"""

import numpy as np

from colloquy.data.sequences import round_up

CANDIDATES = 5
"""Candidates of a row. Ten candidates are two rows: the five shorter ones and the five longer."""
RELEASE_CANDIDATES = 10
"""Candidates of a row with the masking of DAM's release. There all responses are padded to one
length, so nothing is gained by separating the shorter ones."""


def ranking_batches(split, config, pairs=40):
    """Cuts a split into batches, each line once.

    All turns of a batch are padded to the longest one, and so are all responses. So the candidates
    of a row have similar lengths, and the rows of a batch have similar sizes. Batches in file order
    would have a third more words and padding.

    Args:
        split: `SelectionSplit`.
        config: Config of the model.
        pairs: Largest number of candidates in a batch.

    Returns:
        A list of `(contexts (B,), lines (B, N))`, few turns first; line -1: no candidate.
    """
    if not len(split):
        return []
    row_size = CANDIDATES if config.masking == "exact" else RELEASE_CANDIDATES
    lines_RN = _rows_of_candidates(split, row_size)
    contexts_R = split.context_of_line[lines_RN[:, 0]]

    # Neighbours are rows that are padded to the same size: by the number of their turns, rounded up
    # to 3, then by J and K, rounded up to 6. `lexsort` sorts by its last key first.
    sizes = split.sizes(contexts_R, lines_RN, config.max_turns, config.max_words)
    T_R, K_R, J_R = sizes.T
    order = np.lexsort([round_up(K_R, 6), round_up(J_R, 6), round_up(T_R, 3)])

    batch_size = max(1, pairs // lines_RN.shape[1])
    batches = []
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        batches.append((contexts_R[rows], lines_RN[rows]))
    return batches


def _rows_of_candidates(split, row_size):
    """Cuts the lines of each context into rows, the shortest responses first.

    Returns:
        Lines, int `(R, N)`; -1: no candidate.

    >>> from colloquy.tasks.selection.split import SelectionSplit
    >>> contexts = [[5], [5], [5], [6]]
    >>> responses = [[8, 8], [8], [8, 8, 8], [9]]
    >>> split = SelectionSplit.of(contexts, responses, [1, 0, 0, 1], eos_id=1)
    >>> _rows_of_candidates(split, row_size=2).tolist()
    [[1, 0], [2, -1], [3, -1]]
    """
    # Sort by context, then by the length of the response.
    sorted_lines = np.lexsort((split.responses.lengths, split.context_of_line))
    contexts = split.context_of_line[sorted_lines]
    starts_of_contexts = np.flatnonzero(np.diff(contexts)) + 1

    rows = []
    for lines in np.split(sorted_lines, starts_of_contexts):
        for start in range(0, len(lines), row_size):
            rows.append(lines[start : start + row_size])

    N = max(len(row) for row in rows)
    lines_RN = np.full((len(rows), N), -1)
    for number, row in enumerate(rows):
        lines_RN[number, : len(row)] = row
    return lines_RN
