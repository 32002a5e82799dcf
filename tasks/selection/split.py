"""Response selection: a prepared dataset in memory, and its batches as NumPy arrays.

Letters: B batch   N candidates of a context   T turns   K utterance words   J response words
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from base.files import UserError
from data.batching import Batches, like_batches, random_pools
from data.sequences import Sequences, round_up

POOL = 256  # training batches sorted by size together, see `data.batching.like_batches`


def split_turns(context, eos_id):
    """Cuts a context into its turns at `_EOS_`, as DAM's release does (`split_c`).

    One empty turn at the very end is dropped; empty turns elsewhere stay.

    >>> split_turns([5, 6, 1, 1, 7, 1], eos_id=1)
    [[5, 6], [], [7]]
    """
    turns = [[]]
    for word in context:
        if word == eos_id:
            turns.append([])
        else:
            turns[-1].append(word)
    if not turns[-1]:
        turns.pop()
    return turns


def _cut_turns(contexts, eos_id):
    """What `split_turns` makes of many contexts.

    Args:
        contexts: `Sequences`.

    Returns:
        The turns of all contexts as `Sequences`, and how many each context has.
    """
    ends = np.flatnonzero(contexts.ids == eos_id)
    stop = contexts.starts + contexts.lengths
    first = np.searchsorted(ends, contexts.starts)  # which of `ends` is each context's first
    marks = np.searchsorted(ends, stop) - first
    count = marks.copy()
    filled = contexts.lengths > 0
    count[filled] += contexts.ids[stop[filled] - 1] != eos_id  # a last turn without its mark
    context = np.repeat(np.arange(len(contexts)), count)
    turn = np.arange(len(context)) - np.repeat(np.cumsum(count) - count, count)
    mark = first[context] + turn
    padded = np.concatenate([[-1], ends, [0]])  # one before the first, one after the last
    starts = np.where(turn == 0, contexts.starts[context], padded[mark] + 1)
    turn_ends = np.where(turn < marks[context], padded[mark + 1], stop[context])
    return Sequences(contexts.ids, starts, turn_ends - starts), count


def _same(context, other):
    return context is other or (type(context) is type(other) and len(context) == len(other) and _equal(context, other))


def _equal(context, other):
    return np.array_equal(context, other) if isinstance(context, np.ndarray) else context == other


@dataclasses.dataclass(frozen=True)
class SelectionSplit:
    """One split: contexts, responses, and the lines that pair them, in file order."""

    turns: Sequences
    """All turns of all contexts."""
    context_start: np.ndarray
    """First turn of each context `(contexts,)`."""
    context_turns: np.ndarray
    """Number of turns of each context `(contexts,)`."""
    responses: Sequences
    """The response of each line."""
    context: np.ndarray
    """The context of each line `(lines,)`: equal contexts of consecutive lines are one."""
    label: np.ndarray
    """1 positive, 0 negative `(lines,)`, int32."""

    def __len__(self):
        return len(self.label)

    @classmethod
    def of(cls, contexts, responses, labels, eos_id):
        """Builds a split from the lists of `data.pkl`: `c`, `r`, `y`.

        Raises:
            TypeError, OverflowError: as `data.sequences.Sequences.of`.
        """
        new = [i == 0 or not _same(contexts[i], contexts[i - 1]) for i in range(len(contexts))]
        unique = Sequences.of([context for context, is_new in zip(contexts, new, strict=True) if is_new])
        turns, count = _cut_turns(unique, eos_id)
        return cls(
            turns=turns,
            context_start=np.cumsum(count) - count,
            context_turns=count,
            responses=Sequences.of(responses),
            context=np.cumsum(new) - 1,
            label=np.asarray(labels, np.int32),
        )

    def _last_turns(self, contexts, max_turns):
        """How many turns of each context are read `(B,)`, and which `(B, max_turns)`, filled up with -1."""
        kept = np.minimum(self.context_turns[contexts], max_turns)
        first = self.context_start[contexts] + self.context_turns[contexts] - kept
        turn = np.arange(max_turns)
        return kept, np.where(turn < kept[:, None], first[:, None] + turn, -1)

    def collate(self, contexts, responses, max_turns, max_words, multiple=1, cut=True):
        """Pads some contexts and their candidates into the model's inputs.

        The last `max_turns` turns and the last `max_words` words of each are kept, and the empty
        rest of the batch is cut off.

        Args:
            contexts: Which contexts, int `(B,)`.
            responses: Which lines' responses are their candidates, int `(B, N)`; -1: none.
            max_turns, max_words: The largest `T`, and the largest `K` and `J`.
            multiple: `K` and `J` are rounded up to a multiple of this, `T` to one of an eighth of it, so that few
                shapes occur.
            cut: `False` leaves the largest shapes, as DAM's release needs them.

        Returns:
            `{"turns": (B, T, K), "responses": (B, N, J)}`, int32, 0 = padding.
        """
        kept, index = self._last_turns(contexts, max_turns)
        index = index[:, : round_up(max(1, kept.max()), max(1, multiple // 8))] if cut else index

        def padded(lists, index):
            width = min(lists.width(index, multiple=multiple), max_words) if cut else max_words
            return lists.padded(index, width)

        return {"turns": padded(self.turns, index), "responses": padded(self.responses, responses)}

    def sizes(self, contexts, responses, max_turns, max_words):
        """What examples cost, for `data.batching.like_batches`: `(E, 3)`, turns, `K` and `J`.

        Args:
            contexts: int `(E,)`.
            responses: Lines, int `(E, N)`; -1: none.
            max_turns, max_words: As in `collate`.
        """
        kept, index = self._last_turns(contexts, max_turns)
        K = self.turns.kept(index).max(axis=1, initial=0)
        J = self.responses.kept(responses).max(axis=1, initial=0)
        return np.stack([kept, np.minimum(K, max_words), np.minimum(J, max_words)], axis=1)

    def draw_negatives(self, lines, pool, count, rng):
        """Draws negative responses for some lines among the responses of a pool.

        Args:
            lines: Lines with label 1, int `(E,)`.
            pool: Lines with label 1, int `(P,)`.
            count: Responses to draw for each.
            rng: `numpy.random.Generator`.

        Returns:
            Lines of the pool, int `(E, count)`; none has the very words of its own positive, unless all have.
        """
        drawn = pool[rng.integers(len(pool), size=(len(lines), count))]
        own = np.broadcast_to(lines[:, None], drawn.shape)
        for _ in range(8):  # a popular "ok" may be drawn for another "ok": draw again
            same = self.responses.equal(drawn, own)
            if not same.any():
                break
            drawn[same] = pool[rng.integers(len(pool), size=same.sum())]
        return drawn

    def texts(self, lines, eos_id):
        """Context and response of some lines as lists of ids, each turn ended by `eos_id`.

        Lines of one context have one list, and equal ids are one object.
        """
        numbers, place = np.unique(self.context[lines], return_inverse=True)
        contexts, one = [], {}
        for start, count in zip(self.context_start[numbers], self.context_turns[numbers], strict=True):
            turns = self.turns.lists(slice(start, start + count))
            contexts.append([one.setdefault(id, id) for turn in turns for id in (*turn, eos_id)])
        responses = [[one.setdefault(id, id) for id in self.responses.lists([line])[0]] for line in lines]
        return [contexts[i] for i in place], responses


def inputs_of(split, config, contexts, responses, multiple):
    """The model's inputs for some contexts and the lines of their candidates: see `SelectionSplit.collate`.

    Args:
        multiple: Lengths are rounded up to 3/2 of it, as poolings take cells by threes: see `layers.match_aggregation`.
    """
    cut = config.masking == "exact"  # else padding counts, so all of it must be there
    inputs = split.collate(contexts, responses, config.max_turns, config.max_words, multiple * 3 // 2, cut)
    if lexical := getattr(config, "lexical", None):  # of DAM alone
        whole = split.collate(contexts, responses, lexical.turns, lexical.words, multiple)
        inputs |= {"context": whole["turns"], "candidates": whole["responses"]}
    return inputs


# === Training ===


class Candidates(NamedTuple):
    """Contexts, each with as many candidates: the examples of an epoch, or some of them."""

    examples: int
    """How many there are."""
    draw: Callable
    """Function of the numbers of some, int `(E,)`, and of a `numpy.random.Generator` that gives their `contexts (E,)`,
    `responses (E, N)`, which are lines, and `labels (E, N)`."""


def candidate_lists(split, training):
    """The examples that a model trains on.

    Args:
        split: A `SelectionSplit`.
        training: A `tasks.selection.task.Training`.

    Returns:
        List of `Candidates`, one for each `N` that occurs.

    Raises:
        UserError: where nothing can be drawn or compared.
    """
    if training.negatives == "file" and training.loss == "pointwise":
        return [Candidates(len(split), lambda rows, rng: (split.context[rows], rows[:, None], split.label[rows, None]))]
    positives = np.flatnonzero(split.label == 1)
    if not len(positives):
        raise UserError("the training split has no line with label 1")
    if training.negatives == "fresh":

        def fresh(rows, rng):
            lines = positives[rows]
            drawn = split.draw_negatives(lines, positives, training.negatives_per_positive, rng)
            return _with_labels(split, lines, drawn)

        return [Candidates(len(positives), fresh)]
    # The file's negatives under a softmax: each positive with all negatives of its context.
    negatives = np.flatnonzero(split.label == 0)
    count = np.bincount(split.context[negatives], minlength=len(split.context_start))
    first = np.cumsum(count) - count
    sizes = count[split.context[positives]]

    def of_size(n):
        chosen = positives[sizes == n]

        def draw(rows, rng):
            places = first[split.context[chosen[rows]]][:, None] + np.arange(n)
            return _with_labels(split, chosen[rows], negatives[places])

        return Candidates(len(chosen), draw)

    lists = [of_size(n) for n in np.unique(sizes) if n]
    if not lists:
        raise UserError("loss=softmax with negatives=file needs contexts with both labels")
    return lists


def _with_labels(split, positives, negatives):
    responses = np.concatenate([positives[:, None], negatives], axis=1)
    labels = np.zeros(responses.shape, np.int32)
    labels[:, 0] = 1
    return split.context[positives], responses, labels


def training_batches(split, config, training, batch_size, rng):
    """One epoch of batches as `(contexts, responses, labels)` index arrays, a `data.batching.Batches`.

    `batch_size` counts contexts with all their candidates.
    """
    pools = [
        (candidates, rows, seed)
        for candidates in candidate_lists(split, training)
        for rows, seed in random_pools(candidates.examples, batch_size, rng, POOL)
    ]

    def make(number):
        candidates, rows, seed = pools[number]
        rng = np.random.default_rng(seed)
        contexts, responses, labels = candidates.draw(rows, rng)
        sizes = split.sizes(contexts, responses, config.max_turns, config.max_words)
        batches = like_batches(sizes, batch_size, rng)
        return [(contexts[batch], responses[batch], labels[batch]) for batch in batches]

    return Batches([-(-len(rows) // batch_size) for _, rows, _ in pools], make)
