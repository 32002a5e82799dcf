"""Contexts, candidate responses and their labels, and the model's inputs for them.

Letters: E examples   B batch   N candidates of a context   T turns   K utterance words   J response
words
"""

import dataclasses
import itertools

import numpy as np

from colloquy.data.batching import XLA_MULTIPLE
from colloquy.data.sequences import Sequences


@dataclasses.dataclass(frozen=True)
class SelectionSplit:
    """One split of a dataset.

    A line is a context, one candidate response and its label. Lines are in file order. Lines that
    follow each other and have the same turns share one context.
    """

    turns: Sequences
    """The turns of all contexts, one context after the other."""
    first_turn_of_context: np.ndarray
    """Index of the first turn of each context in `turns`, int `(contexts,)`."""
    num_turns_of_context: np.ndarray
    """Number of turns of each context, int `(contexts,)`."""
    responses: Sequences
    """The candidate response of each line."""
    context_of_line: np.ndarray
    """Index of the context of each line, int `(lines,)`, in ascending order."""
    label: np.ndarray
    """Label of each line, int32 `(lines,)`: 1 for a correct response, 0 for a wrong one."""

    def __len__(self):
        return len(self.label)

    @property
    def num_contexts(self):
        return len(self.num_turns_of_context)

    def turns_of(self, context):
        """The turns of a context, a slice of `turns`."""
        first = self.first_turn_of_context[context]
        return slice(first, first + self.num_turns_of_context[context])

    def count_lines(self, label):
        """Number of lines with this label in each context, int `(contexts,)`."""
        contexts = self.context_of_line[self.label == label]
        return np.bincount(contexts, minlength=self.num_contexts)

    @classmethod
    def of(cls, contexts, responses, labels, eos_id):
        """Builds a split from lists as DAM's release has them, with one item for each line.

        Args:
            contexts: Lists of ids. `eos_id` ends a turn.
            responses: Lists of ids.
            labels: 1 or 0.
            eos_id: The id of `_EOS_`.

        As in the release, empty turns are kept; only the empty rest after the last `eos_id` of a
        context is dropped.

        >>> SelectionSplit.of([[5, 6, 1, 1, 7, 1]], [[8]], [1], eos_id=1).turns.lists()
        [[5, 6], [], [7]]

        Raises:
            TypeError, OverflowError: See `data.sequences.Sequences.of`.
        """
        turns = []
        num_turns = []
        num_lines = []
        for context, equal_contexts in itertools.groupby(contexts, key=list):
            own_turns = _cut_turns(context, eos_id)
            turns += own_turns
            num_turns.append(len(own_turns))
            num_lines.append(len(list(equal_contexts)))

        num_turns = np.array(num_turns, np.int64)
        num_lines = np.array(num_lines, np.int64)
        return cls(
            turns=Sequences.of(turns),
            first_turn_of_context=np.cumsum(num_turns) - num_turns,
            num_turns_of_context=num_turns,
            responses=Sequences.of(responses),
            context_of_line=np.repeat(np.arange(len(num_lines)), num_lines),
            label=np.asarray(labels, np.int32),
        )

    def collate(self, contexts, lines, max_turns, max_words, length_multiple=1, full_size=False):
        """Pads contexts and their candidates.

        The last `max_turns` turns of a context are kept, and the last `max_words` words of a turn
        or a response.

        Args:
            contexts: Indices of contexts, int `(B,)`.
            lines: The lines of the candidates of each context, int `(B, N)`; -1: no candidate.
            max_turns: The largest `T`.
            max_words: The largest `K` and `J`.
            length_multiple: `K` and `J` are rounded up to it, at most to `max_words`, so that few
                shapes occur.
            full_size: `T`, `K` and `J` are the largest ones. Otherwise they fit the longest
                context, turn and response of the batch.

        Returns:
            `{"turns": (B, T, K), "responses": (B, N, J)}`, int32, 0 = padding.
        """
        num_turns_B, turns_BT = self._last_turns(contexts, max_turns)
        K = max_words
        J = max_words
        if not full_size:
            T = max(1, num_turns_B.max())
            turns_BT = turns_BT[:, :T]
            K = min(max_words, self.turns.width(turns_BT, multiple=length_multiple))
            J = min(max_words, self.responses.width(lines, multiple=length_multiple))
        return {
            "turns": self.turns.padded(turns_BT, K),
            "responses": self.responses.padded(lines, J),
        }

    def sizes(self, contexts, lines, max_turns, max_words):
        """The sizes of examples: of each its number of turns, `K` and `J`, int `(E, 3)`.

        An example is a context and its candidates. The arguments are those of `collate`.
        """
        num_turns_E, turns_ET = self._last_turns(contexts, max_turns)
        longest_turn_E = self.turns.lengths_at(turns_ET).max(axis=1, initial=0)
        longest_response_E = self.responses.lengths_at(lines).max(axis=1, initial=0)
        K_E = np.minimum(longest_turn_E, max_words)
        J_E = np.minimum(longest_response_E, max_words)
        return np.stack([num_turns_E, K_E, J_E], axis=1)

    def _last_turns(self, contexts, max_turns):
        """Selects the last turns of contexts.

        With `max_turns=3`, a context of the turns 5 and 6 gives [5, 6, -1], and a context of the
        turns 5 to 8 gives [6, 7, 8].

        Returns:
            The number of turns that are selected of each context, int `(B,)`.
            Their indices in `turns`, int `(B, max_turns)`; -1: no turn.
        """
        num_turns_B = self.num_turns_of_context[contexts]
        num_selected_B = np.minimum(num_turns_B, max_turns)
        first_B = self.first_turn_of_context[contexts] + num_turns_B - num_selected_B
        place_T = np.arange(max_turns)
        is_turn_BT = place_T < num_selected_B[:, None]
        return num_selected_B, np.where(is_turn_BT, first_B[:, None] + place_T, -1)


def _cut_turns(context, eos_id):
    """Cuts a list of ids at `eos_id`; words after the last one are a turn, too."""
    turns = [[]]
    for id in context:
        if id == eos_id:
            turns.append([])
        else:
            turns[-1].append(id)
    return turns if turns[-1] else turns[:-1]


def inputs_of(split, config, contexts, lines, length_multiple):
    """The model's inputs for contexts and the lines of their candidates.

    Args:
        split: `SelectionSplit`.
        config: Config of the model.
        contexts, lines: See `SelectionSplit.collate`.
        length_multiple: 4 rounds lengths up to 6; `XLA_MULTIPLE` gives all batches the largest
            size.
    """
    # XLA compiles each size of a batch anew, which takes a minute for a training step of DAM.
    uses_xla = length_multiple >= XLA_MULTIPLE
    # With the masking of DAM's release, padding changes the logits, so the inputs have all of it.
    full_size = uses_xla or config.masking != "exact"
    inputs = split.collate(
        contexts,
        lines,
        max_turns=config.max_turns,
        max_words=config.max_words,
        # 4 becomes 6, since `layers.match_aggregation` pools three words at a time.
        length_multiple=length_multiple * 3 // 2,
        full_size=full_size,
    )
    lexical = getattr(config, "lexical", None)  # only DAM has a lexical match
    if lexical:
        # The lexical match reads the same texts, with limits of its own.
        lexical_inputs = split.collate(
            contexts,
            lines,
            max_turns=lexical.turns,
            max_words=lexical.words,
            length_multiple=length_multiple,
            full_size=full_size,
        )
        inputs["context"] = lexical_inputs["turns"]
        inputs["candidates"] = lexical_inputs["responses"]
    return inputs
