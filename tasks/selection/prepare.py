"""Response selection: from a corpus to a prepared dataset, see `tasks.selection.data`.

The vocabulary and the word vectors are made from the *distinct utterances* of the training lines
with label 1. A context that grows line by line would otherwise count its first turn ten times, and
`min_count` would mean nothing. Negative responses are positive ones elsewhere in the corpus, so
they would only count words again.
"""

import collections
import dataclasses
import functools
import pathlib
import shutil
import sys
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field
from rich.progress import Progress

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA, dam_release, smn
from colloquy.data.corpora.splits import read_splits
from colloquy.data.prepared import (
    VECTORS,
    VOCABULARY,
    CommonSettings,
    checked,
    filled_min_count,
    print_summary,
    read_vectors,
    write,
)
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, words_of
from colloquy.data.vocabulary import SPECIALS, Vocabulary
from colloquy.data.word_vectors import (
    append_vectors,
    default_epochs,
    default_workers,
    load_text_vectors,
    train_word2vec,
)
from colloquy.engine.cluster import on_cluster
from colloquy.engine.vocabularies import Words
from colloquy.tasks.selection.contexts import draw_lines
from colloquy.tasks.selection.data import (
    ARRAY_NAMES,
    ARRAYS,
    DATA,
    SPLITS,
    check_metadata,
    ids_dtype,
    path_of,
    read_split,
    split_arrays,
)
from colloquy.tasks.selection.ingest import (
    candidates_per_context,
    check_candidates,
    check_positives,
    distinct_utterances,
    encode_lines,
    encode_on_cluster,
    joined_conversations,
    write_arrays,
)
from colloquy.tasks.selection.recipes import PUBLISHED_CORPORA
from colloquy.tasks.selection.split import SelectionSplit

PAPER_TURNS = 9
"""Turns of a context that DAM reads."""
PAPER_WORDS = 50
"""Words of an utterance that DAM reads."""


class Settings(CommonSettings):
    """Settings of preparing a corpus; the defaults are the DAM paper's where it states them."""

    tokenizer: Literal[WHITESPACE, *TOKENIZERS] | None = None
    """Splits texts into words, also those that a user types later. Default: the corpus's,
    `whitespace` for words separated by spaces. `terms` splits as the logs of #ubuntu do, so that
    people can write `Hello there!`."""
    lower: bool = True
    """Makes texts lower case; not with the tokenizer `whitespace`."""
    contexts: NonNegative = 12_000
    """Corpora of conversations: contexts drawn for train; 0: one for every response."""
    negatives: Positive = 3
    """Corpora of conversations: negative responses drawn for each context of train; one of dev and
    test has 9."""
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
    """Candidates expected per context of dev and test, else a warning; equal contexts that follow
    each other are cut at this number if it is given, or else at that of all others. 0: any
    number."""
    eos_id: Positive | None = None
    """dam-release: the id of `_EOS_`. Default: that of the published corpus --name, 28270 for
    ubuntu-v1 and 1 for douban."""
    max_pickle_gb: Annotated[float, Field(ge=0)] = 0.5
    """Gigabytes of ids up to which the examples are written as data.pkl, which training reads into
    memory. Larger ones are flat arrays, which training maps from disk."""


class Source(NamedTuple):
    """The lines of a split."""

    file: pathlib.Path
    """Where they come from, for messages."""
    read: Callable
    """Function without arguments that yields each `data.corpora.smn.Line`; called twice."""


def prepare(corpus, source, out, settings, ray=False):
    """Prepares a corpus for response selection, see `data.prepared`.

    With `ray`, a Ray cluster encodes the files, which all its machines find at the same path.
    """
    if ray and CORPORA[corpus].reader is not smn:
        raise UserError("--ray reads files of --corpus=smn. Received: --corpus=" + corpus)
    if CORPORA[corpus].reader in (smn, dam_release):
        for name in ("contexts", "negatives"):
            if name in settings.explicit_fields():
                reason = f"the files of --corpus={corpus} contain their contexts and candidates"
                raise UserError(f"--{name} is for conversations: {reason}")
    with atomic_directory(out) as directory, Progress() as progress:
        if CORPORA[corpus].reader is dam_release:
            prepared = _prepare_release(source, settings, directory)
        else:
            prepared = _prepare_texts(corpus, source, settings, directory, progress, ray)
        sizes = {"vocabulary": len(prepared.vectors) - 1, **prepared.sizes}
        files = {VECTORS: prepared.vectors}
        if prepared.vocabulary:
            files[VOCABULARY] = prepared.vocabulary
        files.update(_load_small_arrays(directory / ARRAYS, settings.max_pickle_gb))
        write(
            directory,
            files,
            corpus,
            source,
            prepared.settings,
            {**sizes, **prepared.statistics},
            task="selection",
            **prepared.metadata,
        )
    print_summary(prepared.statistics)
    print(f"{out}: {sizes['vocabulary']:,} words, vectors {prepared.vectors.shape}")
    if "dev" not in prepared.statistics:
        lacks = f"{source} has no dev file, which training needs to choose weights"
        consequence = f"so train.py will not train on {out}"
        how = f"Move about a tenth of the training contexts to {source}/dev.txt"
        print(f"warning: {lacks}, {consequence}. {how}", file=sys.stderr)


class Prepared(NamedTuple):
    """What `prepare` writes beside the arrays."""

    settings: Settings
    vocabulary: Vocabulary | None
    vectors: np.ndarray
    sizes: dict
    statistics: dict
    metadata: dict


# === Texts ===


def _prepare_texts(corpus, source, settings, directory, progress, ray):
    """Prepares a corpus of texts; writes the arrays of its splits."""
    words_from = None
    if settings.vocabulary_of:
        words_from = Words.of(settings.vocabulary_of, "selection")
        text = check_metadata(words_from.metadata, words_from.path)["text"]
    else:
        tokenizer = settings.tokenizer or CORPORA[corpus].reader.TOKENIZER
        text = {"tokenizer": tokenizer, "lower": settings.lower and tokenizer != WHITESPACE}
    # The files come after the settings: a wrong --vocabulary_of is refused at once.
    sources = _find_sources(corpus, source, settings, progress)
    settings = settings.replace(**text)
    tokenize = functools.partial(words_of, **text)

    sizes = {}
    if words_from:
        vocabulary = words_from.vocabulary
        vectors = words_from.vectors()
    else:
        train = sources["train"]
        settings, vocabulary, counts, num_utterances = _count_words(train, tokenize, settings)
        sizes["distinct_training_utterances"] = num_utterances
        if settings.word2vec_text == "conversations":
            sentences = joined_conversations(train.read(), tokenize)
        else:
            sentences = distinct_utterances(train.read(), tokenize)
        settings, vectors = _word_vectors(
            sentences, counts, vocabulary, settings, directory, progress
        )

    num_ids = len(vectors) + vocabulary.hashed
    statistics = {}
    (directory / ARRAYS).mkdir()
    for split in SPLITS:
        # In train, contexts may have any number of responses.
        candidates = 0 if split == "train" else settings.candidates
        cut_at = candidates
        if candidates and split in sources and "candidates" not in settings.explicit_fields():
            cut_at = candidates_per_context(line.turns for line in sources[split].read())
        blocks = _encoded_blocks(sources.get(split), tokenize, vocabulary, cut_at, ray)
        unknown = write_arrays(blocks, directory / ARRAYS, split, ids_dtype(num_ids), vocabulary)
        if split in sources:
            examples = read_split(directory / ARRAYS, split, num_ids)
            file = sources[split].file
            statistics[split] = {"file": file.name, **_statistics(examples, unknown)}
            if split == "train":
                check_positives(examples, file)
            elif candidates:
                check_candidates(examples, file, candidates)
    metadata = {
        "eos_id": vocabulary.eos_id,
        "unk_id": vocabulary.unk_id or None,
        "hashed_words": vocabulary.hashed,
        "text": text,
    }
    return Prepared(settings, vocabulary, vectors, sizes, statistics, metadata)


def _find_sources(corpus, directory, settings, progress):
    """Returns the `Source` of each split that the corpus has."""
    reader = CORPORA[corpus].reader
    sources = {}
    if reader is smn:

        def opener(path, mode):
            return progress.open(path, mode, description=f"reading {path.name}")

        for split in SPLITS:
            file = reader.find_split(directory, split)
            if file:
                sources[split] = Source(file, functools.partial(reader.read, file, opener))
    else:
        for name, split in read_splits(reader, directory).items():
            lines = draw_lines(
                split.conversations,
                name,
                contexts=settings.contexts,
                negatives=settings.negatives,
                seed=settings.seed,
            )
            sources[name] = Source(split.file, functools.partial(iter, lines))
    return sources


def _encoded_blocks(source, tokenize, vocabulary, candidates, ray):
    if source is None:
        yield dict.fromkeys(ARRAY_NAMES, ())
    elif ray:
        with on_cluster("--ray") as results:
            yield from encode_on_cluster(
                results, smn, source.file, tokenize, vocabulary, candidates
            )
    else:
        yield from encode_lines(source.read(), tokenize, vocabulary, candidates)


def _count_words(train, tokenize, settings):
    """Counts the words of the distinct training utterances.

    Returns:
        The settings with `min_count` filled in.
        The vocabulary.
        `{word: count}`.
        The number of utterances.
    """
    counts = collections.Counter()
    num_utterances = 0
    for words in distinct_utterances(train.read(), tokenize):
        counts.update(words)
        num_utterances += 1
    if not counts:
        raise UserError(f"{train.file}: expected lines with label 1. Received: none")
    settings = settings.replace(min_count=filled_min_count(settings.min_count, counts))
    vocabulary = Vocabulary.of_counts(counts, settings.min_count)
    if len(vocabulary) == len(SPECIALS):
        expected = f"expected a word that occurs {settings.min_count} times (--min_count)"
        raise UserError(f"{train.file}: {expected}. Received: none")
    vocabulary = dataclasses.replace(vocabulary, hashed=settings.hashed_words)
    return settings, vocabulary, counts, num_utterances


def _word_vectors(sentences, counts, vocabulary, settings, directory, progress):
    """Returns the settings, with the passes and threads of word2vec filled in, and the vectors."""
    found_by_file = {}
    if settings.vectors:
        vectors, found = load_text_vectors(settings.vectors, vocabulary, settings.seed)
        found_by_file[settings.vectors] = found
    else:
        num_known = sum(counts[word] for word in vocabulary.words[len(SPECIALS) :])
        settings = settings.replace(
            word2vec_epochs=settings.word2vec_epochs or default_epochs(num_known),
            word2vec_workers=settings.word2vec_workers or default_workers(num_known),
        )
        task = progress.add_task("word vectors", total=settings.word2vec_epochs)
        vectors = train_word2vec(
            sentences,
            vocabulary,
            dimension=settings.dimension,
            window=settings.window,
            negative=settings.negative,
            sample=settings.sample,
            seed=settings.seed,
            epochs=settings.word2vec_epochs,
            workers=settings.word2vec_workers,
            after_epoch=functools.partial(progress.advance, task),
            directory=directory,
        )
    if settings.general_vectors:
        vectors, found = append_vectors(vectors, settings.general_vectors, vocabulary)
        found_by_file[settings.general_vectors] = found
    num_words = len(vocabulary) - len(SPECIALS)
    for file, found in found_by_file.items():
        print(f"{file}: vectors of {found:,} of {num_words:,} words")
    return settings, vectors


# === The release of DAM ===


def _prepare_release(source, settings, directory):
    """Prepares a corpus of ids; writes the arrays of its splits."""
    # The vectors first: a wrong id need not wait for the examples, which take minutes to read.
    file = pathlib.Path(source) / "data.pkl"
    vectors = read_vectors(pathlib.Path(source) / VECTORS)
    eos_id = settings.eos_id or PUBLISHED_CORPORA.get(settings.name)
    if eos_id is None:
        how = "give --eos_id, or --name=ubuntu-v1 (28270) or --name=douban (1)"
        raise UserError(f"{file} lacks the id of _EOS_: {how}")
    if eos_id >= len(vectors):
        expected = f"expected an id of _EOS_ from 1 to {len(vectors) - 1}"
        raise UserError(f"{source}: {expected}. Received: {eos_id}")
    splits = dam_release.read(source)
    vocabulary = dam_release.read_vocabulary(source, eos_id)
    if vocabulary and len(vocabulary) + 1 != len(vectors):
        expected = f"expected {len(vectors) - 1} words, one per vector"
        raise UserError(f"{source}/word2id: {expected}. Received: {len(vocabulary)}")
    unk_id = vocabulary.unk_id if vocabulary else 0

    statistics = {}
    (directory / ARRAYS).mkdir()
    for name, (contexts, responses, labels) in splits.items():
        with checked(file, f"lists of ids in {name}"):
            candidates = 0 if name == "train" else settings.candidates
            if candidates and "candidates" not in settings.explicit_fields():
                candidates = candidates_per_context(list(context) for context in contexts)
            split = SelectionSplit.of(contexts, responses, labels, eos_id, candidates)
        _check_ids(split, f"{file}, {name}", eos_id, len(vectors))
        for array, values in split_arrays(split, len(vectors)).items():
            np.save(path_of(directory / ARRAYS, name, array), values)
        if len(split):
            unknown = 0
            if unk_id:
                unknown = int(np.sum(split.turns.flat() == unk_id))
                unknown += int(np.sum(split.responses.flat() == unk_id))
            statistics[name] = {"file": file.name, **_statistics(split, unknown)}
    settings = settings.replace(eos_id=eos_id)
    metadata = {"eos_id": eos_id, "unk_id": unk_id or None, "hashed_words": 0}
    return Prepared(settings, vocabulary, vectors, {}, statistics, metadata)


def _check_ids(split, where, eos_id, num_ids):
    for ids in (split.turns.ids, split.responses.ids):
        if len(ids) and not 0 <= ids.min() <= ids.max() < num_ids:
            received = f"from {ids.min()} to {ids.max()}"
            raise UserError(f"{where}: expected ids from 0 to {num_ids - 1}. Received: {received}")
    if len(split) and not (split.turns.ids == eos_id).any():
        raise UserError(f"{where}: expected contexts with the id of _EOS_. Received: {eos_id}")


# === Files ===


def _load_small_arrays(arrays, max_pickle_gb):
    """Returns the content of `data.pkl` if the ids are few, and removes the arrays; else `{}`."""
    files = [path_of(arrays, split, "turn_ids") for split in SPLITS]
    files += [path_of(arrays, split, "response_ids") for split in SPLITS]
    if sum(file.stat().st_size for file in files) > max_pickle_gb * 1e9:
        return {}
    data = {}
    for split in SPLITS:
        data[split] = {name: np.load(path_of(arrays, split, name)) for name in ARRAY_NAMES}
    shutil.rmtree(arrays)
    return {DATA: data}


def _statistics(split, unknown):
    """Statistics of a split with `unknown` words outside the vocabulary; each context counts once.

    Only lengths are read: what is read of a mapped array counts as memory.
    """
    turns = split.context_turns
    words = split.turns.lengths
    candidates = np.bincount(split.context)
    positive = np.bincount(split.context, weights=split.label)
    sizes = collections.Counter(candidates.tolist()).most_common(3)
    num_words = int(words.sum() + split.responses.lengths.sum())
    return {
        "lines": len(split),
        "contexts": len(candidates),
        "turns_median": float(np.percentile(turns, 50)),
        "turns_95": round(float(np.percentile(turns, 95)), 2),
        "words_median": float(np.percentile(words, 50)),
        "words_95": round(float(np.percentile(words, 95)), 2),
        "contexts_over_9_turns": round(float(np.mean(turns > PAPER_TURNS)), 4),
        "turns_over_50_words": round(float(np.mean(words > PAPER_WORDS)), 4),
        "unknown_words": round(unknown / num_words, 4),
        "contexts_without_positive": int(np.sum(positive == 0)),
        "contexts_without_negative": int(np.sum(positive == candidates)),
        "candidates_x_contexts": ", ".join(f"{size} x {count:,}" for size, count in sizes),
    }
