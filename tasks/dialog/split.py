"""The dialogs of a split, encoded, and batches of them.

A sentence is stored once for all turns that remember it, and sent and encoded once for all dialogs
of a batch.

Shape suffixes:
    B dialogs   M sentences of a dialog   S distinct sentences   W words   T turns   E entities
    K entities of a sentence
"""

from typing import NamedTuple

import numpy as np

from colloquy.data.sequences import Sequences

SPEAKERS = {"user": 1, "bot": 2, "fact": 3}
FIELDS = ("sentences", "speakers", "times", "turns", "answers")
PADDING = -1  # a sentence or an answer that is none


class Sentences(NamedTuple):
    """Encoded sentences."""

    words: Sequences
    """Word ids."""
    typed_words: Sequences
    """Word ids, but an entity of an open type is the id of its type, then zeros; see `Domain`."""
    entities: Sequences
    """Numbers of the entities that a sentence mentions, in its order, from 1."""
    responses: np.ndarray
    """The candidate of the same words, from 1; 0: none; -1: `SILENCE`; int32 `(S,)`."""


def encode_dialog(conversation, sentences):
    """Encodes a list of `Turn`, without answers.

    New texts are added to `sentences`, `{text: number}`.

    >>> encode_dialog([("user", "hi"), ("bot", "hello"), ("user", "hi"), ("fact", "x R_y z")], {})
    {'sentences': [0, 1, 0, 2], 'speakers': [1, 2, 1, 3], 'times': [0, 0, 1, 1], 'turns': [0, 2]}
    """
    encoded = {"sentences": [], "speakers": [], "times": [], "turns": []}
    for place, (speaker, text) in enumerate(conversation):
        if speaker == "user":
            encoded["turns"].append(place)
        # What comes before the user's first sentence belongs to turn 0 too.
        time = max(len(encoded["turns"]) - 1, 0)
        encoded["sentences"].append(sentences.setdefault(text, len(sentences)))
        encoded["speakers"].append(SPEAKERS[speaker])
        encoded["times"].append(time)
    return encoded


class DialogSplit:
    """The dialogs of a split.

    Args:
        sentences: The `Sentences` of all splits.
        dialogs: Dicts of lists, as `tasks.dialog.prepare` writes them.

    Attributes:
        answers: The candidate of each response, int `(responses,)`.
        dialog: The dialog of each response, int `(responses,)`.
        sizes: The numbers of sentences and of turns of each dialog, int `(dialogs, 2)`.
    """

    def __init__(self, sentences, dialogs):
        self.sentences = sentences
        self.dialogs = dialogs
        self.fields = {}
        for name in FIELDS:
            self.fields[name] = Sequences.of([dialog[name] for dialog in dialogs])
        self.answers = self.fields["answers"].flat()

        num_sentences = self.fields["sentences"].lengths
        num_turns = self.fields["turns"].lengths
        self.sizes = np.stack([num_sentences, num_turns], axis=1)
        self.dialog = np.repeat(np.arange(len(dialogs)), num_turns)

    def __len__(self):
        return len(self.dialogs)

    def collate(self, rows, names, entities=0, length_multiple=4):
        """Makes the arrays of a batch.

        Args:
            rows: Numbers of dialogs, int `(B,)`.
            names: Inputs to make, some of:
                words, typed_words: Ids of the distinct sentences of the batch, int32 `(S, W)`.
                    Sentence 0 is empty.
                sentences: Numbers of these sentences, int32 `(B, M)`, 0 for padding.
                speakers: Numbers of `SPEAKERS`, int32 `(B, M)`, 0 for padding.
                times: Number of earlier turns, int32 `(B, M)`.
                turns: Places of the user's sentences, int32 `(B, T)`; 0 also for padding.
                mentions: 1 where a sentence mentions an entity, uint8 `(B, M, E)`.
                entities: Entities of each sentence, from 1, int32 `(B, M, K)`.
                responses: See `Sentences`, int32 `(B, M)`.
            entities: Number of entities in the domain, E.
            length_multiple: Sizes are rounded up to it.

        Returns:
            A dict of the inputs.
            The candidates that are the answers, int32 `(B, T)`, -1 for padding.
        """
        rows = np.asarray(rows)
        sentences_BM = self._pad("sentences", rows, length_multiple, padding=PADDING)
        distinct_S, number_BM = _number_distinct(sentences_BM, multiple=4 * length_multiple)
        num_words = self.sentences.words.width(distinct_S, multiple=length_multiple)
        num_mentioned = self.sentences.entities.width(sentences_BM)
        entities_BMK = self.sentences.entities.padded(sentences_BM, num_mentioned)

        inputs = {
            "sentences": number_BM,
            "speakers": self._pad("speakers", rows, length_multiple),
            "times": self._pad("times", rows, length_multiple),
            "turns": self._pad("turns", rows, length_multiple),
            "entities": entities_BMK,
            "words": self.sentences.words.padded(distinct_S, num_words),
            "typed_words": self.sentences.typed_words.padded(distinct_S, num_words),
            "responses": np.where(
                sentences_BM == PADDING, 0, self.sentences.responses[sentences_BM]
            ),
        }
        # Of all inputs only this one is large.
        if "mentions" in names:
            inputs["mentions"] = _mark_entities(entities_BMK, entities)
        answers_BT = self._pad("answers", rows, length_multiple, padding=PADDING)
        return {name: inputs[name] for name in names}, answers_BT

    def _pad(self, name, rows, length_multiple, padding=0):
        field = self.fields[name]
        width = field.width(rows, multiple=length_multiple)
        is_real = np.arange(width) < field.lengths[rows, None]
        return np.where(is_real, field.padded(rows, width), padding)


def _number_distinct(sentences_BM, multiple):
    """Numbers the distinct sentences of a batch; number 0 is the padding.

    Returns:
        The distinct sentences, int `(S,)`, S a multiple of `multiple`.
        The number of each sentence, int32 `(B, M)`.
    """
    # The appended one makes the padding the first, whether or not the batch has any.
    distinct_S, numbers = np.unique(np.append(sentences_BM, PADDING), return_inverse=True)
    number_BM = numbers[:-1].reshape(sentences_BM.shape).astype(np.int32)
    missing = -len(distinct_S) % multiple
    return np.pad(distinct_S, (0, missing), constant_values=PADDING), number_BM


def _mark_entities(entities_BMK, count):
    """Marks the entities of each sentence, uint8 `(B, M, count)`."""
    B, M, _ = entities_BMK.shape
    mentions = np.zeros((B, M, 1 + count), np.uint8)  # entity 0 is padding
    np.put_along_axis(mentions, entities_BMK, 1, axis=2)
    return mentions[:, :, 1:]
