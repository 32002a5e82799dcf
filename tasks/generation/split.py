"""The pairs of a split, and their batches as NumPy arrays.

Letters: B pairs   S source words   T target words
"""

import dataclasses

import numpy as np

from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import PADDING_ID


@dataclasses.dataclass(frozen=True)
class GenerationSplit:
    """The pairs of a split."""

    source: Sequences
    """Word ids of the turns before, `_EOS_` after each."""
    target: Sequences
    """Word ids of the replies, `_EOS_` at the end."""
    begin_id: int
    """The decoder's input before the first word of a target: the id after those of the vocabulary.
    """
    source_texts: list = ()
    """Words separated by spaces, turns by tabs."""
    target_texts: list = ()
    seen: np.ndarray | None = None
    """True where the pair is in train too, bool `(pairs,)`."""
    has_several_references: bool = False
    """True if a reply is compared with all targets of its source at once; otherwise it is compared
    with the target of its pair."""

    def __len__(self):
        return len(self.source)

    @property
    def sizes(self):
        """Target and source ids of each pair, int `(pairs, 2)`.

        Batches are of similar targets first, because a target word costs more than a source word.
        """
        return np.stack([self.target.lengths, self.source.lengths], axis=1)

    def in_direction_of(self, config):
        """The split as a model with this config reads it.

        A reverse model reads targets and writes sources.
        """
        if not config.reverse:
            return self
        return dataclasses.replace(
            self,
            source=self.target,
            target=self.source,
            source_texts=self.target_texts,
            target_texts=self.source_texts,
        )

    def collate(self, rows, multiple=1, max_source=None, max_target=None):
        """Makes a batch of pairs for teacher forcing.

        Args:
            rows: Numbers of pairs, int `(B,)`.
            multiple: `S` and `T` are multiples of it.
            max_source: Keep the last `max_source` ids of a source; `None`: all.
            max_target: Keep the first `max_target` ids of a target; `None`: all.

        Returns:
            `({"source": (B, S), "target_in": (B, T)}, target (B, T))`, int32, padded with 0 on the
            right. `target_in` is `target` moved right by one, after `begin_id`.

        >>> source, target = Sequences.of([[5, 6, 1]]), Sequences.of([[7, 8, 1]])
        >>> split = GenerationSplit(source, target, begin_id=9)
        >>> inputs, target = split.collate([0], multiple=4, max_source=2, max_target=2)
        >>> inputs["source"].tolist(), inputs["target_in"].tolist(), target.tolist()
        ([[6, 1, 0, 0]], [[9, 7, 0, 0]], [[7, 8, 0, 0]])
        """
        S = self.source.width(rows, max_source, multiple)
        T = self.target.width(rows, max_target, multiple)
        source_BS = self.source.padded(rows, S, max_source, keep="last")
        target_BT = self.target.padded(rows, T, max_target, keep="first")
        # The decoder's input at a word is the word before it: [7, 8, 0, 0] -> [9, 7, 8, 0].
        before_BT = np.pad(target_BT[:, :-1], ((0, 0), (1, 0)), constant_values=self.begin_id)
        # Where the target is padding, so is its input: [9, 7, 8, 0] -> [9, 7, 0, 0].
        target_in_BT = np.where(target_BT == PADDING_ID, PADDING_ID, before_BT)
        return {"source": source_BS, "target_in": target_in_BT}, target_BT
