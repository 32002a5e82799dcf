"""Contexts, responses and the lines that pair them; batches of these as NumPy arrays.

Letters: E examples   B batch   N candidates of a context   T turns   K utterance words   J response
words
"""

import dataclasses
import itertools
import math

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.batching import XLA_MULTIPLE, Batches, cut_by_size, random_pools
from colloquy.data.sequences import Sequences

POOL = 256
"""Training batches whose examples are sorted by size together, see `data.batching.cut_by_size`."""
MAX_REDRAWS = 8
"""A negative with the words of the positive response, such as "ok", is drawn anew so often."""


@dataclasses.dataclass(frozen=True)
class SelectionSplit:
    """One split of a dataset, its lines in file order."""

    turns: Sequences
    """All turns of all contexts."""
    context_start: np.ndarray
    """First turn of each context, int `(contexts,)`."""
    context_turns: np.ndarray
    """Number of turns of each context, int `(contexts,)`."""
    responses: Sequences
    """The response of each line."""
    context: np.ndarray
    """The context of each line, int `(lines,)`; equal contexts of consecutive lines are one."""
    label: np.ndarray
    """1 positive, 0 negative, int32 `(lines,)`."""

    def __len__(self):
        return len(self.label)

    def turns_of(self, context):
        """The turns of a context, a slice of `turns`."""
        first = self.context_start[context]
        return slice(first, first + self.context_turns[context])

    @classmethod
    def of(cls, contexts, responses, labels, eos_id):
        """Builds a split from the lists `c`, `r` and `y` of `data.pkl`.

        Contexts are cut into turns at `eos_id`. As in DAM's release empty turns are kept; only the
        empty rest after the last `eos_id` of a context is dropped.

        >>> SelectionSplit.of([[5, 6, 1, 1, 7, 1]], [[8]], [1], eos_id=1).turns.lists()
        [[5, 6], [], [7]]

        Raises:
            TypeError, OverflowError: See `data.sequences.Sequences.of`.
        """
        turns = []
        num_turns = []
        num_lines = []
        for context, lines in itertools.groupby(contexts, key=list):
            own_turns = _cut_turns(context, eos_id)
            turns += own_turns
            num_turns.append(len(own_turns))
            num_lines.append(len(list(lines)))

        num_turns = np.array(num_turns, np.int64)
        return cls(
            turns=Sequences.of(turns),
            context_start=np.cumsum(num_turns) - num_turns,
            context_turns=num_turns,
            responses=Sequences.of(responses),
            context=np.repeat(np.arange(len(num_lines)), np.array(num_lines, np.int64)),
            label=np.asarray(labels, np.int32),
        )

    def collate(self, contexts, responses, max_turns, max_words, length_multiple=1, cut=True):
        """Pads contexts and their candidates into the model's inputs.

        The last turns are kept, and the last words of each.

        Args:
            contexts: Numbers of contexts, int `(B,)`.
            responses: The lines of their candidates, int `(B, N)`; -1: no candidate.
            max_turns, max_words: The largest `T`; the largest `K` and `J`.
            length_multiple: `K` and `J` are rounded up to it, at most to `max_words`, so that few
                shapes occur.
            cut: `True` cuts the arrays to the longest context and response of the batch; `False`
                pads to the limits.

        Returns:
            `{"turns": (B, T, K), "responses": (B, N, J)}`, int32, 0 = padding.
        """
        num_turns_B, turns_BT = self._last_turns(contexts, max_turns)
        K = max_words
        J = max_words
        if cut:
            T = max(1, num_turns_B.max())
            turns_BT = turns_BT[:, :T]
            K = min(max_words, self.turns.width(turns_BT, multiple=length_multiple))
            J = min(max_words, self.responses.width(responses, multiple=length_multiple))
        return {
            "turns": self.turns.padded(turns_BT, K),
            "responses": self.responses.padded(responses, J),
        }

    def sizes(self, contexts, responses, max_turns, max_words):
        """Turns, `K` and `J` of examples for `data.batching.cut_by_size`, int `(E, 3)`.

        The arguments are those of `collate`.
        """
        num_turns_E, turns_ET = self._last_turns(contexts, max_turns)
        K_E = self.turns.lengths_at(turns_ET).max(axis=1, initial=0)
        J_E = self.responses.lengths_at(responses).max(axis=1, initial=0)
        return np.stack(
            [num_turns_E, np.minimum(K_E, max_words), np.minimum(J_E, max_words)], axis=1
        )

    def _last_turns(self, contexts, max_turns):
        """Selects the last turns of contexts.

        Returns:
            The number of turns of each context, at most `max_turns`: int `(B,)`.
            Their indices in `turns`, then -1: int `(B, max_turns)`.
        """
        num_turns_B = np.minimum(self.context_turns[contexts], max_turns)
        stop_B = self.context_start[contexts] + self.context_turns[contexts]
        first_B = stop_B - num_turns_B
        place_T = np.arange(max_turns)
        is_turn_BT = place_T < num_turns_B[:, None]
        return num_turns_B, np.where(is_turn_BT, first_B[:, None] + place_T, -1)

    def contexts_with(self, label):
        """True for each context that has a line with this label, bool `(contexts,)`."""
        lines = np.bincount(self.context[self.label == label], minlength=len(self.context_turns))
        return lines > 0

    def draw_negatives(self, lines, positives, count, rng):
        """Draws negative responses for some of the lines `positives`, which have the label 1.

        Returns:
            `count` of `positives` for each line, int `(len(lines), count)`. One of the same
            context, or with the words of the line's own response, is drawn anew, up to
            `MAX_REDRAWS` times.
        """
        drawn = positives[rng.integers(len(positives), size=(len(lines), count))]
        own = np.broadcast_to(lines[:, None], drawn.shape)
        for _ in range(MAX_REDRAWS):
            has_own_words = self.responses.equal(drawn, own)
            is_same = has_own_words | (self.context[drawn] == self.context[own])
            if not is_same.any():
                break
            drawn[is_same] = positives[rng.integers(len(positives), size=is_same.sum())]
        return drawn


def _cut_turns(context, eos_id):
    """Cuts a list of ids at `eos_id`; words after the last one are a turn, too."""
    turns = [[]]
    for id in context:
        if id == eos_id:
            turns.append([])
        else:
            turns[-1].append(id)
    return turns if turns[-1] else turns[:-1]


def inputs_of(split, config, contexts, responses, length_multiple):
    """The model's inputs for contexts and the lines of their candidates, by `collate`.

    Lengths of turns and responses are rounded up to 3/2 of `length_multiple`: usually to 6, since
    poolings take cells by threes (`layers.match_aggregation`). With XLA all batches have the
    largest size, since compiling a training step of DAM takes a minute.
    """
    # With the release's masking, padding changes the logits: the inputs always have all of it.
    cut = length_multiple < XLA_MULTIPLE and config.masking == "exact"
    inputs = split.collate(
        contexts,
        responses,
        max_turns=config.max_turns,
        max_words=config.max_words,
        length_multiple=length_multiple * 3 // 2,
        cut=cut,
    )
    lexical = getattr(config, "lexical", None)  # only DAM has a lexical match
    if lexical:
        lexical_inputs = split.collate(
            contexts,
            responses,
            max_turns=lexical.turns,
            max_words=lexical.words,
            length_multiple=length_multiple,
            cut=cut,
        )
        inputs["context"] = lexical_inputs["turns"]
        inputs["candidates"] = lexical_inputs["responses"]
    return inputs


def training_batches(split, config, training, rng):
    """Cuts one epoch into `data.batching.Batches`.

    A batch is a tuple of int arrays: contexts `(B,)`, lines and labels of their candidates
    `(B, N)`.
    """
    lists = candidate_lists(split, training)
    # Fresh negatives are drawn from all positive lines: those of the only list.
    positives = lists[0][:, 0]
    pools = []
    num_batches = []
    for lines_EN in lists:
        for examples, seed in random_pools(len(lines_EN), training.batch_size, rng, POOL):
            pools.append((lines_EN[examples], seed))
            num_batches.append(math.ceil(len(examples) / training.batch_size))

    def make_batches(number):
        lines_EN, seed = pools[number]
        rng = np.random.default_rng(seed)
        labels_EN = split.label[lines_EN]
        if training.negatives == "fresh":
            count = training.negatives_per_positive
            negatives_EN = split.draw_negatives(lines_EN[:, 0], positives, count, rng)
            lines_EN = np.hstack([lines_EN, negatives_EN])
            labels_EN = np.hstack([labels_EN, np.zeros_like(negatives_EN, np.int32)])
        contexts_E = split.context[lines_EN[:, 0]]
        sizes = split.sizes(contexts_E, lines_EN, config.max_turns, config.max_words)
        batches = []
        for rows in cut_by_size(sizes, training.batch_size, rng):
            batches.append((contexts_E[rows], lines_EN[rows], labels_EN[rows]))
        return batches

    return Batches(num_batches, make_batches)


def candidate_lists(split, training):
    """The lines of the candidates of each training example, without fresh negatives.

    Returns:
        An int array `(E, N)` for each number of candidates `N`. The first candidate is the positive
        one. Of `negatives=file` with `loss=pointwise` each line is an example, with one candidate
        of either label; with `loss=softmax` contexts without lines of both labels are left out.

    Raises:
        UserError: No line has the label 1, or no context has lines of both labels.
    """
    if training.negatives == "file" and training.loss == "pointwise":
        lines = np.arange(len(split))
        return [lines[:, None]]
    positives = np.flatnonzero(split.label == 1)
    if not len(positives):
        raise UserError("the training split has no line with label 1")
    if training.negatives == "fresh":
        return [positives[:, None]]

    # The negatives of a context are neighbours in `negatives`.
    negatives = np.flatnonzero(split.label == 0)
    counts = np.bincount(split.context[negatives], minlength=len(split.context_start))
    first_negatives = np.cumsum(counts) - counts
    count_of_positive = counts[split.context[positives]]
    first_of_positive = first_negatives[split.context[positives]]

    lists = []
    for count in np.unique(count_of_positive[count_of_positive > 0]):
        has_count = count_of_positive == count
        places = first_of_positive[has_count][:, None] + np.arange(count)
        lists.append(np.column_stack([positives[has_count], negatives[places]]))
    if not lists:
        raise UserError("loss=softmax with negatives=file needs contexts with both labels")
    return lists
