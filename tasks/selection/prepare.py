"""Response selection: from a corpus's text files to a prepared dataset, see `tasks.selection.data`.

The corpus streams through files: memory holds its distinct words, their vectors and 1 byte for each
utterance.

The vocabulary and the word vectors are made from the *distinct utterances* of the training lines
with label 1. A context that grows line by line would otherwise count its first turn ten times, and
`min_count` would mean nothing. Negative responses are positive ones elsewhere in the corpus, so
they would only count words again.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools
import shutil
import sys
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from rich.progress import Progress

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.flat_arrays import numbering
from colloquy.data.prepared import (
    VECTORS,
    VOCABULARY,
    CommonSettings,
    filled_min_count,
    print_summary,
    write,
)
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, words_of
from colloquy.data.vocabulary import SPECIALS, Vocabulary
from colloquy.data.word_vectors import (
    append_vectors,
    load_text_vectors,
    passes,
    threads,
    train_word2vec,
)
from colloquy.engine.cluster import on_cluster
from colloquy.engine.vocabularies import Words
from colloquy.tasks.selection.data import ARRAYS, DATA, SPLITS, check_metadata, read_split
from colloquy.tasks.selection.ingest import (
    Utterances,
    blocks_of,
    blocks_on_cluster,
    conversations,
    encode,
    write_blocks,
)

PICKLED = 500_000  # most lines of a corpus that is written as `data.pkl` by default
PAPER_TURNS, PAPER_WORDS = 9, 50  # turns of a context and words of an utterance that DAM reads
BLOCK = 2**16  # utterances whose words are counted at once


class Settings(CommonSettings):
    """Settings of preparing a corpus; the defaults are the DAM paper's where it states them."""

    tokenizer: Literal[WHITESPACE, *TOKENIZERS] | None = None
    """Splits texts into words, also those that a user types later. Default: the corpus's,
    `whitespace` for words separated by spaces. `terms` splits as the logs of #ubuntu do, so that
    people can write `Hello there!`."""
    lower: bool = True
    """Makes texts lower case; not with the tokenizer `whitespace`."""
    min_count: Positive | None = None
    """Words that occur less often in the training utterances become `_UNK_`. Equal utterances count
    once. Default: 2, or 1 for fewer than 20,000 words."""
    hashed_words: Annotated[int, Field(ge=0, le=2**24)] = 0
    """Ids that unknown words get by their hash, for models with a lexical match; 0: none, as in
    DAM's release.
    """
    dimension: Positive = 200
    """Dimension of the word vectors; a file of `vectors` has its own."""
    word2vec_text: Literal["utterances", "conversations"] = "utterances"
    """Word2vec: text within which windows stay. With conversations, questions and answers share
    windows.
    """
    window: Positive = 10
    """Word2vec: context words to each side."""
    negative: Positive = 25
    """Word2vec: negative samples per word."""
    sample: Annotated[float, Field(ge=0)] = 1e-4
    """Word2vec: subsamples words above this frequency, a fraction of all words."""
    word2vec_epochs: Positive | None = None
    """Word2vec: passes over the text. Default: 20; fewer above 2.5 million words, at least one."""
    word2vec_workers: Positive | None = None
    """Word2vec: threads; with one, vectors repeat exactly. Default: one, or one per core above 10
    million words.
    """
    vectors: str | None = None
    """Text file of word2vec or GloVe vectors to use instead of training them."""
    general_vectors: str | None = None
    """File of word2vec or GloVe vectors, also .npz, appended to those of the corpus."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed for every random number generator."""
    candidates: NonNegative = 10
    """Candidates expected per context of dev and test, else a warning; 0: any number."""
    storage: Literal["auto", "pickle", "arrays", "both"] = "auto"
    """Files of the examples: `pickle`, data.pkl as in DAM's release; `arrays`, flat arrays that
    training reads from disk. auto: pickle up to 500,000 lines, then arrays."""


def prepare(corpus, source, out, settings, ray=False):
    """Prepares a corpus for response selection, see `data.prepared`.

    With `ray`, a Ray cluster reads the files, which all its machines find at the same path.
    """
    reader = CORPORA[corpus].reader
    given = Words.of(settings.vocabulary_of, "selection") if settings.vocabulary_of else None
    if given:
        text = check_metadata(given.metadata, given.path)["text"]
    else:
        tokenizer = settings.tokenizer or reader.TOKENIZER
        text = {"tokenizer": tokenizer, "lower": settings.lower and tokenizer != WHITESPACE}
    settings = settings.replace(**text)
    with atomic_directory(out) as directory, Progress() as progress:
        files = {split: reader.find_split(source, split) for split in SPLITS}
        arrays = directory / ARRAYS
        words = _read(reader, files, text, arrays, progress, ray)
        utterances = Utterances(arrays, words)
        if given:
            vocabulary, vectors = given.vocabulary, given.vectors()
        else:
            settings, vocabulary, counts = _vocabulary(files["train"], utterances, settings)
            sentences = utterances
            if settings.word2vec_text == "conversations":
                sentences = conversations(read_split(arrays, "train", len(words), "words"), words)
            settings, vectors = _word_vectors(
                sentences, counts, vocabulary, settings, directory, progress
            )
        splits, statistics = _encoded(
            arrays, files, vocabulary, words, len(vectors), settings.candidates
        )
        made = {VECTORS: vectors, VOCABULARY: vocabulary} | _stored(
            arrays, splits, vocabulary.eos_id, settings.storage
        )
        sizes = {"vocabulary": len(vocabulary), "distinct_training_utterances": len(utterances)}
        ids = {
            "eos_id": vocabulary.eos_id,
            "unk_id": vocabulary.unk_id or None,
            "hashed_words": vocabulary.hashed,
        }
        write(directory, made, corpus, source, settings, {**sizes, **statistics}, **ids, text=text)
    print_summary(statistics)
    print(f"{out}: {len(vocabulary):,} words, vectors {vectors.shape}")
    if "dev" not in statistics:
        lacks = f"{source} has no dev file, which training needs to choose weights, so train.py will not train on {out}"
        how = f"Move about a tenth of the training contexts to {source}/dev.txt"
        print(f"warning: {lacks}. {how}", file=sys.stderr)


def _read(reader, files, text, arrays, progress, ray):
    """Writes the lines of all files as arrays of numbered words; returns the list of words."""

    def opener(path, mode):
        return progress.open(path, mode, description=f"reading {path.name}")

    arrays.mkdir()
    words, tokenize = numbering(), functools.partial(words_of, **text)
    with on_cluster("--ray") if ray else contextlib.nullcontext() as results:
        for split, file in files.items():
            blocks = ()
            if file:
                source = reader, file, tokenize
                blocks = blocks_on_cluster(results, *source) if ray else blocks_of(*source, opener)
            write_blocks(blocks, arrays, split, words)
    return list(words)


def _vocabulary(file, utterances, settings):
    """The settings with `min_count` filled in, the vocabulary of the training utterances, `{word:
    count}` of these.
    """
    counts = utterances.counts()
    if not counts:
        raise UserError(f"{file}: expected lines with label 1. Received: none")
    settings = settings.replace(min_count=filled_min_count(settings.min_count, counts))
    vocabulary = Vocabulary.of_counts(counts, settings.min_count)
    if len(vocabulary) == len(SPECIALS):
        raise UserError(
            f"{file}: expected a word that occurs {settings.min_count} times (--min_count). Received: none"
        )
    return settings, dataclasses.replace(vocabulary, hashed=settings.hashed_words), counts


def _word_vectors(sentences, counts, vocabulary, settings, directory, progress):
    """The settings, with the passes and threads of word2vec filled in, and the vectors."""
    found = {}
    if settings.vectors:
        vectors, found[settings.vectors] = load_text_vectors(
            settings.vectors, vocabulary, settings.seed
        )
    else:
        known = sum(counts[word] for word in vocabulary.words[len(SPECIALS) :])
        epochs, workers = (
            settings.word2vec_epochs or passes(known),
            settings.word2vec_workers or threads(known),
        )
        settings = settings.replace(word2vec_epochs=epochs, word2vec_workers=workers)
        task = progress.add_task("word vectors", total=epochs)
        vectors = train_word2vec(
            sentences,
            vocabulary,
            epochs=epochs,
            workers=workers,
            after_epoch=functools.partial(progress.advance, task),
            directory=directory,
            **settings.model_dump(include={"dimension", "window", "negative", "sample", "seed"}),
        )
    if settings.general_vectors:
        vectors, found[settings.general_vectors] = append_vectors(
            vectors, settings.general_vectors, vocabulary
        )
    for file, number in found.items():
        print(f"{file}: vectors of {number:,} of {len(vocabulary) - len(SPECIALS):,} words")
    return settings, vectors


def _encoded(arrays, files, vocabulary, words, rows, candidates):
    """The splits with their words as ids, and the statistics of those that have a file."""
    ids = vocabulary.encode(words)
    is_unknown = np.array([id == vocabulary.unk_id or id > len(vocabulary) for id in ids], bool)
    splits, statistics = {}, {}
    for name, file in files.items():
        unknown = encode(arrays, name, ids, is_unknown)
        split = splits[name] = read_split(arrays, name, rows + vocabulary.hashed)
        if file:
            statistics[name] = {"file": file.name, **_statistics(split, unknown)}
            sizes = np.bincount(split.context)
            unexpected = (
                np.flatnonzero(sizes != candidates) if name != "train" and candidates else ()
            )
            if len(unexpected):
                line = np.searchsorted(split.context, unexpected[0]) + 1
                expected = f"expected {candidates} candidates per context (--candidates)"
                others = f"{len(unexpected)} of {len(sizes)} contexts do not have {candidates}"
                received = f"Received: {sizes[unexpected[0]]}; {others}"
                print(f"warning: {file}, line {line}: {expected}. {received}", file=sys.stderr)
    return splits, statistics


def _stored(arrays, splits, eos_id, storage):
    """The content of `data.pkl`, if it is to be written; removes the arrays unless they are to
    stay.

    Consecutive equal contexts are one list, also in the pickle.
    """
    if storage == "auto":
        storage = "pickle" if sum(map(len, splits.values())) <= PICKLED else "arrays"
    if storage == "arrays":
        return {}
    lists = []
    for split in splits.values():
        contexts, responses = split.texts(np.arange(len(split)), eos_id)
        lists.append({"y": split.label.tolist(), "c": contexts, "r": responses})
    if storage == "pickle":
        shutil.rmtree(arrays)
    return {DATA: tuple(lists)}


def _statistics(split, unknown):
    """Statistics of a split with `unknown` words outside the vocabulary; each context counts once.

    Only lengths are read: what is read of a mapped array counts as memory.
    """
    turns, words = split.context_turns, split.turns.lengths
    candidates, positive = (
        np.bincount(split.context),
        np.bincount(split.context, weights=split.label),
    )
    sizes = collections.Counter(candidates.tolist()).most_common(3)
    found = {"lines": len(split), "contexts": len(candidates)}
    for name, counts in (("turns", turns), ("words", words)):
        found[f"{name}_median"] = float(np.percentile(counts, 50))
        found[f"{name}_95"] = round(float(np.percentile(counts, 95)), 2)
    return {
        **found,
        "contexts_over_9_turns": round(float(np.mean(turns > PAPER_TURNS)), 4),
        "turns_over_50_words": round(float(np.mean(words > PAPER_WORDS)), 4),
        "unknown_words": round(unknown / int(words.sum() + split.responses.lengths.sum()), 4),
        "contexts_without_positive": int(np.sum(positive == 0)),
        "contexts_without_negative": int(np.sum(positive == candidates)),
        "candidates_x_contexts": ", ".join(f"{size} x {count:,}" for size, count in sizes),
    }


def document_weights(split, ids, stems=None):
    """Inverse document frequencies, scaled to at most 1, float32 `(ids,)`; a document is one
    utterance of the split.

        w(i) = log((1 + n) / (1 + df(i))) / log(1 + n)

    `stems`, int `(ids,)`, has the id that each counts as, see `equal_stems`.
    """
    frequency = np.zeros(ids, np.int64)
    for part in itertools.chain(split.turns.parts(BLOCK), split.responses.parts(BLOCK)):
        part = part if stems is None else dataclasses.replace(part, ids=stems[part.ids])
        frequency += part.document_frequency(ids)
    n = len(split.turns) + len(split.responses)
    return (np.log((1 + n) / (1 + frequency)) / np.log(1 + n)).astype(np.float32)


def equal_stems(vocabulary, ids):
    """For each of `ids` ids the first whose word has the same stem, int32 `(ids,)`; Porter (1980),
    for English.

    Ids without a word, padding and hashed ones, keep their own.
    """
    from gensim.parsing.porter import PorterStemmer  # gensim takes a second to load

    stemmer, first = PorterStemmer(), {}
    found = np.arange(ids, dtype=np.int32)
    for id, word in enumerate(vocabulary.words, 1):
        found[id] = first.setdefault(stemmer.stem(word), id)
    return found
