"""Response generation: pairs of source and target in memory, and their batches as NumPy arrays.

Letters: B pairs   S source words   T target words
"""

import dataclasses

import numpy as np

from data.sequences import Sequences
from data.vocabulary import PADDING_ID

LENGTHS = {"max_source": 60, "max_target": 50}
"""Ids that a model reads and writes at most."""


@dataclasses.dataclass(frozen=True)
class GenerationSplit:
    """The pairs of a split."""

    source: Sequences
    """Word ids of the turns before, `_EOS_` after each."""
    target: Sequences
    """Word ids of the answers, `_EOS_` at the end."""
    source_texts: list[str]
    """Words separated by spaces, turns by tabs."""
    target_texts: list[str]
    seen: np.ndarray
    """Whether the pair also stands in train, bool `(pairs,)`."""
    bos: int
    """The id that a target begins with in `target_in`: the one after those of the vocabulary."""
    several: bool = False
    """Whether a reply is compared with all targets of its source at once, and not with each by itself."""

    def __len__(self):
        return len(self.seen)

    @property
    def sizes(self):
        """Source and target ids of each pair, int `(pairs, 2)`."""
        return np.stack([self.source.lengths, self.target.lengths], axis=1)

    def collate(self, rows, multiple=1, max_source=None, max_target=None):
        """A batch of pairs for teacher forcing.

        Args:
            rows: Numbers of pairs, int `(B,)`.
            multiple: `S` and `T` are rounded up to it.
            max_source: Of a longer source the last ids are kept; `None`: all.
            max_target: Of a longer target the first ids are kept; `None`: all.

        Returns:
            `({"source": (B, S), "target_in": (B, T)}, target (B, T))`, int32, padded with 0 on the right. `target_in`
            has what comes before each id of `target`: `bos`, then the ids of `target` but the last.

        >>> source, target = Sequences.of([[5, 6, 1]]), Sequences.of([[7, 8, 1]])
        >>> split = GenerationSplit(source, target, ["a b"], ["c d"], np.array([False]), bos=9)
        >>> inputs, target = split.collate([0], multiple=4, max_source=2)
        >>> inputs["source"].tolist(), inputs["target_in"].tolist(), target.tolist()
        ([[6, 1, 0, 0]], [[9, 7, 8, 0]], [[7, 8, 1, 0]])
        """
        S = self.source.width(rows, max_source, multiple)
        T = self.target.width(rows, max_target, multiple)
        source = self.source.padded(rows, S, max_source, keep="last")
        target = self.target.padded(rows, T, max_target, keep="first")
        before = np.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=self.bos)
        return {"source": source, "target_in": np.where(target == PADDING_ID, PADDING_ID, before)}, target


def view(split, config):
    """The split, or for a reverse model its targets as sources."""
    if not config.reverse:
        return split
    texts = {"source_texts": split.target_texts, "target_texts": split.source_texts}
    return dataclasses.replace(split, source=split.target, target=split.source, **texts)
