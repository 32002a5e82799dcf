"""Response selection: a prepared dataset in memory, and its batches as NumPy arrays.

Letters: B batch   N candidates of a context   T turns   K utterance words   J response words
"""

import dataclasses

import numpy as np


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
class Sequences:
    """Many lists of ids, stored end to end: list `i` is `ids[starts[i] : starts[i] + lengths[i]]`."""

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, lists):
        """Packs lists of ids, keeping their order."""
        lengths = np.fromiter((len(ids) for ids in lists), np.int64, len(lists))
        flat = np.fromiter((id for ids in lists for id in ids), np.int32, lengths.sum())
        return cls(flat, np.cumsum(lengths) - lengths, lengths)

    def padded(self, index, width):
        """The lists at `index` as an array padded with 0: each keeps its last `width` ids.

        Args:
            index: Integer array of any shape; -1 gives an empty list.
            width: Size of the last axis of the result.

        Returns:
            int32 array of the shape of `index`, then `width`.

        >>> Sequences.of([[4, 5, 6], [7]]).padded(np.array([0, 1, -1]), 2).tolist()
        [[5, 6], [7, 0], [0, 0]]
        """
        length = np.where(index >= 0, np.minimum(self.lengths[index], width), 0)
        start = (self.starts + self.lengths)[index] - length
        position = np.arange(width)
        real = position < length[..., None]
        source = np.where(real, start[..., None] + position, 0)
        return np.where(real, self.ids[source] if len(self.ids) else 0, 0).astype(np.int32)


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

    @classmethod
    def of(cls, contexts, responses, labels, eos_id):
        """Builds a split from the lists of `data.pkl`: `c`, `r`, `y`."""
        new = [i == 0 or contexts[i] != contexts[i - 1] for i in range(len(contexts))]
        unique = [
            split_turns(context, eos_id)
            for context, is_new in zip(contexts, new, strict=True)
            if is_new
        ]
        count = np.fromiter((len(turns) for turns in unique), np.int64, len(unique))
        return cls(
            turns=Sequences.of([turn for turns in unique for turn in turns]),
            context_start=np.cumsum(count) - count,
            context_turns=count,
            responses=Sequences.of(responses),
            context=np.cumsum(new) - 1,
            label=np.asarray(labels, np.int32),
        )

    def collate(self, contexts, responses, max_turns, max_words, multiple=1):
        """Pads some contexts and their candidates into the model's inputs.

        The last `max_turns` turns and the last `max_words` words of each are kept, the empty rest of the batch is cut
        off.

        Args:
            contexts: Which contexts, int `(B,)`.
            responses: Which lines' responses are their candidates, int `(B, N)`; -1: none.
            max_turns, max_words: The largest `T`, and the largest `K` and `J`.
            multiple: `K` and `J` are rounded up to a multiple of this, so that few shapes occur.

        Returns:
            `{"turns": (B, T, K), "responses": (B, N, J)}`, int32, 0 = padding.
        """
        kept = np.minimum(self.context_turns[contexts], max_turns)
        T = max(1, kept.max())
        turn = np.arange(T)
        first = self.context_start[contexts] + self.context_turns[contexts] - kept
        index = np.where(turn < kept[:, None], first[:, None] + turn, -1)

        def width(lengths, used):
            longest = max(1, np.where(used, lengths, 0).max())
            return min(-(-longest // multiple) * multiple, max_words)

        K = width(self.turns.lengths[index], index >= 0)
        J = width(self.responses.lengths[responses], responses >= 0)
        return {
            "turns": self.turns.padded(index, K),
            "responses": self.responses.padded(responses, J),
        }
