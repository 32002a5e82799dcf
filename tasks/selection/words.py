"""The words of a dataset: counted in its training text, chosen, and made into vectors.

Each distinct utterance counts once. Where each turn of a conversation is the response of a line,
the first turn is in the contexts of all these lines: if it were counted with each of them, even its
rare words would reach `min_count`. Lines with label 0 are left out: their responses are the correct
responses of other lines, and are counted there.
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


def count_words(lines, tokenizer, file, sentences_are):
    """Reads the lines of a training text once: counts its words, and writes its sentences.

    Args:
        lines: Iterable of `data.corpora.smn.Line`.
        tokenizer: `data.tokenizer_config.TokenizerConfig`.
        file: File to write for `read_sentences`.
        sentences_are: `utterances`, each distinct one once, or whole `conversations`. Consecutive
            lines are one conversation if each context continues the one before.

    Returns:
        `{word: occurrences}` in the distinct utterances.
    """
    counts = collections.Counter()
    hashes = set()  # of utterances; a hash takes less memory than its text
    conversation = []
    with open(file, "w", encoding="utf-8", errors="replace", newline="\n") as out:

        def write(words):
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
                words = tokenizer.words(utterance)
                counts.update(words)
                if sentences_are == "utterances":
                    write(words)
            if sentences_are == "conversations":
                if not _continues(line.turns, conversation):
                    write(_words_of_texts(conversation, tokenizer))
                    conversation = list(line.turns)
                conversation.append(line.response)
        write(_words_of_texts(conversation, tokenizer))
    return counts


def _continues(context, texts):
    """Whether a context continues a conversation, whose texts so far are `texts`.

    The context is then the last texts. The very last one may be missing: it can be another correct
    response to the same context.
    """
    length = len(context)
    texts_without_last = texts[:-1]
    return context == texts[-length:] or context == texts_without_last[-length:]


def _words_of_texts(texts, tokenizer):
    words = []
    for text in texts:
        words += tokenizer.words(text)
    return words


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
        raise UserError(
            f"{file}: expected a word that occurs {settings.min_count} times (--min_count). "
            "Received: none"
        )
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
        The vectors, float32 `(1 + len(vocabulary), dimension)`; row 0 is padding.
    """
    if settings.vectors:
        vectors, num_found = load_text_vectors(settings.vectors, vocabulary, settings.seed)
        _print_found(settings.vectors, num_found, vocabulary)
    else:
        num_words = sum(counts[word] for word in vocabulary.words[len(SPECIALS) :])
        epochs = settings.word2vec_epochs or default_epochs(num_words)
        settings = settings.replace(word2vec_epochs=epochs)
        print(f"word vectors: {epochs} passes over {num_words:,} words", flush=True)
        vectors = train_word2vec(
            read_sentences(sentences),
            vocabulary,
            dimension=settings.dimension,
            window=settings.window,
            negative=NEGATIVE,
            sample=SAMPLE,
            seed=settings.seed,
            epochs=epochs,
            workers=default_workers(num_words),
            directory=sentences.parent,
        )
    if settings.general_vectors:
        vectors, num_found = append_vectors(vectors, settings.general_vectors, vocabulary)
        _print_found(settings.general_vectors, num_found, vocabulary)
    return settings, vectors


def _print_found(file, num_found, vocabulary):
    print(f"{file}: vectors of {num_found:,} of {len(vocabulary) - len(SPECIALS):,} words")
