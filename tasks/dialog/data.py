"""Dialogs in memory, and their batches as NumPy arrays: an example is a whole dialog, all its turns at once.

A turn's history is what stands before it in its dialog, so each sentence is stored, sent and encoded once for all the
turns that remember it, and once for all the dialogs of a batch that have it.

Letters:
    B dialogs   M sentences   S distinct sentences   W words   T turns   K entities of a sentence   C candidates
    E entities
"""

import dataclasses

import numpy as np

from data.sequences import Sequences, round_up, stack

__all__ = ["DialogSplit", "Sentences", "stack"]
FIELDS = ("sentences", "speakers", "times", "turns", "answers")
NO_ANSWER = -1  # the label of a turn that only pads


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Encoded sentences, one per row, padded with 0."""

    words: np.ndarray
    """Word ids, int32 `(sentences, W)`."""
    typed_words: np.ndarray
    """The same where an entity of an open type is the id of its type, followed by 0 where it has several words; see
    `tasks.dialog.dataset.World`."""
    entities: np.ndarray
    """Entities that a sentence mentions, counted from 1; int32 `(sentences, K)`."""

    def __post_init__(self):
        object.__setattr__(self, "lengths", (self.words != 0).sum(axis=1))


class DialogSplit:
    """The dialogs of a split.

    Args:
        sentences: `Sentences`.
        dialogs: List of dicts of lists, as `tasks.dialog.prepare` writes them.
    """

    def __init__(self, sentences, dialogs):
        self.sentences = sentences
        self.fields = {name: Sequences.of([dialog[name] for dialog in dialogs]) for name in FIELDS}
        lists = {name: np.split(found.flat(), np.cumsum(found.lengths)[:-1]) for name, found in self.fields.items()}
        self.dialogs = [{name: lists[name][row] for name in FIELDS} for row in range(len(dialogs))]
        self.answers = self.fields["answers"].flat()
        """Candidates of all turns, dialog by dialog, int32 `(responses,)`."""
        self.dialog = np.repeat(np.arange(len(dialogs)), self.fields["turns"].lengths)
        """The dialog of each of them."""
        self.sizes = np.stack([self.fields[name].lengths for name in ("sentences", "turns")], axis=1)
        """Sentences and turns of each dialog, int `(dialogs, 2)`."""

    def __len__(self):
        return len(self.dialogs)

    def collate(self, rows, fields, entities=0, multiple=4):
        """A batch of dialogs.

        Args:
            rows: Numbers of dialogs, int `(B,)`.
            fields: Names of the arrays to make.
            entities: How many there are in the world (E).
            multiple: Sizes are rounded up to it.

        Returns:
            `(inputs, answers)`. `inputs` holds those of `fields`:
            words, typed_words: ids of the batch's distinct sentences, int32 `(S, W)`; the first is empty.
            sentences: numbers of these, int32 `(B, M)`; 0 for padding.
            speakers: int32 `(B, M)`, 1 user, 2 bot, 3 knowledge, 0 padding.
            times: int32 `(B, M)`, how many turns went before.
            turns: int32 `(B, T)`, place of the user's sentence; 0 also for padding.
            mentions: uint8 `(B, M, E)`, whether a sentence mentions an entity.
            `answers` are candidates, int32 `(B, T)`, -1 for padding.
        """
        fields_of, rows = self.fields, np.asarray(rows)
        M = fields_of["sentences"].width(rows, multiple=multiple)
        T = fields_of["turns"].width(rows, multiple=multiple)
        real = np.arange(M) < fields_of["sentences"].lengths[rows][:, None]
        flat = fields_of["sentences"].padded(rows, M)[real]
        distinct, number = np.unique(flat, return_inverse=True)
        width = round_up(self.sentences.lengths[distinct].max(), multiple)
        inputs = {}
        for name in fields:
            if name in ("words", "typed_words"):
                words = getattr(self.sentences, name)[distinct][:, :width]
                inputs[name] = np.zeros((round_up(len(words) + 1, 4 * multiple), width), np.int32)
                inputs[name][1 : len(words) + 1, : words.shape[1]] = words
            elif name == "sentences":
                inputs[name] = np.zeros(real.shape, np.int32)
                inputs[name][real] = number + 1
            elif name in ("speakers", "times"):
                inputs[name] = fields_of[name].padded(rows, M)
            elif name == "turns":
                inputs[name] = fields_of[name].padded(rows, T)
            elif name == "mentions":
                mentions = np.zeros((real.size, entities + 1), np.uint8)
                for column in self.sentences.entities[flat].T:
                    mentions[np.flatnonzero(real), column] = 1
                inputs[name] = mentions[:, 1:].reshape(*real.shape, entities)
            else:
                raise ValueError(f"fields must be known. Received: {name!r}")
        answered = np.arange(T) < fields_of["answers"].lengths[rows][:, None]
        return inputs, np.where(answered, fields_of["answers"].padded(rows, T), NO_ANSWER).astype(np.int32)
