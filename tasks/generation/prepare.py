"""Prepares conversations for response generation: pairs of a source and the target that answers it.

    pairs.pkl   {split: {"source": [[id]], "target": [[id]], "source_text": [text], "target_text":
                         [text], "seen": [bool]}}

and the files of `data.prepared`.

Each utterance but the first of a conversation is a target; its source is the last utterances before
it. `source` has `_EOS_` after each turn, `target` at its end. Texts are normalized tokens separated
by spaces, turns by tabs. `seen` marks pairs that are also in train, apart from case and
punctuation: a model can know them by heart.
"""

import collections
import pathlib
import re
from typing import Literal, NamedTuple

import numpy as np

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.corpora.splits import read_splits
from colloquy.data.prepared import VOCABULARY, CommonSettings, filled_min_count, write
from colloquy.data.report import Report, choose_examples, print_summary
from colloquy.data.tokenizers import TOKENIZERS
from colloquy.data.vocabulary import EOS_ID, SPECIALS, UNK_ID, Vocabulary
from colloquy.engine.vocabularies import Words
from colloquy.tasks.generation.data import PAIRS, SourceConfig, encode_pairs, read_source_config

# Spaces and punctuation.
NO_LETTERS = re.compile(r"[\W_]+")


class Settings(CommonSettings):
    """Settings of preparing a corpus."""

    tokenizer: Literal[*TOKENIZERS] | None = None
    """Tokenizer, also of texts that a user writes later; default: the one that suits the corpus."""
    lower: bool = True
    """Makes texts lower case."""
    turns: Positive = 1
    """Utterances of a source, the last ones."""
    max_words: NonNegative = 0
    """Leaves out pairs with a turn or a target of more words; 0: none."""
    min_count: Positive | None = None
    """Words that occur less often in the training pairs become `_UNK_`. An utterance in two pairs
    counts once. Default: 2, or 1 for fewer than 20,000 words."""
    vocabulary_size: NonNegative = 10000
    """Number of most frequent words that are known; 0: all."""
    drop_unknown: bool = False
    """Leaves out pairs with an unknown word."""


def prepare(corpus, source, out, settings):
    """Prepares a corpus for response generation, see `data.prepared`.

    Args:
        corpus: Key of `data.corpora.CORPORA`.
        source: Directory of its files; `None` if its reader finds them.
        out: Directory to write; missing or empty.
        settings: `Settings`.
    """
    reader = CORPORA[corpus].reader
    report = Report()
    known_words = None
    if settings.vocabulary_of:
        known_words = Words.open(settings.vocabulary_of, "generation")
    source_config = _choose_source_config(settings, reader, known_words)
    settings = settings.replace(**source_config.to_json())
    tokenizer = source_config.tokenizer
    if TOKENIZERS[tokenizer].segment:
        report.note(
            f"models of {out} cannot be exported: the tokenizer {tokenizer} cannot run inside "
            "a TensorFlow graph; mixed, by characters, can"
        )

    with atomic_directory(out) as directory:
        splits = _read_pairs(reader, source, source_config, settings.max_words, report)
        if known_words:
            vocabulary = known_words.vocabulary
        else:
            settings, vocabulary = _choose_vocabulary(splits["train"], settings)
        if settings.drop_unknown:
            splits = _leave_out(
                splits,
                "pairs with an unknown word (--drop_unknown)",
                report,
                lambda words: any(word not in vocabulary.ids for word in words),
            )
        encoded_splits = _encode_splits(splits, vocabulary, report)
        statistics = {name: _statistics(encoded) for name, encoded in encoded_splits.items()}
        files = {PAIRS: encoded_splits, VOCABULARY: vocabulary}
        sizes = {"vocabulary": len(vocabulary), **statistics}
        write(directory, files, corpus, source, settings, sizes, task="generation")

    if source:
        report.note_unread(source)
    report.print(_show_examples(encoded_splits["train"], vocabulary))
    print_summary(statistics)
    print(f"{out}: {len(vocabulary):,} words")


def _choose_source_config(settings, reader, known_words):
    """The `SourceConfig` of `known_words`; without them, that of the settings and the corpus."""
    if known_words:
        # A run has it as `text`, a dataset among its `settings`.
        metadata = known_words.metadata
        fields = metadata.get("text", metadata.get("settings"))
        return read_source_config(fields, known_words.path)
    return SourceConfig(
        tokenizer=settings.tokenizer or reader.TOKENIZER,
        lower=settings.lower,
        turns=settings.turns,
    )


def _show_examples(encoded, vocabulary):
    """The examples of the report: pairs of train with the words that a model knows."""

    def text(ids):
        # A slash separates turns; the last `_EOS_` is left out.
        words = ["/" if id == EOS_ID else vocabulary.word(id) for id in ids[:-1]]
        return " ".join(words)

    def show(place):
        return text(encoded["source"][place]), text(encoded["target"][place])

    return choose_examples(len(encoded["source"]), show)


class _Pairs(NamedTuple):
    """The pairs of a split."""

    file: pathlib.Path
    """The file that they come from, or the directory of several files, for messages."""
    utterances: list
    """The words of each utterance of all conversations."""
    ranges: list
    """The utterances of each pair, `(start, stop)`, see `find_pairs`."""


def _read_pairs(reader, source, source_config, max_words, report):
    """The `_Pairs` of each split, without those that have an unfit turn."""
    splits = {}
    for name, split in read_splits(reader, source, report).items():
        splits[name] = _make_pairs(split, source_config)
    splits = _leave_out(splits, "pairs with a turn without words", report, lambda words: not words)
    if max_words:
        splits = _leave_out(
            splits,
            f"pairs with a turn of over {max_words} words (--max_words)",
            report,
            lambda words: len(words) > max_words,
        )
    return splits


def _make_pairs(split, source_config):
    utterances = []
    lengths = []
    for turns in split.conversations:
        utterances += [source_config.words(turn) for turn in turns]
        lengths.append(len(turns))
    return _Pairs(split.file, utterances, list(find_pairs(lengths, source_config.turns)))


def _leave_out(splits, reason, report, is_unfit):
    """Returns the splits without the pairs that have an utterance whose words are unfit."""
    kept_splits = {}
    for name, pairs in splits.items():
        unfit = [is_unfit(words) for words in pairs.utterances]
        kept = [(start, stop) for start, stop in pairs.ranges if not any(unfit[start:stop])]
        report.leave_out(reason, len(pairs.ranges) - len(kept))
        kept_splits[name] = pairs._replace(ranges=kept)
    return kept_splits


def find_pairs(lengths, turns):
    """Pairs the utterances of conversations, numbered throughout.

    Args:
        lengths: Number of utterances of each conversation.
        turns: Most utterances of a source.

    Yields:
        `(start, stop)`: utterance `stop - 1` is the target, those before it the source.

    >>> list(find_pairs([3, 1, 2], turns=2))
    [(0, 2), (0, 3), (4, 6)]
    """
    first = 0
    for length in lengths:
        for target in range(first + 1, first + length):
            yield max(first, target - turns), target + 1
        first += length


def _choose_vocabulary(pairs, settings):
    """The settings with `min_count` decided, and the vocabulary of the utterances in a pair."""
    # An utterance in two pairs counts once.
    utterances_of_pairs = set()
    for start, stop in pairs.ranges:
        utterances_of_pairs.update(range(start, stop))
    counts = collections.Counter()
    for number in sorted(utterances_of_pairs):
        counts.update(pairs.utterances[number])

    settings = settings.replace(min_count=filled_min_count(settings.min_count, counts))
    vocabulary = Vocabulary.of_counts(counts, settings.min_count)
    if settings.vocabulary_size:
        vocabulary = Vocabulary(vocabulary.words[: len(SPECIALS) + settings.vocabulary_size])
    return settings, vocabulary


def _encode_splits(splits, vocabulary, report):
    """The content of `PAIRS`."""
    encoded_splits = {}
    for split, pairs in splits.items():
        if not pairs.ranges:
            raise UserError(
                f"{pairs.file}: expected pairs of an utterance and its reply for {split}. "
                f"Received: none; left out of all splits: {report.reasons() or 'nothing'}"
            )
        encoded_splits[split] = encode_pairs(pairs.utterances, pairs.ranges, vocabulary)
    pairs_of_train = set(_normalized_pairs(encoded_splits["train"]))
    for encoded in encoded_splits.values():
        encoded["seen"] = [pair in pairs_of_train for pair in _normalized_pairs(encoded)]
    return encoded_splits


def _normalized_pairs(encoded):
    """Yields the source and target of each pair in lower case, without spaces and punctuation."""
    for source, target in zip(encoded["source_text"], encoded["target_text"], strict=True):
        yield NO_LETTERS.sub("", source.lower()), NO_LETTERS.sub("", target.lower())


def _statistics(encoded):
    """Numbers of a split: pairs, 95th percentiles of lengths, unknown words.

    Lengths are in words, without `_EOS_`.
    """
    source_lengths = [len(ids) - ids.count(EOS_ID) for ids in encoded["source"]]
    target_lengths = [len(ids) - ids.count(EOS_ID) for ids in encoded["target"]]
    unknown = sum(ids.count(UNK_ID) for ids in encoded["target"])
    return {
        "pairs": len(target_lengths),
        "source_words_95": round(float(np.percentile(source_lengths, 95)), 2),
        "target_words_95": round(float(np.percentile(target_lengths, 95)), 2),
        "unknown_fraction_of_target": round(unknown / sum(target_lengths), 4),
        "pairs_in_train": sum(encoded["seen"]),
    }
