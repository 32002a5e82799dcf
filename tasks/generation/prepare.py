"""Response generation: from conversations to a prepared dataset of pairs, a source and the target that answers it.

    pairs.pkl   {split: {"source": [[id]], "target": [[id]], "source_text": [text], "target_text": [text],
                         "seen": [bool]}}

and the files of `data.prepared`, word vectors only where some were given.

Every utterance but the first of a conversation is a target; its source are the utterances before it, the last ones.
`source` has `_EOS_` after every turn, `target` at its end. The texts are the normalized tokens separated by spaces,
with a tab between turns. `seen` says whether the pair, but for case and punctuation, also occurs in train: what a
model can know by heart.
"""

import dataclasses
import pathlib
import re
import reprlib
import sys

import numpy as np

from base.files import UserError, atomic_directory
from data.corpora import CORPORA
from data.prepared import VECTORS, VOCABULARY, print_summary, write
from data.tokenizers import TOKENIZERS, normalize
from data.vocabulary import EOS_ID, UNK_ID, Vocabulary
from data.word_vectors import load_text_vectors
from engine.vocabularies import Words

PAIRS = "pairs.pkl"
SPLITS = ("train", "dev")


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a corpus is prepared."""

    name: str | None = None
    """Name of the corpus in tables; `None`: that of the source directory."""
    tokenizer: str | None = None
    """Key of `data.tokenizers.TOKENIZERS`; `None`: that of the corpus."""
    lower: bool = True
    """Whether texts are made lower case."""
    turns: int = 1
    """How many utterances make a source, the last ones."""
    max_words: int = 0
    """Pairs with a turn or a target of more words are left out; 0: none."""
    min_count: int = 2
    """Rarer words of the training pairs are `_UNK_`."""
    vocabulary_size: int = 10000
    """So many words are known, the most frequent ones; 0: all."""
    vocabulary_of: str | None = None
    """Run or prepared dataset whose words, tokenizer and turns are taken, so that a model of the one can score what is
    prepared or be trained on it; `None`: the corpus's own."""
    drop_unknown: bool = False
    """Whether pairs that hold a word that is not known are left out."""
    vectors: str | None = None
    """File of word vectors, see `data.word_vectors.read_vectors`; `None`: none."""
    seed: int = 1
    """Seed of the vectors of words that the file lacks."""


def prepare(corpus, source, out, settings):
    """Prepares a corpus for response generation, see `data.prepared`.

    The vocabulary is counted on the training utterances that are in a pair, each once.
    """
    reader, source = CORPORA[corpus].reader, pathlib.Path(source)
    words = Words.of(settings.vocabulary_of, "generation") if settings.vocabulary_of else None
    if words:
        text = check_text(words.facts.get("text", words.facts.get("settings")), words.path)
    else:
        text = {"tokenizer": settings.tokenizer or reader.TOKENIZER}
    settings = dataclasses.replace(settings, **text)
    if settings.tokenizer not in TOKENIZERS:
        raise UserError(f"tokenizer must be one of {', '.join(TOKENIZERS)}. Received: {settings.tokenizer!r}")
    if TOKENIZERS[settings.tokenizer].segment:
        print(
            f"warning: models of {out} cannot be exported, as no graph holds the tokenizer {settings.tokenizer}; "
            "one by characters is mixed",
            file=sys.stderr,
        )
    utterances, pairs, counts = {}, {}, {}
    for split, files in reader.find_splits(source).items():
        utterances[split], pairs[split], counts[split] = _read(reader.read(files, split), settings)
    vocabulary = words.vocabulary if words else _vocabulary(utterances["train"], pairs["train"], settings)
    for split, chosen in pairs.items():
        if settings.drop_unknown:
            chosen[:] = _without_unknown(chosen, utterances[split], vocabulary)
        possible = counts[split].pop("possible")
        counts[split] |= {"pairs": len(chosen), "left_out": possible - len(chosen)}
        if not chosen:
            raise UserError(f"{source}: expected pairs for {split}. Received: none of {possible} are left")
    data = {split: _encode(utterances[split], pairs[split], vocabulary) for split in SPLITS}
    known = {_letters(data["train"], row) for row in range(len(pairs["train"]))}
    for split in SPLITS:
        data[split]["seen"] = [_letters(data[split], row) in known for row in range(len(pairs[split]))]
    statistics = {split: {**counts[split], **_statistics(data[split])} for split in SPLITS}
    files = {PAIRS: data, VOCABULARY: vocabulary}
    if settings.vectors:
        files[VECTORS], _ = load_text_vectors(settings.vectors, vocabulary, settings.seed)
    with atomic_directory(out) as directory:
        write(directory, files, corpus, source, settings, {"vocabulary": len(vocabulary), **statistics})
    print_summary(statistics)
    print(f"{out}: {len(vocabulary):,} words")


def check_text(found, file):
    """How raw strings become words: `tokenizer`, `lower` and `turns` of `Settings`.

    Args:
        found: What a JSON file has; a dataset's has more.
        file: That file.

    Raises:
        UserError: where they are missing or something else.
    """
    found = {name: found.get(name) for name in ("tokenizer", "lower", "turns")} if isinstance(found, dict) else {}
    match found:
        case {"tokenizer": str(name), "lower": bool(), "turns": int(turns)} if name in TOKENIZERS and turns > 0:
            return found
    raise UserError(f"{file}: expected settings with a tokenizer, lower and turns. Received: {reprlib.repr(found)}")


def find_pairs(lengths, turns):
    """The pairs of conversations whose utterances are numbered throughout.

    Args:
        lengths: How many utterances each conversation has.
        turns: How many of them make a source at most.

    Yields:
        `(start, stop)`: utterance `stop - 1` is the target, those from `start` to it the source.

    >>> list(find_pairs([3, 1, 2], turns=2))
    [(0, 2), (0, 3), (4, 6)]
    """
    first = 0
    for length in lengths:
        for target in range(first + 1, first + length):
            yield max(first, target - turns), target + 1
        first += length


def _read(conversations, settings):
    """The utterances of a split as tokens, the pairs of them that are short enough, and what was counted."""
    tokenize = TOKENIZERS[settings.tokenizer].tokenize
    utterances = [tokenize(normalize(text, settings.lower)) for turns in conversations for text in turns]
    possible = list(find_pairs([len(turns) for turns in conversations], settings.turns))
    pairs = [pair for pair in possible if _fits(utterances[slice(*pair)], settings.max_words)]
    return utterances, pairs, {"conversations": len(conversations), "possible": len(possible)}


def _without_unknown(pairs, utterances, vocabulary):
    words = set(vocabulary.words)
    known = [words.issuperset(tokens) for tokens in utterances]
    return [(start, stop) for start, stop in pairs if all(known[start:stop])]


def _fits(pair, max_words):
    return all(0 < len(tokens) <= (max_words or len(tokens)) for tokens in pair)


def _vocabulary(utterances, pairs, settings):
    used = sorted({row for start, stop in pairs for row in range(start, stop)})
    vocabulary = Vocabulary.count((utterances[row] for row in used), settings.min_count)
    size = settings.vocabulary_size
    return Vocabulary(vocabulary.words[: 2 + size]) if size else vocabulary


def _encode(utterances, pairs, vocabulary):
    ids = [[*vocabulary.encode(tokens), EOS_ID] for tokens in utterances]
    texts = [" ".join(tokens) for tokens in utterances]
    return {
        "source": [[id for turn in ids[start : stop - 1] for id in turn] for start, stop in pairs],
        "target": [ids[stop - 1] for _, stop in pairs],
        "source_text": ["\t".join(texts[start : stop - 1]) for start, stop in pairs],
        "target_text": [texts[stop - 1] for _, stop in pairs],
    }


def _letters(split, row):
    """A pair without case and signs."""
    return tuple(re.sub(r"[\W_]+", "", split[name][row].lower()) for name in ("source_text", "target_text"))


def _statistics(split):
    """Lengths are in words, without `_EOS_`."""
    source, target = ([sum(id != EOS_ID for id in ids) for ids in split[name]] for name in ("source", "target"))
    unknown = sum(ids.count(UNK_ID) for ids in split["target"])
    return {
        "source_words_95": round(float(np.percentile(source, 95)), 2),
        "target_words_mean": round(float(np.mean(target)), 2),
        "target_words_95": round(float(np.percentile(target, 95)), 2),
        "target_words_most": max(target),
        "unknown_fraction_of_target": round(unknown / sum(target), 4),
        "seen": sum(split["seen"]),
    }
