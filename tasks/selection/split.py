"""Contexts, responses and the lines that pair them; batches of these as NumPy arrays.

Letters: E examples   B batch   N candidates of a context   T turns   K utterance words   J response
words
"""

import dataclasses
import itertools

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.batching import XLA_MULTIPLE, Batches, like_batches, random_pools
from colloquy.data.sequences import Sequences, round_up

POOL = 256  # training batches sorted by size together, see `data.batching.like_batches`


@dataclasses.dataclass(frozen=True)
class SelectionSplit:
    """One split of a dataset, its lines in file order."""

    turns: Sequences  # all turns of all contexts
    context_start: np.ndarray  # first turn of each context `(contexts,)`
    context_turns: np.ndarray  # number of turns of each context `(contexts,)`
    responses: Sequences  # the response of each line
    # the context of each line `(lines,)`; equal contexts of consecutive lines are one
    context: np.ndarray
    label: np.ndarray  # 1 positive, 0 negative, int32 `(lines,)`

    def __len__(self):
        return len(self.label)

    def turns_of(self, context):
        """The turns of a context, a slice of `turns`."""
        first = self.context_start[context]
        return slice(first, first + self.context_turns[context])

    @classmethod
    def of(cls, contexts, responses, labels, eos_id):
        """Builds a split from the lists `c`, `r` and `y` of `data.pkl`; raises as
        `data.sequences.Sequences.of` does.

        Contexts are cut into turns at `eos_id` as in DAM's release: an empty turn is dropped at the
        very end alone.

        >>> SelectionSplit.of([[5, 6, 1, 1, 7, 1]], [[8]], [1], eos_id=1).turns.lists()
        [[5, 6], [], [7]]
        """
        new = [True] * len(contexts)
        for i, (before, context) in enumerate(itertools.pairwise(contexts), 1):
            new[i] = context is not before and list(context) != list(before)
        distinct = Sequences.of(list(itertools.compress(contexts, new)))
        turns, count = _cut_turns(distinct, eos_id)
        return cls(
            turns=turns,
            context_start=np.cumsum(count) - count,
            context_turns=count,
            responses=Sequences.of(responses),
            context=np.cumsum(new) - 1,
            label=np.asarray(labels, np.int32),
        )

    def collate(self, contexts, responses, max_turns, max_words, length_multiple=1, cut=True):
        """Pads contexts and their candidates into the model's inputs; keeps the last turns, and the
        last words of each.

        Args:
            contexts: Numbers of contexts, int `(B,)`.
            responses: The lines of their candidates, int `(B, N)`; -1: no candidate.
            max_turns, max_words: The largest `T`; the largest `K` and `J`.
            length_multiple: `K` and `J` are multiples of it, `T` of an eighth of it, so that few
                shapes occur.
            cut: `False` pads to the limits.

        Returns:
            `{"turns": (B, T, K), "responses": (B, N, J)}`, int32, 0 = padding.
        """
        kept, turns = self._last_turns(contexts, max_turns)
        if cut:
            turns = turns[:, : round_up(max(1, kept.max()), max(1, length_multiple // 8))]
        inputs = {}
        for name, lists, index in (
            ("turns", self.turns, turns),
            ("responses", self.responses, responses),
        ):
            width = min(lists.width(index, None, length_multiple), max_words) if cut else max_words
            inputs[name] = lists.padded(index, width)
        return inputs

    def sizes(self, contexts, responses, max_turns, max_words):
        """Turns, `K` and `J` of examples for `data.batching.like_batches`, int `(E, 3)`; arguments
        as in `collate`.
        """
        kept, turns = self._last_turns(contexts, max_turns)
        K = self.turns.kept(turns).max(axis=1, initial=0)
        J = self.responses.kept(responses).max(axis=1, initial=0)
        return np.stack([kept, np.minimum(K, max_words), np.minimum(J, max_words)], axis=1)

    def _last_turns(self, contexts, max_turns):
        """The number of turns kept of each context `(B,)`, and their indices, `(B, max_turns)`,
        padded with -1.
        """
        kept = np.minimum(self.context_turns[contexts], max_turns)
        first = self.context_start[contexts] + self.context_turns[contexts] - kept
        turn = np.arange(max_turns)
        return kept, np.where(turn < kept[:, None], first[:, None] + turn, -1)

    def draw_negatives(self, lines, pool, count, rng):
        """Draws `count` negative responses for each of some `lines` with label 1, among a `pool` of
        such lines.

        Returns lines of the pool, int `(len(lines), count)`, with other words than the positive's
        if there are any.
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
        """Contexts and responses of lines as lists of ids, each turn followed by `eos_id`.

        Lines of one context share one list, and equal ids are one object.
        """
        numbers, place = np.unique(self.context[lines], return_inverse=True)
        contexts, one = [], {}
        for number in numbers:
            turns = self.turns.lists(self.turns_of(number))
            contexts.append([one.setdefault(id, id) for turn in turns for id in (*turn, eos_id)])
        responses = [[one.setdefault(id, id) for id in ids] for ids in self.responses.lists(lines)]
        return [contexts[i] for i in place], responses


def _cut_turns(contexts, eos_id):
    """The turns of all contexts, and the number of turns of each context; both share the ids of
    `contexts`.
    """
    is_end = np.append(contexts.ids == eos_id, True)
    ends = np.flatnonzero(is_end)
    stops = contexts.starts + contexts.lengths
    # the end of each context's first turn, in `ends`
    first = np.searchsorted(ends, contexts.starts)
    unfinished = (contexts.lengths > 0) & ~is_end[stops - 1]  # a last turn without `eos_id`
    count = np.searchsorted(ends, stops) - first + unfinished
    context = np.repeat(np.arange(len(contexts)), count)
    # its end, in `ends`
    turn = np.arange(len(context)) - np.repeat(np.cumsum(count) - count - first, count)
    starts = np.maximum(contexts.starts[context], np.append(-1, ends)[turn] + 1)
    return Sequences(contexts.ids, starts, np.minimum(ends[turn], stops[context]) - starts), count


def inputs_of(split, config, contexts, responses, length_multiple):
    """The model's inputs for contexts and the lines of their candidates, see
    `SelectionSplit.collate`.

    Lengths are rounded up to 3/2 of `length_multiple`: poolings take cells by threes
    (`layers.match_aggregation`). With XLA all batches have the largest size: it compiles a training
    step of DAM for a minute.
    """
    # else padding counts: all of it must be there
    cut = length_multiple < XLA_MULTIPLE and config.masking == "exact"
    inputs = split.collate(
        contexts, responses, config.max_turns, config.max_words, length_multiple * 3 // 2, cut
    )
    if lexical := getattr(config, "lexical", None):  # of DAM, not of docs/add_a_model.md
        whole = split.collate(
            contexts, responses, lexical.turns, lexical.words, length_multiple, cut
        )
        inputs |= {"context": whole["turns"], "candidates": whole["responses"]}
    return inputs


def training_batches(split, config, training, rng):
    """One epoch of `data.batching.Batches`, tuples of int arrays: contexts `(B,)`, lines and labels
    `(B, N)`.
    """
    lists, fresh = candidate_lists(split, training), training.negatives == "fresh"
    pools = [
        (lines, *examples_and_seed)
        for lines in lists
        for examples_and_seed in random_pools(len(lines), training.batch_size, rng, POOL)
    ]

    def make(number):
        lines, examples, seed = pools[number]
        lines, rng = lines[examples], np.random.default_rng(seed)
        contexts, labels = split.context[lines[:, 0]], split.label[lines]
        if fresh:
            drawn = split.draw_negatives(
                lines[:, 0], lists[0][:, 0], training.negatives_per_positive, rng
            )
            lines, labels = np.hstack([lines, drawn]), np.pad(labels, [(0, 0), (0, drawn.shape[1])])
        sizes = split.sizes(contexts, lines, config.max_turns, config.max_words)
        rows = like_batches(sizes, training.batch_size, rng)
        return [(contexts[batch], lines[batch], labels[batch]) for batch in rows]

    return Batches([-(-len(examples) // training.batch_size) for _, examples, _ in pools], make)


def candidate_lists(split, training):
    """The lines of the candidates of each training example, int `(E, N)` for each `N`; without
    fresh negatives.

    The first candidate is the positive one, unless each line is an example. Nothing to compare is a
    `UserError`.
    """
    if training.negatives == "file" and training.loss == "pointwise":
        return [np.arange(len(split))[:, None]]
    positives, negatives = (np.flatnonzero(split.label == label) for label in (1, 0))
    if not len(positives):
        raise UserError("the training split has no line with label 1")
    if training.negatives == "fresh":
        return [positives[:, None]]
    counts = np.bincount(split.context[negatives], minlength=len(split.context_start))
    first, count = (
        (np.cumsum(counts) - counts)[split.context[positives]],
        counts[split.context[positives]],
    )
    lists = [
        np.column_stack([positives[count == n], negatives[first[count == n, None] + np.arange(n)]])
        for n in np.unique(count[count > 0])
    ]
    if not lists:
        raise UserError("loss=softmax with negatives=file needs contexts with both labels")
    return lists
