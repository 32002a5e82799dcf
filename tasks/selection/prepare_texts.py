"""Prepares a corpus of texts: chooses its words, and encodes its lines.

A line, `data.corpora.smn.Line`, is a context, a candidate response and a label. The files of an
`smn` corpus have lines. Other corpora have conversations, from which `contexts` draws lines.
"""

import functools
from typing import Any, NamedTuple

from colloquy.base.files import UserError
from colloquy.data.corpora import CORPORA, smn
from colloquy.data.corpora.splits import read_splits
from colloquy.data.tokenizer_config import TokenizerConfig
from colloquy.data.tokenizers import WHITESPACE
from colloquy.engine.vocabularies import Words
from colloquy.tasks.selection.contexts import draw_lines
from colloquy.tasks.selection.data import ARRAYS, SPLITS, Metadata, read_dataset_metadata
from colloquy.tasks.selection.ingest import write_lines
from colloquy.tasks.selection.statistics import Prepared
from colloquy.tasks.selection.words import (
    choose_vocabulary,
    count_words,
    make_vectors,
)

SENTENCES = ".sentences"
"""File of the sentences for word2vec; it is removed when the vectors are made."""


class _Source(NamedTuple):
    """The lines of a split."""

    file: Any
    """The file that they come from."""
    read: Any
    """Function without arguments that iterates over the lines, from the first one at each call."""


def prepare_texts(corpus, source, settings, directory, report):
    """Writes the arrays of all splits into a directory.

    Args:
        corpus: Its name, a key of `CORPORA`.
        source: Its directory or file; `None` for a corpus that Colloquy has.
        settings: `tasks.selection.prepare.Settings`.
        directory: Directory of the dataset.
        report: `data.report.Report`.

    Returns:
        `Prepared`.
    """
    reader = CORPORA[corpus].reader
    known_words = None
    if settings.vocabulary_of:
        # A wrong --vocabulary_of is refused here, before the files of the corpus are read.
        known_words = Words.open(settings.vocabulary_of, "selection")

    if reader is smn:
        sources = _find_files(source, report)
    else:
        sources = _draw_sources(reader, source, settings, report)

    if known_words:
        text = read_dataset_metadata(known_words.metadata, known_words.path).text
        settings = settings.replace(tokenizer=text.tokenizer)
        vocabulary = known_words.vocabulary
        vectors = known_words.read_vectors()
    else:
        tokenizer = settings.tokenizer or reader.TOKENIZER
        text = TokenizerConfig(tokenizer=tokenizer, lower=tokenizer != WHITESPACE)
        settings = settings.replace(tokenizer=tokenizer)
        train = sources["train"]
        sentences = directory / SENTENCES
        counts = count_words(train.read(), text, sentences, settings.word2vec_text)
        settings, vocabulary = choose_vocabulary(counts, settings, train.file)
        settings, vectors = make_vectors(counts, sentences, vocabulary, settings)
        sentences.unlink()

    num_unknown = {}
    for split in SPLITS:
        # A split that the corpus lacks has empty arrays.
        lines = sources[split].read() if split in sources else []
        num_unknown[split] = write_lines(lines, text, vocabulary, directory / ARRAYS, split)
    return Prepared(
        settings=settings,
        vocabulary=vocabulary,
        vectors=vectors,
        metadata=Metadata(
            eos_id=vocabulary.eos_id,
            unk_id=vocabulary.unk_id or None,
            hashed_words=vocabulary.hashed,
            text=text,
        ),
        files={split: split_source.file for split, split_source in sources.items()},
        num_unknown=num_unknown,
    )


def _find_files(directory, report):
    """The `_Source` of each split of an `smn` corpus."""
    sources = {}
    for split in SPLITS:
        file = smn.find_split(directory, split)
        if file:
            report.add_file(file, "lines of a label, the turns of a context, and a response")
            sources[split] = _Source(file, functools.partial(smn.read, file, report))
    return sources


def _draw_sources(reader, source, settings, report):
    """The `_Source` of each split of a corpus of conversations."""
    sources = {}
    for name, split in read_splits(reader, source, report).items():
        lines = draw_lines(
            split.conversations,
            name,
            contexts=settings.contexts,
            seed=settings.seed,
        )
        if not lines:
            raise UserError(
                f"{split.file}: expected conversations of two turns or more for {name}. "
                "Received: none"
            )
        sources[name] = _Source(split.file, functools.partial(iter, lines))
    return sources
