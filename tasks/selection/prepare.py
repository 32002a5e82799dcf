"""Response selection: from a corpus's text files to a prepared dataset, see `data.prepared`.

    data.pkl   (train, dev, test), each {"y": labels, "c": contexts, "r": responses}, as word ids; in a context each
               turn is followed by the id of `_EOS_`
    arrays/    the same as flat arrays, see `tasks.selection.arrays`

`data.pkl` and `word_embedding.pkl` are of the form of DAM's release, which can train on them. A corpus of more lines
than `PICKLED` has arrays instead: they are read without taking memory.

The corpus streams through files: memory is taken by its distinct words, their vectors and 1 byte for each utterance.

The vocabulary and the word vectors are made from the *distinct utterances* of the training lines
with label 1, each once: a context that grows line by line would otherwise count its first turn ten
times, and `min_count` would mean nothing. Negative responses are positive ones elsewhere in the corpus,
so they would only count words again.
"""

import contextlib
import dataclasses
import functools
import shutil
import sys

import numpy as np
from rich.progress import Progress

from base.files import UserError, atomic_directory
from data.cluster import on_cluster
from data.corpora import CORPORA
from data.flat_arrays import numbering
from data.prepared import VECTORS, VOCABULARY, print_summary, write
from data.tokenizers import WHITESPACE, words_of
from data.vocabulary import SPECIALS, Vocabulary
from data.word_vectors import append_vectors, load_text_vectors, passes, threads, train_word2vec
from engine.vocabularies import Words
from tasks.selection.arrays import ARRAYS, read_split
from tasks.selection.ingest import (
    Utterances,
    blocks_of,
    blocks_on_cluster,
    clear,
    conversations,
    encode,
    write_blocks,
)
from tasks.selection.statistics import ROWS, statistics_of, warn_of_candidates
from tasks.selection.text import WHITESPACE_TEXT, check_text

SPLITS = ("train", "dev", "test")
DATA = "data.pkl"
PICKLED = 500_000
"""Lines of a corpus that is written as `data.pkl` unless told otherwise."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a corpus is prepared; the defaults are the DAM paper's where it says."""

    name: str | None = None
    """Name of the corpus in tables, and in `results/published.json` where it has published scores; `None`: that of the
    source directory."""
    tokenizer: str | None = None
    """`data.tokenizers.WHITESPACE` or a key of `TOKENIZERS`; `None`: that of the corpus, whose words are separated by
    white space already."""
    lower: bool = True
    """Whether texts are made lower case, unless they are split at white space alone."""
    min_count: int = 2
    """Words that occur less often in the distinct training utterances are `_UNK_`."""
    hashed_words: int = 0
    """Ids for words that are not in the vocabulary, by their hash, so that a model with `lexical` match can tell
    whether two are the same; 0: all are `_UNK_`, as DAM's release has it."""
    dimension: int = 200
    """Dimension of the word vectors; a file of `vectors` has its own."""
    word2vec_text: str = "utterances"
    """Word2vec: what a window stays within, each distinct training utterance, or with `"conversations"` a conversation
    from its first turn to its last, so that words of a question and of its answer come together."""
    window: int = 10
    """Word2vec: context words to each side."""
    negative: int = 25
    """Word2vec: negative samples per word."""
    sample: float = 1e-4
    """Word2vec: words above this frequency, a fraction of all words, are subsampled."""
    word2vec_epochs: int | None = None
    """Word2vec: passes over the distinct training utterances; `None`: see `data.word_vectors.passes`."""
    word2vec_workers: int | None = None
    """Word2vec: threads; with one, vectors repeat exactly with their seed. `None`: see `data.word_vectors.threads`."""
    vectors: str | None = None
    """Text file of word vectors to take instead of training them."""
    general_vectors: str | None = None
    """File of word vectors, text or `.npz`, that each word has beside its own of the corpus; `None`: it has one."""
    seed: int = 1
    """Seed for every random number generator."""
    vocabulary_of: str | None = None
    """Run or prepared dataset whose words, tokenizer and word vectors are taken, so that a model of the one can score
    what is prepared or be trained on it; `None`: the corpus's own."""
    candidates: int = 10
    """Candidates that each context of dev or test should have, else a warning; 0: any number."""
    storage: str = "auto"
    """`pickle`: examples are written as `data.pkl`, `arrays`: as flat arrays, `both`; `auto`: a pickle of up to
    `PICKLED` lines, else arrays."""


def prepare(corpus, source, out, settings, ray=False):
    """Prepares a corpus for response selection, see `data.prepared`.

    Args:
        corpus, source, out, settings: See there.
        ray: Whether a Ray cluster reads the files, which all its machines then find at the same path.
    """
    reader = CORPORA[corpus].reader
    given = Words.of(settings.vocabulary_of, "selection") if settings.vocabulary_of else None
    if given:
        text = check_text(given.facts.get("text", WHITESPACE_TEXT), given.path)
    else:
        tokenizer = settings.tokenizer or reader.TOKENIZER
        text = {"tokenizer": tokenizer, "lower": settings.lower and tokenizer != WHITESPACE}
    settings = dataclasses.replace(settings, **text)
    with atomic_directory(out) as directory, Progress() as progress:
        files = {split: reader.find_split(source, split) for split in SPLITS}
        if files["dev"] is None:
            print(f"warning: {source} has no dev file: train.py will not train on {out}", file=sys.stderr)
        arrays = directory / ARRAYS
        arrays.mkdir()
        words = numbering()

        def opener(path, mode):
            return progress.open(path, mode, description=f"reading {path.name}")

        with on_cluster("--ray") if ray else contextlib.nullcontext() as results:
            for split, file in files.items():
                how = (reader, file, functools.partial(words_of, **text), split == "train")
                blocks = blocks_on_cluster(results, *how) if ray else blocks_of(*how, opener)
                write_blocks(blocks if file else [], arrays, split, words)
        utterances = Utterances(arrays, words)
        if given:
            vocabulary, vectors = given.vocabulary, given.vectors()
        else:
            counts = utterances.counts()
            vocabulary = _vocabulary(files["train"], counts, settings)
            sentences = utterances if settings.word2vec_text == "utterances" else conversations(arrays, words)
            settings, vectors = _word_vectors(sentences, counts, vocabulary, settings, directory, progress)
            if settings.general_vectors:
                vectors, found = append_vectors(vectors, settings.general_vectors, vocabulary)
                print(f"{settings.general_vectors}: vectors of {found:,} of {len(vocabulary) - 2:,} words")
        splits, unknown = _encoded(arrays, vocabulary, words, len(vectors))
        statistics = _statistics(files, splits, unknown, settings.candidates)
        made = {VECTORS: vectors, VOCABULARY: vocabulary} | _stored(arrays, splits, vocabulary.eos_id, settings.storage)
        sizes = {"vocabulary": len(vocabulary), "distinct_training_utterances": len(utterances)}
        ids = {"eos_id": vocabulary.eos_id, "unk_id": vocabulary.unk_id or None, "hashed_words": vocabulary.hashed}
        write(directory, made, corpus, source, settings, {**sizes, **statistics}, **ids, text=text)
    print_summary(statistics, ROWS, lambda split: f"{split}: {statistics[split]['file']}")
    print(f"{out}: {len(vocabulary):,} words, vectors {vectors.shape}")


# === Steps ===


def _vocabulary(file, counts, settings):
    if not counts:
        raise UserError(f"{file}: expected lines with label 1. Received: none")
    vocabulary = Vocabulary.of_counts(counts, settings.min_count)
    if len(vocabulary) == len(SPECIALS):
        raise UserError(f"{file}: expected a word that occurs {settings.min_count} times (--min_count). Received: none")
    return dataclasses.replace(vocabulary, hashed=settings.hashed_words)


def _word_vectors(sentences, counts, vocabulary, settings, directory, progress):
    """The settings with what they left open, and the vectors."""
    if settings.vectors:
        vectors, found = load_text_vectors(settings.vectors, vocabulary, settings.seed)
        print(f"{settings.vectors}: vectors of {found:,} of {len(vocabulary) - 2:,} words")
        return settings, vectors
    known = sum(counts[word] for word in vocabulary.words if word not in SPECIALS)
    epochs, workers = settings.word2vec_epochs or passes(known), settings.word2vec_workers or threads(known)
    task = progress.add_task("word vectors", total=epochs)
    vectors = train_word2vec(
        sentences,
        vocabulary,
        dimension=settings.dimension,
        window=settings.window,
        negative=settings.negative,
        sample=settings.sample,
        epochs=epochs,
        seed=settings.seed,
        workers=workers,
        after_epoch=functools.partial(progress.advance, task),
        directory=directory,
    )
    return dataclasses.replace(settings, word2vec_epochs=epochs, word2vec_workers=workers), vectors


def _encoded(arrays, vocabulary, words, rows):
    """The splits, their words as ids, and how many words of each are unknown."""
    ids = vocabulary.encode(words)
    unknown = np.array([id == vocabulary.unk_id or id > len(vocabulary) for id in ids], bool)
    counts = {split: encode(arrays, split, ids, unknown) for split in SPLITS}
    clear(arrays)
    return {split: read_split(arrays, split, rows + vocabulary.hashed) for split in SPLITS}, counts


def _statistics(files, splits, unknown, candidates):
    """Statistics of each split that has lines; warns where dev or test have other numbers of candidates."""
    statistics = {}
    for name, split in splits.items():
        if len(split):
            statistics[name] = {"file": files[name].name, **statistics_of(split, unknown[name])}
            if name != "train":
                warn_of_candidates(files[name], split, candidates)
    return statistics


def _stored(arrays, splits, eos_id, storage):
    """What of `data.pkl` is to be written; the arrays are removed where they are not to stay."""
    if storage == "auto":
        storage = "pickle" if sum(map(len, splits.values())) <= PICKLED else "arrays"
    if storage == "pickle":
        shutil.rmtree(arrays)
    return {} if storage == "arrays" else {DATA: tuple(_as_lists(split, eos_id) for split in splits.values())}


def _as_lists(split, eos_id):
    """A split as in `data.pkl`; consecutive equal contexts are one list, also in the pickle."""
    contexts, responses = split.texts(np.arange(len(split)), eos_id)
    return {"y": split.label.tolist(), "c": contexts, "r": responses}
