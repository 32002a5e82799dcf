"""Response selection: a prepared dataset in memory, and its batches as NumPy arrays.

Letters: B batch   N candidates of a context   T turns   K utterance words   J response words
"""

import dataclasses

import numpy as np

from data.sequences import Sequences


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
    """1 right, 0 wrong `(lines,)`, int32."""

    def __len__(self):
        return len(self.label)

    @classmethod
    def of(cls, contexts, responses, labels, eos_id):
        """Builds a split from the lists of `data.pkl`: `c`, `r`, `y`."""
        new = [i == 0 or contexts[i] != contexts[i - 1] for i in range(len(contexts))]
        unique = [split_turns(context, eos_id) for context, is_new in zip(contexts, new, strict=True) if is_new]
        count = np.fromiter((len(turns) for turns in unique), np.int64, len(unique))
        return cls(
            turns=Sequences.of([turn for turns in unique for turn in turns]),
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
            multiple: `K` and `J` are rounded up to a multiple of this, so that few shapes occur.
            cut: `False` leaves the largest shapes, as DAM's release needs them.

        Returns:
            `{"turns": (B, T, K), "responses": (B, N, J)}`, int32, 0 = padding.
        """
        kept, index = self._last_turns(contexts, max_turns)
        index = index[:, : max(1, kept.max())] if cut else index

        def width(lists, index):
            longest = max(1, lists.kept(index).max(initial=0)) if cut else max_words
            return min(-(-longest // multiple) * multiple, max_words)

        K = width(self.turns, index)
        J = width(self.responses, responses)
        return {
            "turns": self.turns.padded(index, K),
            "responses": self.responses.padded(responses, J),
        }

    def sizes(self, contexts, responses, max_turns, max_words):
        """What examples cost, for `data.batching.batches_by_size`: `(E, 3)`, turns, `K` and `J`.

        Args:
            contexts: int `(E,)`.
            responses: Lines, int `(E, N)`; -1: none.
            max_turns, max_words: As in `collate`.
        """
        kept, index = self._last_turns(contexts, max_turns)
        K = self.turns.kept(index).max(axis=1, initial=0)
        J = self.responses.kept(responses).max(axis=1, initial=0)
        return np.stack([kept, np.minimum(K, max_words), np.minimum(J, max_words)], axis=1)

    def draw_negatives(self, positives, count, rng):
        """Draws wrong responses among the right ones of other lines.

        Args:
            positives: Lines with label 1, int `(E,)`.
            count: Responses to draw for each.
            rng: `numpy.random.Generator`.

        Returns:
            Lines, int `(E, count)`; none has the very words of its own positive, unless all have.
        """
        texts = self.responses.text_numbers[positives]
        drawn = rng.integers(len(positives), size=(len(positives), count))
        for _ in range(8):  # a popular "ok" may be drawn for another "ok": draw again
            same = texts[drawn] == texts[:, None]
            if not same.any():
                break
            drawn[same] = rng.integers(len(positives), size=same.sum())
        return positives[drawn]

    def texts(self, lines, eos_id):
        """Context and response of some lines as lists of ids, each turn ended by `eos_id`."""
        turns = self.turns.lists()
        contexts = [
            [id for turn in turns[start : start + count] for id in [*turn, eos_id]]
            for start, count in zip(self.context_start, self.context_turns, strict=True)
        ]
        responses = self.responses.lists()
        return [contexts[self.context[i]] for i in lines], [responses[i] for i in lines]
