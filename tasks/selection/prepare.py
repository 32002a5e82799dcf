"""Response selection: from a corpus's text files to a prepared dataset.

    data.pkl             (train, dev, test), each {"y": labels, "c": contexts, "r": responses},
                         as word ids; in a context each turn is followed by the id of `_EOS_`
    word_embedding.pkl   float32 array `(vocabulary + 1, dimension)`, row 0 padding
    vocabulary.txt       line n is the word with id n
    dataset.json         corpus, task, ids of the specials, how texts are split into words, settings, statistics

The first two are files of DAM's release, which can train on them.

The vocabulary and the word vectors are made from the *distinct utterances* of the training lines
with label 1, each once: a context that grows line by line would otherwise count its first turn ten
times, and `min_count` would mean nothing. Negative responses are positive ones elsewhere in the corpus,
so they would only count words again.
"""

import collections
import dataclasses
import functools
import json
import pathlib
import sys

import numpy as np
import rich
from rich.progress import Progress
from rich.table import Table

from base.files import UserError, atomic_directory
from data import pickles
from data.corpora import CORPORA
from data.tokenizers import WHITESPACE, words_of
from data.vocabulary import EOS_ID, SPECIALS, UNK_ID, Vocabulary
from data.word_vectors import load_text_vectors, train_word2vec
from tasks.selection.batches import SelectionSplit

SPLITS = ("train", "dev", "test")
DATA, VECTORS, VOCABULARY, FACTS = (
    "data.pkl",
    "word_embedding.pkl",
    "vocabulary.txt",
    "dataset.json",
)
PAPER_TURNS, PAPER_WORDS = 9, 50  # what DAM reads of a context and of an utterance


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
    dimension: int = 200
    """Dimension of the word vectors; a file of `vectors` has its own."""
    window: int = 10
    """Word2vec: context words to each side."""
    negative: int = 25
    """Word2vec: negative samples per word."""
    sample: float = 1e-4
    """Word2vec: words above this frequency, a fraction of all words, are subsampled."""
    word2vec_epochs: int = 20
    """Word2vec: passes over the distinct training utterances; its own default of 5 suits corpora of a hundred times the
    size of those we have."""
    vectors: str | None = None
    """Text file of word vectors to take instead of training them."""
    seed: int = 1
    candidates: int = 10
    """Candidates that each context of dev or test should have, else a warning; 0: any number."""


def prepare(corpus, source, out, settings):
    """Prepares a corpus for response selection and prints a summary of it.

    Args:
        corpus: Key of `data.corpora.CORPORA`.
        source: Directory of the corpus's files.
        out: Directory to make.
        settings: A `Settings`.

    Raises:
        UserError: where a file is missing or at fault; nothing is left behind.
    """
    reader = CORPORA[corpus].reader
    tokenizer = settings.tokenizer or reader.TOKENIZER
    text = {"tokenizer": tokenizer, "lower": settings.lower and tokenizer != WHITESPACE}
    with atomic_directory(out) as directory, Progress() as progress:
        files = {split: reader.find_split(source, split) for split in SPLITS}
        lines = {split: _read(reader, file, progress) for split, file in files.items()}
        utterances = list(
            dict.fromkeys(text for line in lines["train"] if line.label == 1 for text in (*line.turns, line.response))
        )
        if not utterances:
            raise UserError(f"{files['train']}: expected lines with label 1. Received: none")
        sentences = [words_of(utterance, **text) for utterance in utterances]
        vocabulary = Vocabulary.count(sentences, settings.min_count)
        if len(vocabulary) == len(SPECIALS):
            raise UserError(
                f"{files['train']}: expected a word that occurs {settings.min_count} times "
                "(--min_count). Received: none"
            )
        encoded = tuple(_encode(lines[split], text, vocabulary) for split in SPLITS)
        statistics = {}
        for split, data in zip(SPLITS, encoded, strict=True):
            if data["y"]:
                packed = SelectionSplit.of(data["c"], data["r"], data["y"], EOS_ID)
                statistics[split] = {"file": files[split].name, **_statistics(packed)}
                if split != "train":
                    _warn_of_candidates(files[split], packed, settings.candidates)
        vectors = _word_vectors(sentences, vocabulary, settings, progress)

        with open(directory / DATA, "wb") as file:
            pickles.dump(encoded, file)
        with open(directory / VECTORS, "wb") as file:
            pickles.dump(vectors, file)
        vocabulary.save(directory / VOCABULARY)
        facts = {
            "name": settings.name or pathlib.Path(source).resolve().name,
            "corpus": corpus,
            "task": CORPORA[corpus].task,
            "eos_id": EOS_ID,
            "unk_id": UNK_ID,
            "text": text,
            "settings": {name: value for name, value in dataclasses.asdict(settings).items() if name not in text},
            "statistics": {
                "vocabulary": len(vocabulary),
                "distinct_training_utterances": len(utterances),
                **statistics,
            },
        }
        with open(directory / FACTS, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=1, ensure_ascii=False)
    rich.print(_table(statistics))
    print(f"{out}: {len(vocabulary):,} words, vectors {vectors.shape}")


# === Steps ===


def _read(reader, file, progress):
    """A split's lines; consecutive equal contexts are one list."""
    lines = []
    if file is not None:
        opener = functools.partial(progress.open, description=f"reading {file.name}")
        for line in reader.read(file, opener):
            if lines and line.turns == lines[-1].turns:
                line = line._replace(turns=lines[-1].turns)
            lines.append(line)
    return lines


def _word_vectors(sentences, vocabulary, settings, progress):
    if settings.vectors:
        vectors, found = load_text_vectors(settings.vectors, vocabulary, settings.seed)
        print(f"{settings.vectors}: vectors of {found:,} of {len(vocabulary) - 2:,} words")
    else:
        task = progress.add_task("word vectors", total=settings.word2vec_epochs)
        vectors = train_word2vec(
            sentences,
            vocabulary,
            dimension=settings.dimension,
            window=settings.window,
            negative=settings.negative,
            sample=settings.sample,
            epochs=settings.word2vec_epochs,
            seed=settings.seed,
            after_epoch=functools.partial(progress.advance, task),
        )
    return vectors


def _encode(lines, text, vocabulary):
    """A split as in `data.pkl`; consecutive equal contexts are one list, also in the pickle."""

    @functools.lru_cache(maxsize=2**16)  # a growing context repeats its turns
    def ids_of(utterance):
        return vocabulary.encode(words_of(utterance, **text))

    contexts, previous = [], None
    for line in lines:
        if line.turns is not previous:
            context = [id for turn in line.turns for id in (*ids_of(turn), EOS_ID)]
        contexts.append(context)
        previous = line.turns
    return {
        "y": [line.label for line in lines],
        "c": contexts,
        "r": [list(ids_of(line.response)) for line in lines],
    }


# === Summary ===


def _statistics(split):
    """Statistics of a `SelectionSplit`; a context counts once, however many candidates it has."""
    candidates = np.bincount(split.context)
    positives = np.bincount(split.context, weights=split.label)
    turns, words = split.context_turns, split.turns.lengths
    ids = np.concatenate([split.turns.ids, split.responses.ids])
    return {
        "lines": len(split.label),
        "contexts": len(candidates),
        "turns_median": float(np.median(turns)),
        "turns_95": float(np.percentile(turns, 95)),
        "words_median": float(np.median(words)),
        "words_95": float(np.percentile(words, 95)),
        "contexts_over_9_turns": float(np.mean(turns > PAPER_TURNS)),
        "turns_over_50_words": float(np.mean(words > PAPER_WORDS)),
        "unknown_words": float(np.mean(ids == UNK_ID)),
        "contexts_without_positive": int(np.sum(positives == 0)),
        "contexts_without_negative": int(np.sum(positives == candidates)),
        "candidates": {str(size): count for size, count in collections.Counter(candidates.tolist()).most_common()},
    }


def _warn_of_candidates(file, split, expected):
    """Warns where consecutive lines of one context are not as many as promised."""
    sizes = np.bincount(split.context)
    unexpected = np.flatnonzero(sizes != expected)
    if expected and len(unexpected):
        line = np.searchsorted(split.context, unexpected[0]) + 1
        print(
            f"warning: {file}, line {line}: expected {expected} candidates per context "
            f"(--candidates). Received: {sizes[unexpected[0]]}; {len(unexpected)} of {len(sizes)} contexts "
            f"do not have {expected}",
            file=sys.stderr,
        )


def _table(statistics):
    rows = {
        "lines": lambda s: f"{s['lines']:,}",
        "contexts": lambda s: f"{s['contexts']:,}",
        "turns per context: median, 95%": lambda s: f"{s['turns_median']:g}, {s['turns_95']:g}",
        "words per turn: median, 95%": lambda s: f"{s['words_median']:g}, {s['words_95']:g}",
        f"contexts cut at {PAPER_TURNS} turns": lambda s: f"{s['contexts_over_9_turns']:.1%}",
        f"turns cut at {PAPER_WORDS} words": lambda s: f"{s['turns_over_50_words']:.1%}",
        "unknown words": lambda s: f"{s['unknown_words']:.2%}",
        "contexts without a positive": lambda s: f"{s['contexts_without_positive']:,}",
        "contexts without a negative": lambda s: f"{s['contexts_without_negative']:,}",
        "candidates x contexts": _sizes,
    }
    table = Table("", *(f"{split}: {s['file']}" for split, s in statistics.items()))
    for name, show in rows.items():
        table.add_row(name, *(show(s) for s in statistics.values()))
    return table


def _sizes(statistics):
    sizes = list(statistics["candidates"].items())
    shown = ", ".join(f"{size} x {count:,}" for size, count in sizes[:3])
    return shown + (f", {len(sizes) - 3} other sizes" if len(sizes) > 3 else "")
