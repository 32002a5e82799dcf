"""Encodes the turns of a conversation for a generation model."""

from typing import NamedTuple

import numpy as np

from colloquy.data.tokenizers import spoken_words
from colloquy.data.vocabulary import EOS_ID, UNK_ID
from colloquy.tasks.generation.data import MAX_SOURCE


class EncodedTurns(NamedTuple):
    """A conversation as a generation model reads it."""

    words: list
    """The words of the source, `_EOS_` after each turn; the last `MAX_SOURCE`."""
    source: list
    """The ids of `words`."""
    earlier_replies: list
    """The ids of each earlier reply of the bot, with `_EOS_`; the last reply first."""
    is_unknown: bool
    """True if the last turn has words, without punctuation, and the vocabulary lacks all."""


def encode_turns(turns, source_config, vocabulary):
    """Encodes turns; those without words are dropped.

    The last turn with words is the user's, and every second one before it the bot's. Turns without
    words count here, since a reply may be empty.

    Args:
        turns: Texts, the oldest first.
        source_config: `tasks.generation.data.SourceConfig`.
        vocabulary: `data.vocabulary.Vocabulary`.
    """
    words_of_turns = [source_config.words(turn) for turn in turns]
    while len(words_of_turns) > 1 and not words_of_turns[-1]:
        words_of_turns.pop()
    ids_of_turns = [[*vocabulary.encode(words), EOS_ID] for words in words_of_turns]
    earlier_replies = [ids for ids in ids_of_turns[-2::-2] if ids != [EOS_ID]]

    # Without any words, the source is `_EOS_` alone, as in an export.
    words_of_turns = [words for words in words_of_turns if words] or [[]]
    ids_of_turns = [ids for ids in ids_of_turns if ids != [EOS_ID]] or [[EOS_ID]]
    source_words = []
    for words in words_of_turns[-source_config.turns :]:
        source_words += [*words, "_EOS_"]
    source = []
    for ids in ids_of_turns[-source_config.turns :]:
        source += ids

    spoken_ids = vocabulary.encode(spoken_words(words_of_turns[-1]))
    return EncodedTurns(
        words=source_words[-MAX_SOURCE:],
        source=source[-MAX_SOURCE:],
        earlier_replies=earlier_replies,
        is_unknown=set(spoken_ids) == {UNK_ID},
    )


def pad_earlier_replies(conversations, max_lengths, reply_length):
    """Pads the earlier replies of conversations for `models.decoding.put_new_replies_first`.

    Args:
        conversations: `B` values of `EncodedTurns`.
        max_lengths: The `max_length` of the search for each of them. A longer reply is left out,
            since the search cannot find it; one of just this length has no `_EOS_`.
        reply_length: `L`, the largest `max_length` for which the search was compiled.

    Returns:
        Ids, int32 `(B, T, L)`, for at most `T` replies; 0 is padding.
    """
    T = max(len(encoded.earlier_replies) for encoded in conversations)
    ids_BTL = np.zeros((len(conversations), T, reply_length), np.int32)
    for row, (encoded, max_length) in enumerate(zip(conversations, max_lengths, strict=True)):
        for place, ids in enumerate(encoded.earlier_replies):
            if len(ids) <= max_length + 1:
                reply = ids[:max_length]
                ids_BTL[row, place, : len(reply)] = reply
    return ids_BTL
