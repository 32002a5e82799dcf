"""Response selection: from a corpus to a prepared dataset.

The files of a dataset are described in `data.prepared` and `tasks.selection.arrays`.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA, dam_release, smn
from colloquy.data.prepared import VECTORS, VOCABULARY, CommonSettings, write
from colloquy.data.report import Report, choose_examples, print_summary
from colloquy.tasks.selection.arrays import read_split
from colloquy.tasks.selection.data import ARRAYS, as_texts
from colloquy.tasks.selection.prepare_release import prepare_release
from colloquy.tasks.selection.prepare_texts import prepare_texts
from colloquy.tasks.selection.statistics import note_odd_contexts, statistics_of
from colloquy.tasks.selection.words import WordSettings


class Settings(WordSettings, CommonSettings):
    """Settings of preparing a corpus; the defaults are the DAM paper's where it states them."""

    contexts: NonNegative = 12_000
    """Corpora of conversations: contexts drawn for train; 0: one for every response."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed for every random number generator."""
    eos_id: Positive | None = None
    """dam-release: the id of `_EOS_`. Default: that of the published corpus --name, 28270 for
    ubuntu-v1 and 1 for douban."""


def prepare(corpus, source, out, settings):
    """Prepares a corpus for response selection.

    Args:
        corpus: Its name, a key of `CORPORA`.
        source: Its directory or file; `None` for a corpus that Colloquy has.
        out: Directory to write.
        settings: `Settings`.
    """
    _refuse_unused(settings, corpus)
    reader = CORPORA[corpus].reader
    report = Report()
    with atomic_directory(out) as directory:
        (directory / ARRAYS).mkdir()
        if reader is dam_release:
            report.add_file(source, "ids of DAM's release")
            prepared = prepare_release(source, settings, directory)
        else:
            prepared = prepare_texts(corpus, source, settings, directory, report)

        # The splits that the corpus has, mapped from the arrays that were just written.
        num_ids = len(prepared.vectors) + prepared.metadata.hashed_words
        splits = {}
        for name in prepared.files:
            splits[name] = read_split(directory / ARRAYS, name, num_ids)
        statistics = statistics_of(splits, prepared.num_unknown)

        num_words = len(prepared.vectors) - 1  # row 0 of the vectors is padding
        contents = {VECTORS: prepared.vectors}
        if prepared.vocabulary:
            contents[VOCABULARY] = prepared.vocabulary
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
        report.counts["contexts"] += split.num_contexts
        report.counts["candidates"] += len(split)
        note_odd_contexts(split, name, prepared.files[name], report, has_lines=reader is smn)
    if source:  # chitchat needs none
        report.note_unread(source)
    if "dev" not in splits:
        _note_missing_dev(report, reader, source, out)
    report.print(_examples(splits, prepared.vocabulary))
    print_summary(statistics)
    print(f"{out}: {num_words:,} words, vectors {prepared.vectors.shape}")


def _refuse_unused(settings, corpus):
    """Refuses settings that the files of a corpus have no use for."""
    reader = CORPORA[corpus].reader
    fields = settings.explicit_fields()
    names = sorted(name for name in fields if fields[name] is not None)
    if reader is dam_release:
        unused = [name for name in names if name not in ("name", "eos_id")]
        if unused:
            raise UserError(
                f"--{unused[0]} is for texts: the files of --corpus={corpus} contain ids, contexts "
                "and word vectors"
            )
    elif "eos_id" in names:
        raise UserError("--eos_id is for --corpus=dam-release, whose files contain ids")
    if reader is smn and "contexts" in names:
        raise UserError(
            f"--contexts is for conversations: the files of --corpus={corpus} contain their "
            "contexts and candidates"
        )


def _note_missing_dev(report, reader, source, out):
    destination = f"{source}/dev.txt"
    if reader is dam_release:
        destination = f"the second dict of {source}/data.pkl"
    report.note(
        f"{source} has no dev split, which training needs to choose weights, so train.py will "
        f"not train on {out}. Move about a tenth of the training contexts to {destination}"
    )


def _examples(splits, vocabulary):
    """The examples of the report: contexts of train, each with a correct response."""
    if "train" not in splits or vocabulary is None:
        return []
    train = splits["train"]
    positives = np.flatnonzero(train.label == 1)

    def make_example(number):
        line = positives[number]
        turns = as_texts(train.turns, train.turns_of(train.context_of_line[line]), vocabulary)
        [response] = as_texts(train.responses, [line], vocabulary)
        return " / ".join(turns), response

    return choose_examples(len(positives), make_example)
