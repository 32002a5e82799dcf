"""Response selection: from a corpus's text files to a prepared dataset, see `data.prepared`.

    data.pkl   (train, dev, test), each {"y": labels, "c": contexts, "r": responses}, as word ids; in a context each
               turn is followed by the id of `_EOS_`

This file and `word_embedding.pkl` are of the form of DAM's release, which can train on them.

The vocabulary and the word vectors are made from the *distinct utterances* of the training lines
with label 1, each once: a context that grows line by line would otherwise count its first turn ten
times, and `min_count` would mean nothing. Negative responses are positive ones elsewhere in the corpus,
so they would only count words again.
"""

import array
import collections
import dataclasses
import functools
import sys
from typing import NamedTuple

import numpy as np
from rich.progress import Progress

from base.files import UserError, atomic_directory
from data.corpora import CORPORA
from data.prepared import VECTORS, VOCABULARY, print_summary, write
from data.texts import Texts
from data.tokenizers import WHITESPACE, words_of
from data.vocabulary import SPECIALS, Vocabulary
from data.word_vectors import load_text_vectors, train_word2vec
from engine.vocabularies import run_of, vocabulary_of, word_vectors_of
from tasks.selection.batches import SelectionSplit
from tasks.selection.text import text_settings

SPLITS = ("train", "dev", "test")
DATA = "data.pkl"
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
    hashed_words: int = 0
    """Ids for words that are not in the vocabulary, by their hash, so that a model with `lexical=true` can tell whether
    two are the same; 0: all are `_UNK_`, as DAM's release has it."""
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
    """Seed for every random number generator."""
    vocabulary_of: str | None = None
    """Run whose words, tokenizer and word vectors are taken, so that its model can score what is prepared
    or be trained on it; `None`: the corpus's own."""
    candidates: int = 10
    """Candidates that each context of dev or test should have, else a warning; 0: any number."""


def prepare(corpus, source, out, settings):
    """Prepares a corpus for response selection, see `data.prepared`."""
    reader = CORPORA[corpus].reader
    run = run_of(settings.vocabulary_of, "selection") if settings.vocabulary_of else None
    tokenizer = settings.tokenizer or reader.TOKENIZER
    text = text_settings(run) if run else {"tokenizer": tokenizer, "lower": settings.lower and tokenizer != WHITESPACE}
    settings = dataclasses.replace(settings, **text)
    with atomic_directory(out) as directory, Progress() as progress:
        files = {split: reader.find_split(source, split) for split in SPLITS}
        if files["dev"] is None:
            print(f"warning: {source} has no dev file: train.py will not train on {out}", file=sys.stderr)
        texts = Texts(functools.partial(words_of, **text))
        lines = {split: _read(reader, file, texts, progress) for split, file in files.items()}
        texts.close()
        utterances = _utterances(lines["train"], len(texts))
        if not (utterances or run):
            raise UserError(f"{files['train']}: expected lines with label 1. Received: none")
        vocabulary = vocabulary_of(run) if run else _vocabulary(files["train"], texts.counts(utterances), settings)
        encoded = tuple(_encode(lines[split], texts.encoder(vocabulary), vocabulary.eos_id) for split in SPLITS)
        statistics = _statistics_of(files, encoded, vocabulary, settings.candidates)
        if run:
            vectors = word_vectors_of(run)
        else:
            vectors = _word_vectors(texts.sentences(utterances), vocabulary, settings, progress)
        made = {DATA: encoded, VECTORS: vectors, VOCABULARY: vocabulary}
        sizes = {"vocabulary": len(vocabulary), "distinct_training_utterances": len(utterances)}
        ids = {"eos_id": vocabulary.eos_id, "unk_id": vocabulary.unk_id or None, "hashed_words": vocabulary.hashed}
        write(directory, made, corpus, source, settings, {**sizes, **statistics}, **ids, text=text)
    print_summary(statistics, ROWS, lambda split: f"{split}: {statistics[split]['file']}")
    print(f"{out}: {len(vocabulary):,} words, vectors {vectors.shape}")


# === Steps ===


class Lines(NamedTuple):
    """The lines of a split, texts as numbers of `Texts`."""

    labels: array.array
    contexts: list[tuple[int, ...]]
    """Consecutive equal ones are one object."""
    responses: array.array


def _read(reader, file, texts, progress):
    lines = Lines(array.array("b"), [], array.array("i"))
    if file is not None:
        opener = functools.partial(progress.open, description=f"reading {file.name}")
        for line in reader.read(file, opener):
            turns = tuple(map(texts.add, line.turns))
            same = lines.contexts and turns == lines.contexts[-1]
            lines.labels.append(line.label)
            lines.contexts.append(lines.contexts[-1] if same else turns)
            lines.responses.append(texts.add(line.response))
    return lines


def _utterances(lines, texts):
    """The numbers of the distinct utterances of the lines with label 1, in their order; there are so many `texts`."""
    seen, utterances = bytearray(texts), array.array("i")
    for label, turns, response in zip(*lines, strict=True):
        if label == 1:
            for number in (*turns, response):
                if not seen[number]:
                    seen[number] = True
                    utterances.append(number)
    return utterances


def _vocabulary(file, counts, settings):
    vocabulary = Vocabulary.of_counts(counts, settings.min_count)
    if len(vocabulary) == len(SPECIALS):
        raise UserError(f"{file}: expected a word that occurs {settings.min_count} times (--min_count). Received: none")
    return dataclasses.replace(vocabulary, hashed=settings.hashed_words)


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


def _encode(lines, ids_of, eos_id):
    """A split as in `data.pkl`; consecutive equal contexts are one list, also in the pickle."""
    contexts, previous = [], None
    for turns in lines.contexts:
        if turns is not previous:
            context = [id for turn in turns for id in (*ids_of(turn), eos_id)]
        contexts.append(context)
        previous = turns
    return {"y": lines.labels.tolist(), "c": contexts, "r": [ids_of(response) for response in lines.responses]}


# === Summary ===


def _statistics_of(files, encoded, vocabulary, candidates):
    """Statistics of each split that has lines; warns where dev or test have other numbers of candidates."""
    statistics = {}
    for split, data in zip(SPLITS, encoded, strict=True):
        if data["y"]:
            packed = SelectionSplit.of(data["c"], data["r"], data["y"], vocabulary.eos_id)
            statistics[split] = {"file": files[split].name, **_statistics(packed, vocabulary)}
            if split != "train":
                _warn_of_candidates(files[split], packed, candidates)
    return statistics


def _statistics(split, vocabulary):
    """Statistics of a `SelectionSplit`; a context counts once, however many candidates it has."""
    candidates = np.bincount(split.context)
    positive = np.bincount(split.context, weights=split.label)
    turns, words = split.context_turns, split.turns.lengths
    unknown = sum(
        ((lists.ids == vocabulary.unk_id) | (lists.ids > len(vocabulary))).sum()
        for lists in (split.turns, split.responses)
    )
    return {
        "lines": len(split.label),
        "contexts": len(candidates),
        "turns_median": float(np.median(turns)),
        "turns_95": float(np.percentile(turns, 95)),
        "words_median": float(np.median(words)),
        "words_95": float(np.percentile(words, 95)),
        "contexts_over_9_turns": float(np.mean(turns > PAPER_TURNS)),
        "turns_over_50_words": float(np.mean(words > PAPER_WORDS)),
        "unknown_words": float(unknown / (words.sum() + split.responses.lengths.sum())),
        "contexts_without_positive": int(np.sum(positive == 0)),
        "contexts_without_negative": int(np.sum(positive == candidates)),
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


def _sizes(statistics):
    sizes = list(statistics["candidates"].items())
    shown = ", ".join(f"{size} x {count:,}" for size, count in sizes[:3])
    return shown + (f", {len(sizes) - 3} other sizes" if len(sizes) > 3 else "")


ROWS = {
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
