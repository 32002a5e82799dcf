"""Response selection: from a corpus to a prepared dataset, see `tasks.selection.data`.

A corpus of texts is read twice: to count its words, and to encode them. Conversations become lines
by `contexts`; DAM's release, of ids, is prepared by `prepare_release`.
"""

import functools
import pathlib
import sys
from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field
from rich.progress import Progress

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA, dam_release, smn
from colloquy.data.corpora.splits import read_splits
from colloquy.data.prepared import VECTORS, VOCABULARY, CommonSettings, print_summary, write
from colloquy.data.report import Report, choose_examples
from colloquy.data.tokenizers import WHITESPACE, words_of
from colloquy.engine.vocabularies import Words
from colloquy.tasks.selection.contexts import draw_lines
from colloquy.tasks.selection.counting import WordSettings, choose_vocabulary, count_words
from colloquy.tasks.selection.data import (
    ARRAYS,
    SPLITS,
    as_texts,
    check_metadata,
    ids_dtype,
    read_split,
)
from colloquy.tasks.selection.ingest import (
    encode_lines,
    warn_of_contexts_without_positive,
    warn_of_other_numbers_of_candidates,
    write_arrays,
)
from colloquy.tasks.selection.prepare_release import prepare_release
from colloquy.tasks.selection.statistics import Prepared, statistics_of
from colloquy.tasks.selection.vectors import VectorSettings, make_vectors

SENTENCES = ".sentences"
"""File of the sentences for word2vec; it is removed when the dataset is complete."""


class Settings(VectorSettings, WordSettings, CommonSettings):
    """Settings of preparing a corpus; the defaults are the DAM paper's where it states them."""

    contexts: NonNegative = 12_000
    """Corpora of conversations: contexts drawn for train; 0: one for every response."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed for every random number generator."""
    eos_id: Positive | None = None
    """dam-release: the id of `_EOS_`. Default: that of the published corpus --name, 28270 for
    ubuntu-v1 and 1 for douban."""


class Source(NamedTuple):
    """The lines of a split."""

    file: pathlib.Path
    """File that the lines come from, for messages."""
    read: Callable
    """Function without arguments that yields each `data.corpora.smn.Line`; called twice."""


def prepare(corpus, source, out, settings):
    """Prepares a corpus for response selection, see `data.prepared`."""
    reader = CORPORA[corpus].reader
    if reader in (smn, dam_release) and "contexts" in settings.explicit_fields():
        reason = f"the files of --corpus={corpus} contain their contexts and candidates"
        raise UserError(f"--contexts is for conversations: {reason}")

    report = Report()
    with atomic_directory(out) as directory, Progress() as progress:
        if reader is dam_release:
            report.add_file(source, "ids of DAM's release")
            prepared = prepare_release(source, settings, directory)
        else:
            prepared = _prepare_texts(corpus, source, settings, directory, progress, report)
        examples = _show_examples(directory, prepared)
        files = {VECTORS: prepared.vectors}
        if prepared.vocabulary:
            files[VOCABULARY] = prepared.vocabulary
        num_words = len(prepared.vectors) - 1
        write(
            directory,
            files,
            corpus,
            source,
            prepared.settings,
            {"vocabulary": num_words, **prepared.statistics},
            task="selection",
            **prepared.metadata,
        )

    if source:
        report.note_unread(source)
    report.print(examples)
    print_summary(prepared.statistics)
    print(f"{out}: {num_words:,} words, vectors {prepared.vectors.shape}")
    if "dev" not in prepared.statistics:
        lacks = f"{source} has no dev file, which training needs to choose weights"
        consequence = f"so train.py will not train on {out}"
        how = f"Move about a tenth of the training contexts to {source}/dev.txt"
        print(f"warning: {lacks}, {consequence}. {how}", file=sys.stderr)


# === Texts ===


def _prepare_texts(corpus, source, settings, directory, progress, report):
    """Prepares a corpus of texts; writes the arrays of its splits."""
    words_from = None
    if settings.vocabulary_of:
        words_from = Words.of(settings.vocabulary_of, "selection")
        text = check_metadata(words_from.metadata, words_from.path)["text"]
    else:
        tokenizer = settings.tokenizer or CORPORA[corpus].reader.TOKENIZER
        text = {"tokenizer": tokenizer, "lower": tokenizer != WHITESPACE}
    # The files come after the settings: a wrong --vocabulary_of is refused at once.
    sources = _find_sources(corpus, source, settings, progress, report)
    settings = settings.replace(tokenizer=text["tokenizer"])
    tokenize = functools.partial(words_of, **text)

    if words_from:
        vocabulary = words_from.vocabulary
        vectors = words_from.vectors()
    else:
        train = sources["train"]
        joins_turns = settings.word2vec_text == "conversations"
        counted = count_words(train.read(), tokenize, directory / SENTENCES, joins_turns)
        settings, vocabulary = choose_vocabulary(counted.counts, settings, train.file)
        settings, vectors = make_vectors(counted, vocabulary, settings, settings.seed, progress)
        counted.sentences.unlink()

    num_ids = len(vectors) + vocabulary.hashed
    statistics = {}
    (directory / ARRAYS).mkdir()
    for split in SPLITS:
        split_source = sources.get(split)
        lines = split_source.read() if split_source else []
        blocks = encode_lines(lines, tokenize, vocabulary)
        unknown = write_arrays(blocks, directory / ARRAYS, split, ids_dtype(num_ids), vocabulary)
        if split_source is None:
            continue
        examples = read_split(directory / ARRAYS, split, num_ids)
        statistics[split] = {"file": split_source.file.name, **statistics_of(examples, unknown)}
        report.counts["contexts"] += statistics[split]["contexts"]
        report.counts["candidates"] += statistics[split]["lines"]
        _note_contexts(split_source.file, statistics[split], report)
        warn_of_contexts_without_positive(examples, split_source.file)
        if split != "train":
            warn_of_other_numbers_of_candidates(examples, split_source.file)
    metadata = {
        "eos_id": vocabulary.eos_id,
        "unk_id": vocabulary.unk_id or None,
        "hashed_words": vocabulary.hashed,
        "text": text,
    }
    return Prepared(settings, vocabulary, vectors, statistics, metadata)


def _note_contexts(file, statistics, report):
    """Notes the contexts from which a training learns nothing."""
    without_negative = statistics["contexts_without_negative"]
    if without_negative:
        report.note(
            f"{file}: all candidates of {without_negative:,} contexts have the label 1, so no "
            "other response is ranked below them"
        )


def _find_sources(corpus, directory, settings, progress, report):
    """Returns the `Source` of each split that the corpus has."""
    reader = CORPORA[corpus].reader
    sources = {}
    if reader is smn:

        def opener(path, mode):
            return progress.open(path, mode, description=f"reading {path.name}")

        for split in SPLITS:
            file = reader.find_split(directory, split)
            if file:
                report.add_file(file, "lines of a label, the turns of a context, and a response")
                sources[split] = Source(file, functools.partial(reader.read, file, opener, report))
    else:
        for name, split in read_splits(reader, directory, report).items():
            lines = draw_lines(
                split.conversations,
                name,
                contexts=settings.contexts,
                seed=settings.seed,
            )
            sources[name] = Source(split.file, functools.partial(iter, lines))
    return sources


# === Files ===


def _show_examples(directory, prepared):
    """The examples of the report: contexts of train with their positive response."""
    if prepared.vocabulary is None:
        return []
    num_ids = len(prepared.vectors) + prepared.vocabulary.hashed
    train = read_split(directory / ARRAYS, "train", num_ids)
    positives = np.flatnonzero(train.label == 1)

    def show(place):
        line = positives[place]
        turns = train.turns_of(train.context[line])
        turns_of_context = as_texts(train.turns, turns, prepared.vocabulary)
        [response] = as_texts(train.responses, [line], prepared.vocabulary)
        return " / ".join(turns_of_context), response

    return choose_examples(len(positives), show)
