"""The reader of response generation: turns of a conversation in, ids of a model's inputs out."""

from typing import NamedTuple

import numpy as np

from colloquy.data.tokenizers import spoken_words
from colloquy.data.vocabulary import EOS_ID, UNK_ID
from colloquy.tasks.generation.data import MAX_SOURCE


class Read(NamedTuple):
    """What a model reads of a conversation."""

    words: list[str]
    """The words of the source, `_EOS_` after each turn."""
    source: list[int]
    """Their ids."""
    said: list[list[int]]
    """The ids of each reply that the bot gave before, with `_EOS_`."""
    is_unknown: bool
    """Whether the last turn has words, and the vocabulary none of them; signs do not count."""


def read(turns, text, vocabulary):
    """Reads turns as `Read`; turns without words are dropped.

    The last turn is the user's, and every second one before it the bot's.

    Args:
        turns: Texts, the oldest first.
        text: `tasks.generation.data.SourceConfig`.
        vocabulary: `data.vocabulary.Vocabulary`.
    """
    words_of_turns = [text.words(turn) for turn in turns]
    words_of_turns = [words for words in words_of_turns if words] or [[]]
    ids_of_turns = [[*vocabulary.encode(words), EOS_ID] for words in words_of_turns]

    source_words = []
    source = []
    for words, ids in zip(words_of_turns[-text.turns :], ids_of_turns[-text.turns :], strict=True):
        source_words += [*words, "_EOS_"]
        source += ids

    spoken_ids = vocabulary.encode(spoken_words(words_of_turns[-1]))
    return Read(
        words=source_words[-MAX_SOURCE:],
        source=source[-MAX_SOURCE:],
        said=ids_of_turns[-2::-2],
        is_unknown=set(spoken_ids) == {UNK_ID},
    )


def said_ids(reads, reply_length):
    """The replies before as `models.decoding.put_new_replies_first` compares them.

    Args:
        reads: `B` of `Read`.
        reply_length: `L`; longer texts are no reply of the search.

    Returns:
        Int32 `(B, T, L)`.
    """
    T = max(len(read.said) for read in reads)
    ids_BTL = np.zeros((len(reads), T, reply_length), np.int32)
    for row, read in enumerate(reads):
        for place, ids in enumerate(read.said):
            if len(ids) <= reply_length:
                ids_BTL[row, place, : len(ids)] = ids
    return ids_BTL
