"""Counts the words of a training text, and keeps its sentences for word2vec.

Vocabulary and word vectors are made from the *distinct utterances* of the lines with label 1. A
context that grows line by line would otherwise count its first turn ten times, and `min_count`
would mean nothing. Negative responses are positive ones elsewhere in the corpus, so they would only
count words again.
"""

import collections
import dataclasses
import pathlib
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError
from colloquy.data.prepared import filled_min_count
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE
from colloquy.data.vocabulary import SPECIALS, Vocabulary


class WordSettings(Config):
    """Settings of words and their ids."""

    tokenizer: Literal[WHITESPACE, *TOKENIZERS] | None = None
    """Splits texts into words, also those that a user types later; all but `whitespace` make them
    lower case. Default: the corpus's, `whitespace` for words separated by spaces. `terms` splits as
    the logs of #ubuntu do, so that people can write `Hello there!`."""
    min_count: Positive | None = None
    """Words that occur less often in the training utterances become `_UNK_`. Equal utterances count
    once. Default: 2, or 1 for fewer than 20,000 words."""
    hashed_words: Annotated[int, Field(ge=0, le=2**24)] = 0
    """Ids that unknown words get by their hash, for models with a lexical match; 0: none, as in
    DAM's release.
    """


class TrainingText(NamedTuple):
    """The words of a training text."""

    counts: collections.Counter
    """`{word: occurrences}`."""
    sentences: pathlib.Path
    """File with a sentence per line, its words separated by spaces."""

    def read_sentences(self):
        """Yields the words of each sentence."""
        with open(self.sentences, encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n").split(" ")


def count_words(lines, tokenize, file, join=False):
    """Reads the lines of a training text once.

    Args:
        lines: Iterable of `data.corpora.smn.Line`.
        tokenize: Function from a text to its words.
        file: Path of the file of sentences to write.
        join: A sentence is a whole conversation; `False`: a distinct utterance.

    Returns:
        `TrainingText`.
    """
    counts = collections.Counter()
    hashes = set()
    conversation = []
    with open(file, "w", encoding="utf-8", errors="replace", newline="\n") as out:

        def write(words):
            if words:
                out.write(" ".join(words) + "\n")

        for line in lines:
            if line.label == 0:
                continue
            for text in (*line.turns, line.response):
                text_hash = hash(text)
                if text_hash in hashes:
                    continue
                hashes.add(text_hash)
                words = tokenize(text)
                counts.update(words)
                if not join:
                    write(words)
            if join:
                if not _continues(line, conversation):
                    write(_tokenize_all(conversation, tokenize))
                    conversation = list(line.turns)
                conversation.append(line.response)
        write(_tokenize_all(conversation, tokenize))
    return TrainingText(counts, pathlib.Path(file))


def _continues(line, conversation):
    """Whether a line continues a conversation, given by its texts so far.

    Its context is the conversation, or the conversation without its last response.
    """
    length = len(line.turns)
    return line.turns in (conversation[-length:], conversation[-length - 1 : -1])


def _tokenize_all(texts, tokenize):
    words = []
    for text in texts:
        words += tokenize(text)
    return words


def choose_vocabulary(counts, settings, file):
    """Makes the vocabulary of a training text.

    Args:
        counts: `{word: occurrences}`.
        settings: `WordSettings`.
        file: File of the text, for messages.

    Returns:
        The settings with `min_count` filled in, and the `Vocabulary`.
    """
    if not counts:
        raise UserError(f"{file}: expected lines with label 1. Received: none")
    settings = settings.replace(min_count=filled_min_count(settings.min_count, counts))
    vocabulary = Vocabulary.of_counts(counts, settings.min_count)
    if len(vocabulary) == len(SPECIALS):
        expected = f"expected a word that occurs {settings.min_count} times (--min_count)"
        raise UserError(f"{file}: {expected}. Received: none")
    return settings, dataclasses.replace(vocabulary, hashed=settings.hashed_words)
