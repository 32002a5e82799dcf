"""Dialogs in memory, and their batches as NumPy arrays: a whole dialog an example, all its turns at once.

A turn's history is what stands before it in its dialog, so each sentence is stored, sent and encoded once for all the
turns that remember it, and once for all the dialogs of a batch that have it.

Letters:
    B dialogs   M sentences   S distinct sentences   W words   T turns   K entities of a sentence   C candidates
    E entities
"""

import dataclasses

import numpy as np

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


def stack(rows):
    """Lists of ids as one array, padded with 0 at the end; at least one column."""
    return _padded(rows, max([1, *map(len, rows)]))


class DialogSplit:
    """The dialogs of a split.

    Args:
        sentences: `Sentences`.
        dialogs: List of dicts of lists, as `tasks.dialog.prepare` writes them.
    """

    def __init__(self, sentences, dialogs):
        self.sentences = sentences
        self.dialogs = [{name: np.asarray(values, np.int32) for name, values in d.items()} for d in dialogs]
        self.answers = _concatenate([dialog["answers"] for dialog in self.dialogs])
        """Candidates of all turns, dialog by dialog, int32 `(responses,)`."""
        self.dialog = np.repeat(np.arange(len(dialogs)), [len(dialog["turns"]) for dialog in self.dialogs])
        """The dialog of each of them."""
        self.sizes = np.array([(len(d["sentences"]), len(d["turns"])) for d in self.dialogs]).reshape(-1, 2)
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
        dialogs = [self.dialogs[row] for row in rows]
        M, T = (_round_up(max(len(d[name]) for d in dialogs), multiple) for name in ("sentences", "turns"))
        flat = np.concatenate([d["sentences"] for d in dialogs])
        distinct, number = np.unique(flat, return_inverse=True)
        inputs = {}
        for name in fields:
            if name in ("words", "typed_words"):
                inputs[name] = self._distinct(name, distinct, multiple)
            elif name == "sentences":
                inputs[name] = _padded(np.split(number + 1, np.cumsum([len(d["sentences"]) for d in dialogs])[:-1]), M)
            elif name in ("speakers", "times"):
                inputs[name] = _padded([d[name] for d in dialogs], M)
            elif name == "turns":
                inputs[name] = _padded([d["turns"] for d in dialogs], T)
            elif name == "mentions":
                inputs[name] = self._mentions(dialogs, M, entities)
            else:
                raise ValueError(f"fields must be known. Received: {name!r}")
        return inputs, _padded([d["answers"] for d in dialogs], T, NO_ANSWER)

    def _distinct(self, name, distinct, multiple):
        """The words of some sentences behind an empty one, as few columns as they need."""
        width = _round_up(self.sentences.lengths[distinct].max(), multiple)
        words = getattr(self.sentences, name)[distinct][:, :width]
        out = np.zeros((_round_up(len(words) + 1, 4 * multiple), width), np.int32)
        out[1 : len(words) + 1, : words.shape[1]] = words
        return out

    def _mentions(self, dialogs, M, entities):
        out = np.zeros((len(dialogs), M, entities + 1), np.uint8)
        for of_dialog, dialog in zip(out, dialogs, strict=True):
            found = self.sentences.entities[dialog["sentences"]]
            of_dialog[np.arange(len(found))[:, None], found] = 1
        return out[:, :, 1:]


def _padded(lists, width, padding=0):
    """Lists of numbers as one array, padded at the end: int32 `(lists, width)`."""
    out = np.full((len(lists), width), padding, np.int32)
    for row, values in zip(out, lists, strict=True):
        row[: len(values)] = values
    return out


def _round_up(n, multiple):
    return -(-n // multiple) * multiple


def _concatenate(arrays):
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int32)
