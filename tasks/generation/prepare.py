"""Response generation: from conversations to a prepared dataset of pairs, a source and the target
that answers it.

    pairs.pkl   {split: {"source": [[id]], "target": [[id]], "source_text": [text], "target_text":
                         [text], "seen": [bool]}}

and the files of `data.prepared`, word vectors only where some were given.

Each utterance but the first of a conversation is a target; its source is the last utterances before
it. `source` has `_EOS_` after each turn, `target` at its end. Texts are normalized tokens separated
by spaces, turns by tabs. `seen` marks pairs that are also in train, apart from case and
punctuation: a model can know them by heart.
"""

import collections
import itertools
import pathlib
import re
import sys
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.prepared import (
    VECTORS,
    VOCABULARY,
    CommonSettings,
    filled_min_count,
    print_summary,
    write,
)
from colloquy.data.tokenizers import TOKENIZERS
from colloquy.data.vocabulary import EOS_ID, UNK_ID, Vocabulary
from colloquy.data.word_vectors import load_text_vectors
from colloquy.engine.vocabularies import Words
from colloquy.tasks.generation.data import (
    PAIRS,
    SPLITS,
    TokenizerConfig,
    encode_pairs,
    read_tokenizer_config,
)


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
    vectors: str | None = None
    """File of word2vec or GloVe vectors; default: none."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed of the vectors of words that the file lacks."""


def prepare(corpus, source, out, settings):
    """Prepares a corpus for response generation, see `data.prepared`."""
    reader, source = CORPORA[corpus].reader, pathlib.Path(source)
    given = Words.of(settings.vocabulary_of, "generation") if settings.vocabulary_of else None
    if given:
        text = read_tokenizer_config(
            given.metadata.get("text", given.metadata.get("settings")), given.path
        )
    else:
        tokenizer = settings.tokenizer or reader.TOKENIZER
        text = TokenizerConfig(tokenizer=tokenizer, lower=settings.lower, turns=settings.turns)
    settings = settings.replace(**text.to_json())
    if TOKENIZERS[text.tokenizer].segment:
        reason = f"the tokenizer {text.tokenizer} cannot run inside a TensorFlow graph; mixed, by characters, can"
        print(f"warning: models of {out} cannot be exported: {reason}", file=sys.stderr)
    files = reader.find_splits(source)
    splits = {split: _Conversations(reader.read(files[split], split), text) for split in SPLITS}
    for conversations in splits.values():
        conversations.keep(lambda words: 0 < len(words) <= (settings.max_words or len(words)))
    settings, vocabulary = (
        (settings, given.vocabulary) if given else _vocabulary(splits["train"], settings)
    )
    known, data = set(vocabulary.words), {}
    for split, conversations in splits.items():
        if settings.drop_unknown:
            conversations.keep(known.issuperset)
        if not conversations.pairs:
            raise UserError(
                f"{source}: expected pairs for {split}. None of {conversations.possible} are left"
            )
        data[split] = encode_pairs(conversations.utterances, conversations.pairs, vocabulary)
    seen = set(_letters(data["train"]))  # the pairs without case and punctuation
    for pairs in data.values():
        pairs["seen"] = [pair in seen for pair in _letters(pairs)]
    statistics = {split: _statistics(splits[split], data[split]) for split in SPLITS}
    files = {PAIRS: data, VOCABULARY: vocabulary}
    if settings.vectors:
        files[VECTORS], _ = load_text_vectors(settings.vectors, vocabulary, settings.seed)
    with atomic_directory(out) as directory:
        write(
            directory,
            files,
            corpus,
            source,
            settings,
            {"vocabulary": len(vocabulary), **statistics},
        )
    print_summary(statistics)
    print(f"{out}: {len(vocabulary):,} words")


class _Conversations:
    """The conversations of a split as utterances, lists of words, and pairs of these."""

    def __init__(self, conversations, text):
        self.number = len(conversations)
        self.utterances = [text.words(turn) for turns in conversations for turn in turns]
        self.pairs = list(find_pairs(map(len, conversations), text.turns))
        self.possible = len(self.pairs)

    def keep(self, fits):
        """Leaves out pairs with an utterance that does not fit: a function of its words."""
        fitting = list(map(fits, self.utterances))
        self.pairs = [(start, stop) for start, stop in self.pairs if all(fitting[start:stop])]


def find_pairs(lengths, turns):
    """Yields the pairs of conversations of some lengths, utterances numbered throughout, at most
    `turns` a source: `(start, stop)`; utterance `stop - 1` is the target.

    >>> list(find_pairs([3, 1, 2], turns=2))
    [(0, 2), (0, 3), (4, 6)]
    """
    first = 0
    for length in lengths:
        for target in range(first + 1, first + length):
            yield max(first, target - turns), target + 1
        first += length


def _vocabulary(conversations, settings):
    """The settings with `min_count` filled in, and the vocabulary of the utterances that are in a
    pair.
    """
    used = sorted({row for start, stop in conversations.pairs for row in range(start, stop)})
    counts = collections.Counter(
        itertools.chain.from_iterable(conversations.utterances[row] for row in used)
    )
    settings = settings.replace(min_count=filled_min_count(settings.min_count, counts))
    vocabulary, size = Vocabulary.of_counts(counts, settings.min_count), settings.vocabulary_size
    return settings, Vocabulary(vocabulary.words[: 2 + size]) if size else vocabulary


def _letters(split):
    texts = zip(split["source_text"], split["target_text"], strict=True)
    return [tuple(re.sub(r"[\W_]+", "", text.lower()) for text in pair) for pair in texts]


def _statistics(conversations, data):
    """Lengths are in words, without `_EOS_`."""
    source, target = (
        [len(ids) - ids.count(EOS_ID) for ids in data[name]] for name in ("source", "target")
    )
    unknown = sum(ids.count(UNK_ID) for ids in data["target"])
    return {
        "conversations": conversations.number,
        "pairs": len(conversations.pairs),
        "pairs_left_out": conversations.possible - len(conversations.pairs),
        "source_words_95": round(float(np.percentile(source, 95)), 2),
        "target_words_mean": round(float(np.mean(target)), 2),
        "target_words_95": round(float(np.percentile(target, 95)), 2),
        "target_words_most": max(target),
        "unknown_fraction_of_target": round(unknown / sum(target), 4),
        "pairs_in_train": sum(data["seen"]),
    }
