"""The dialogs of a split, encoded, and batches of them.

A sentence that occurs several times in a split is stored once, and one that occurs several times
in a batch is sent to the model once.

Shape suffixes:
    B dialogs   M sentences of a dialog   S distinct sentences   W words   T turns   E entities
    K entities of a sentence
"""

from typing import NamedTuple

import numpy as np

from colloquy.data.sequences import Sequences, round_up

SPEAKERS = {"user": 1, "bot": 2, "fact": 3}
FIELDS = ("sentences", "speakers", "times", "turns", "answers")
PADDING = -1
"""Stands for no sentence or no answer, whose numbers are from 0."""
NO_CANDIDATE = 0
SILENT = -1
"""Values of `Sentences.responses` for other sentences than candidates."""


class Sentences(NamedTuple):
    """Encoded sentences, numbered from 0."""

    words: Sequences
    """Word ids."""
    typed_words: Sequences
    """Word ids, except that a name of an open type (`Domain.open_types`) has the id of its type in
    place of its first word, and 0, padding, in place of the others.
    """
    entities: Sequences
    """Numbers of the entities that a sentence mentions, in its order, from 1."""
    responses: np.ndarray
    """The candidate with the same words, from 1. `SILENT` for a user who says nothing,
    `NO_CANDIDATE` for any other sentence. Int32 `(S,)`.
    """


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
        sentences_BM = self._pad("sentences", rows, length_multiple, PADDING)
        # S differs most between batches: a larger multiple keeps the number of shapes small.
        distinct_S, number_BM = _number_distinct(sentences_BM, multiple=4 * length_multiple)
        # `Sequences` takes `PADDING` as the number of an empty list.
        num_words = self.sentences.words.width(distinct_S, multiple=length_multiple)
        num_mentioned = self.sentences.entities.width(sentences_BM)
        entities_BMK = self.sentences.entities.padded(sentences_BM, num_mentioned)
        responses_BM = self.sentences.responses[sentences_BM]

        inputs = {
            "sentences": number_BM,
            "speakers": self._pad("speakers", rows, length_multiple),
            "times": self._pad("times", rows, length_multiple),
            "turns": self._pad("turns", rows, length_multiple),
            "entities": entities_BMK,
            "words": self.sentences.words.padded(distinct_S, num_words),
            "typed_words": self.sentences.typed_words.padded(distinct_S, num_words),
            "responses": np.where(sentences_BM == PADDING, NO_CANDIDATE, responses_BM),
        }
        # Of all inputs only this one is large.
        if "mentions" in names:
            inputs["mentions"] = _mark_entities(entities_BMK, entities)
        answers_BT = self._pad("answers", rows, length_multiple, PADDING)
        return {name: inputs[name] for name in names}, answers_BT

    def _pad(self, name, rows, length_multiple, padding=0):
        """Pads the lists of a field to the longest one, int32 `(B, M)` or `(B, T)`."""
        field = self.fields[name]
        width = field.width(rows, multiple=length_multiple)
        is_real = np.arange(width) < field.lengths[rows, None]
        return np.where(is_real, field.padded(rows, width), padding)


def _number_distinct(sentences_BM, multiple):
    """Numbers the distinct sentences of a batch in their order, from 1; number 0 is the padding.

    Returns:
        The distinct sentences, int `(S,)`: `PADDING`, the others, and `PADDING` again until S is a
        multiple of `multiple`.
        The number of each sentence, int32 `(B, M)`.

    >>> distinct, numbers = _number_distinct(np.array([[7, 4], [7, PADDING]]), multiple=4)
    >>> distinct.tolist(), numbers.tolist()
    ([-1, 4, 7, -1], [[2, 1], [2, 0]])
    """
    distinct_S = np.union1d([PADDING], sentences_BM)  # sorted
    number_BM = np.searchsorted(distinct_S, sentences_BM)
    missing = round_up(len(distinct_S), multiple) - len(distinct_S)
    padded_S = np.concatenate([distinct_S, np.full(missing, PADDING)])
    return padded_S, number_BM.astype(np.int32)


def _mark_entities(entities_BMK, count):
    """Marks the entities of each sentence, uint8 `(B, M, count)`."""
    B, M, _ = entities_BMK.shape
    mentions = np.zeros((B, M, 1 + count), np.uint8)  # entity 0 is padding
    np.put_along_axis(mentions, entities_BMK, 1, axis=2)
    return mentions[:, :, 1:]
