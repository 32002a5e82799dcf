"""The reader of response generation: turns of a conversation in, ids of a model's inputs out."""

from typing import NamedTuple

import numpy as np

from colloquy.data.vocabulary import EOS_ID, UNK_ID
from colloquy.tasks.generation.data import MAX_SOURCE


class Read(NamedTuple):
    """What a model reads of a conversation."""

    words: list[str]
    """The words of the source, `_EOS_` after each turn."""
    source: list[int]
    """Their ids."""
    said: list[list[str]]
    """The words of each reply that the bot gave before, the last one first."""
    is_unknown: bool
    """Whether the last turn has words, and the vocabulary none of them; signs do not count."""


class Reader:
    """Reads conversations for a model.

    Args:
        vocabulary: `data.vocabulary.Vocabulary`.
        text: `tasks.generation.data.SourceConfig`.
    """

    def __init__(self, vocabulary, text):
        self.vocabulary = vocabulary
        self.text = text

    def read(self, turns):
        """Reads turns as `Read`, each turn once; turns without words are dropped.

        The last turn is the user's, and every second one before it the bot's.
        """
        words_of_turns = [self.text.words(turn) for turn in turns]
        words_of_turns = [words for words in words_of_turns if words]
        words = []
        ids = []
        for words_of_turn in words_of_turns[-self.text.turns :] or [[]]:
            words += [*words_of_turn, "_EOS_"]
            ids += [*self.vocabulary.encode(words_of_turn), EOS_ID]
        return Read(
            words=words[-MAX_SOURCE:],
            source=ids[-MAX_SOURCE:],
            said=words_of_turns[-2::-2],
            is_unknown=self._is_unknown(words_of_turns[-1] if words_of_turns else []),
        )

    def _is_unknown(self, words):
        """True if there are words, and the vocabulary has none of them; signs do not count."""
        spoken = [word for word in words if any(character.isalnum() for character in word)]
        is_known = [id != UNK_ID for id in self.vocabulary.encode(spoken)]
        return bool(spoken) and not any(is_known)

    def said_ids(self, reads, reply_length):
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
            for place, words in enumerate(read.said):
                ids = [*self.vocabulary.encode(words), EOS_ID]
                if len(ids) <= reply_length:
                    ids_BTL[row, place, : len(ids)] = ids
        return ids_BTL
