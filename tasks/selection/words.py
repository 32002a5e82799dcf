"""The words of a dataset: counted in its training text, chosen, and made into vectors.

Vocabulary and word vectors are made from the *distinct utterances* of the lines with label 1. A
context that grows line by line would otherwise count its first turn ten times, and `min_count`
would mean nothing. Negative responses are positive ones elsewhere in the corpus, so they would only
count words again.
"""

import collections
import dataclasses
from typing import Annotated, Literal

from pydantic import Field

from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError
from colloquy.data.prepared import filled_min_count
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE
from colloquy.data.vocabulary import SPECIALS, Vocabulary
from colloquy.data.word_vectors import (
    append_vectors,
    default_epochs,
    default_workers,
    load_text_vectors,
    train_word2vec,
)

NEGATIVE = 25
"""Word2vec: negative samples per word, as in the DAM paper."""
SAMPLE = 1e-4
"""Word2vec: words above this frequency, a fraction of all words, are subsampled."""


class WordSettings(Config):
    """Settings of words, their ids and their vectors."""

    tokenizer: Literal[WHITESPACE, *TOKENIZERS] | None = None
    """Splits texts into words, also those that a user types later; all but `whitespace` make them
    lower case. Default: the corpus's, `whitespace` for words separated by spaces. `terms` splits as
    the logs of #ubuntu do, so that people can write `Hello there!`."""
    min_count: Positive | None = None
    """Words that occur less often in the contexts and positive responses of train become `_UNK_`.
    Equal utterances count once. Default: 2, or 1 for fewer than 20,000 words."""
    hashed_words: Annotated[int, Field(ge=0, le=2**24)] = 0
    """Ids that unknown words get by their hash, for models with a lexical match; 0: none, as in
    DAM's release.
    """
    vectors: str | None = None
    """Text file of word2vec or GloVe vectors to use instead of training them."""
    general_vectors: str | None = None
    """File of word2vec or GloVe vectors, also .npz, appended to those of the corpus."""
    dimension: Positive = 200
    """Dimension of the word vectors; a file of `vectors` has its own."""
    window: Positive = 10
    """Word2vec: context words to each side."""
    word2vec_text: Literal["utterances", "conversations"] = "utterances"
    """Word2vec: text within which windows stay. With conversations, questions and answers share
    windows.
    """
    word2vec_epochs: Positive | None = None
    """Word2vec: passes over the text. Default: 20; fewer above 2.5 million words, at least one."""


def count_words(lines, text, file, joins_turns=False):
    """Reads the lines of a training text once: counts its words, and writes its sentences.

    Args:
        lines: Iterable of `data.corpora.smn.Line`.
        text: `data.tokenizer_config.TokenizerConfig`.
        file: Path of the file to write: a sentence per line, its words separated by spaces.
        joins_turns: A sentence is a whole conversation; `False`: a distinct utterance.

    Returns:
        `{word: occurrences}`.
    """
    counts = collections.Counter()
    hashes = set()
    conversation = []
    with open(file, "w", encoding="utf-8", errors="replace", newline="\n") as out:

        def write(texts):
            words = [word for utterance in texts for word in text.words(utterance)]
            if words:
                out.write(" ".join(words) + "\n")

        for line in lines:
            if line.label == 0:
                continue
            for utterance in (*line.turns, line.response):
                text_hash = hash(utterance)
                if text_hash in hashes:
                    continue
                hashes.add(text_hash)
                counts.update(text.words(utterance))
                if not joins_turns:
                    write([utterance])
            if joins_turns:
                if not _continues(line, conversation):
                    write(conversation)
                    conversation = list(line.turns)
                conversation.append(line.response)
        write(conversation)
    return counts


def _continues(line, conversation):
    """Whether a line continues a conversation, given by its texts so far.

    Its context is the conversation, or the conversation without its last response.
    """
    length = len(line.turns)
    return line.turns in (conversation[-length:], conversation[-length - 1 : -1])


def read_sentences(file):
    """Yields the words of each sentence that `count_words` wrote."""
    with open(file, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield line.removesuffix("\n").split(" ")


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


def make_vectors(counts, sentences, vocabulary, settings):
    """Trains or reads the vectors of a vocabulary.

    Args:
        counts: `{word: occurrences}` of the training text.
        sentences: File of its sentences, see `count_words`.
        vocabulary: `data.vocabulary.Vocabulary`.
        settings: `tasks.selection.prepare.Settings`.

    Returns:
        The settings with `word2vec_epochs` filled in, if word2vec was trained.
        The vectors, float32 `(len(vocabulary) + 1, dimension)`.
    """
    if settings.vectors:
        vectors, num_known = load_text_vectors(settings.vectors, vocabulary, settings.seed)
        _print_known(settings.vectors, num_known, vocabulary)
    else:
        num_known = sum(counts[word] for word in vocabulary.words[len(SPECIALS) :])
        epochs = settings.word2vec_epochs or default_epochs(num_known)
        settings = settings.replace(word2vec_epochs=epochs)
        print(f"word vectors: {epochs} passes over {num_known:,} words", flush=True)
        vectors = train_word2vec(
            read_sentences(sentences),
            vocabulary,
            dimension=settings.dimension,
            window=settings.window,
            negative=NEGATIVE,
            sample=SAMPLE,
            seed=settings.seed,
            epochs=epochs,
            workers=default_workers(num_known),
            directory=sentences.parent,
        )
    if settings.general_vectors:
        vectors, num_known = append_vectors(vectors, settings.general_vectors, vocabulary)
        _print_known(settings.general_vectors, num_known, vocabulary)
    return settings, vectors


def _print_known(file, num_known, vocabulary):
    print(f"{file}: vectors of {num_known:,} of {len(vocabulary) - len(SPECIALS):,} words")
