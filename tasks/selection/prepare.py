"""Response selection: from a corpus to a prepared dataset, see `tasks.selection.data`.

A corpus of texts is read twice: to count its words, and to encode them. Conversations become lines
by `contexts`; DAM's release, of ids, is prepared by `prepare_release`.
"""

import functools
import pathlib
from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA, dam_release, smn
from colloquy.data.corpora.splits import read_splits
from colloquy.data.prepared import VECTORS, VOCABULARY, CommonSettings, write
from colloquy.data.report import Report, choose_examples, print_summary
from colloquy.data.tokenizer_config import TokenizerConfig
from colloquy.data.tokenizers import WHITESPACE
from colloquy.engine.vocabularies import Words
from colloquy.tasks.selection.contexts import draw_lines
from colloquy.tasks.selection.data import (
    ARRAYS,
    SPLITS,
    Metadata,
    as_texts,
    read_dataset_metadata,
)
from colloquy.tasks.selection.ingest import write_lines
from colloquy.tasks.selection.prepare_release import prepare_release
from colloquy.tasks.selection.statistics import (
    Prepared,
    fraction_of_words,
    note_odd_contexts,
    statistics_of,
)
from colloquy.tasks.selection.words import (
    WordSettings,
    choose_vocabulary,
    count_words,
    make_vectors,
)

SENTENCES = ".sentences"
"""File of the sentences for word2vec; it is removed when the dataset is complete."""


class Settings(WordSettings, CommonSettings):
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
    _refuse_unused(settings.explicit_fields(), corpus)
    report = Report()
    with atomic_directory(out) as directory:
        (directory / ARRAYS).mkdir()
        if reader is dam_release:
            report.add_file(source, "ids of DAM's release")
            prepared = prepare_release(source, settings, directory)
        else:
            prepared = _prepare_texts(corpus, source, settings, directory, report)
        splits = prepared.read_splits(directory)
        statistics = {name: statistics_of(split) for name, split in splits.items()}
        for name, num_unknown in prepared.num_unknown.items():
            statistics[name]["unknown_words"] = fraction_of_words(splits[name], num_unknown)
        examples = _show_examples(splits["train"], prepared.vocabulary) if "train" in splits else []

        contents = {VECTORS: prepared.vectors}
        if prepared.vocabulary:
            contents[VOCABULARY] = prepared.vocabulary
        num_words = len(prepared.vectors) - 1
        write(
            directory,
            contents,
            corpus,
            source,
            prepared.settings,
            {"vocabulary": num_words, **statistics},
            task="selection",
            **prepared.metadata.to_json(),
        )

    for name, split in splits.items():
        report.counts["contexts"] += statistics[name]["contexts"]
        report.counts["candidates"] += statistics[name]["lines"]
        note_odd_contexts(
            split,
            prepared.files[name],
            report,
            is_ranked=name != "train",
            has_lines=reader is smn,
        )
    if source:
        report.note_unread(source)
    if "dev" not in splits:
        dev = f"{source}/dev.txt"
        if reader is dam_release:
            dev = f"the second dict of {source}/data.pkl"
        report.note(
            f"{source} has no dev split, which training needs to choose weights, so train.py will "
            f"not train on {out}. Move about a tenth of the training contexts to {dev}"
        )
    report.print(examples)
    print_summary(statistics)
    print(f"{out}: {num_words:,} words, vectors {prepared.vectors.shape}")


def _refuse_unused(settings, corpus):
    """Refuses settings, `{name: value}`, that the files of a corpus have no use for."""
    reader = CORPORA[corpus].reader
    explicit = {name for name, value in settings.items() if value is not None}
    if reader is dam_release:
        for name in sorted(explicit - {"name", "eos_id"}):
            raise UserError(
                f"--{name} is for texts: the files of --corpus={corpus} contain ids, contexts and "
                "word vectors"
            )
    elif "eos_id" in explicit:
        raise UserError("--eos_id is for --corpus=dam-release, whose files contain ids")
    if reader is smn and "contexts" in explicit:
        raise UserError(
            f"--contexts is for conversations: the files of --corpus={corpus} contain their "
            "contexts and candidates"
        )


# === Texts ===


def _prepare_texts(corpus, source, settings, directory, report):
    """Prepares a corpus of texts; writes the arrays of its splits."""
    known_words = (
        Words.open(settings.vocabulary_of, "selection") if settings.vocabulary_of else None
    )
    # The files come after the settings: a wrong --vocabulary_of is refused at once.
    sources = _find_sources(corpus, source, settings, report)
    if known_words:
        text = read_dataset_metadata(known_words.metadata, known_words.path).text
        settings = settings.replace(tokenizer=text.tokenizer)
        vocabulary = known_words.vocabulary
        vectors = known_words.read_vectors()
    else:
        tokenizer = settings.tokenizer or CORPORA[corpus].reader.TOKENIZER
        text = TokenizerConfig(tokenizer=tokenizer, lower=tokenizer != WHITESPACE)
        settings = settings.replace(tokenizer=tokenizer)
        train = sources["train"]
        sentences = directory / SENTENCES
        joins_turns = settings.word2vec_text == "conversations"
        counts = count_words(train.read(), text, sentences, joins_turns)
        settings, vocabulary = choose_vocabulary(counts, settings, train.file)
        settings, vectors = make_vectors(counts, sentences, vocabulary, settings)
        sentences.unlink()

    num_unknown = {}
    for split in SPLITS:
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
        num_unknown={split: num_unknown[split] for split in sources},
    )


def _find_sources(corpus, directory, settings, report):
    """Returns the `Source` of each split that the corpus has."""
    reader = CORPORA[corpus].reader
    sources = {}
    if reader is smn:
        for split in SPLITS:
            file = reader.find_split(directory, split)
            if file:
                report.add_file(file, "lines of a label, the turns of a context, and a response")
                sources[split] = Source(file, functools.partial(reader.read, file, report))
    else:
        for name, split in read_splits(reader, directory, report).items():
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
            sources[name] = Source(split.file, functools.partial(iter, lines))
    return sources


def _show_examples(train, vocabulary):
    """The examples of the report: contexts of train with their positive response."""
    if vocabulary is None:
        return []
    positives = np.flatnonzero(train.label == 1)

    def show(place):
        line = positives[place]
        turns = as_texts(train.turns, train.turns_of(train.context_of_line[line]), vocabulary)
        [response] = as_texts(train.responses, [line], vocabulary)
        return " / ".join(turns), response

    return choose_examples(len(positives), show)
