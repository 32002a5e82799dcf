"""An index of (context, response) pairs on disk: which responses may continue a conversation?

config.json        what it was made of, its sizes, the vocabulary it belongs to
utterances.bin     texts, UTF-8, concatenated; the distinct responses come first
utterances.npy     where each text begins, int64 `(utterances + 1,)`
pairs.npy          int32 `(pairs, TURNS + 1)`: the numbers of a context's last turns, -1: none, and of its response
words.txt          the words of the texts, for BM25
contexts/          BM25 over the contexts of the pairs
responses/         BM25 over the distinct responses
responses.usearch  half-precision vectors of the distinct responses, and the graph that finds the nearest
encoder.npz        a `tasks.selection.vectors.PairEncoder`
added.jsonl        pairs that were added since, if any

All that is large is memory-mapped. Three searches are fused by rank alone (Cormack et al. 2009).
"""

import contextlib
import hashlib
import json
import pathlib
from typing import NamedTuple

import bm25s
import numpy as np
from usearch.index import Index as NearestVectors

from base.files import UserError
from data.sequences import Sequences
from data.tokenizers import words_of
from data.vocabulary import UNK_ID, Vocabulary
from tasks.selection.vectors import PairEncoder

TURNS = 2
"""Turns of a pair's context that are stored and searched by their words."""
READ = 6
"""Turns of a conversation by which responses are searched."""
POSTINGS = 2_000_000
"""Entries of words that a search by words reads at most, those of the rarest words first."""
RANK = 60
"""The constant of reciprocal rank fusion."""
VERSION = 1
CONFIG, TEXTS, OFFSETS, PAIRS, WORDS = "config.json", "utterances.bin", "utterances.npy", "pairs.npy", "words.txt"
CONTEXTS, RESPONSES, VECTORS, ENCODER = "contexts", "responses", "responses.usearch", "encoder.npz"
ADDED = "added.jsonl"
SEARCHES = ("contexts", "responses", "vectors")


class Hit(NamedTuple):
    """A response that was found."""

    text: str
    context: list[str]
    """The last turns of a context that it was a response to."""
    places: dict[str, int]
    """Its place in each of `SEARCHES` that found it, from 1."""


class RetrievalIndex:
    """An index that `tasks.selection.indexing.build` wrote, memory-mapped.

    Args:
        path: Its directory.
        vocabulary: The `data.vocabulary.Vocabulary` of the run that it is to serve.

    Raises:
        UserError: where a file is missing or damaged, or it was built for another vocabulary.
    """

    def __init__(self, path, vocabulary):
        self.path = path = pathlib.Path(path)
        self.config = read_config(path)
        if self.config["vocabulary"] != vocabulary_hash(vocabulary):
            raise UserError(f"{path} was built for a run of another vocabulary: build one with --run of this run")
        self.vocabulary, self.text = vocabulary, self.config["text"]
        try:
            self.words = Vocabulary.load(path / WORDS)
            self.encoder = PairEncoder.load(path / ENCODER)
            self._texts = np.memmap(path / TEXTS, np.uint8, "r")
            self._offsets = np.load(path / OFFSETS, mmap_mode="r")
            self._pairs = np.load(path / PAIRS, mmap_mode="r")
            options = {"mmap": True, "load_vocab": False, "show_progress": False}
            self._contexts, self._responses = (
                bm25s.BM25.load(path / name, **options) for name in (CONTEXTS, RESPONSES)
            )
            self._vectors = NearestVectors.restore(path / VECTORS, view=True)
            if self._vectors is None:
                raise ValueError(f"{VECTORS} cannot be read")
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise UserError(f"{path}: expected an index that tools.build_index wrote. {error}") from error
        self.size = self.config["responses"]
        self._added, self._added_vectors = [], new_vectors(self.encoder.dimension)
        if (path / ADDED).is_file():
            for turns, response in _read_added(path / ADDED):
                self._add(turns, response)

    # === Search ===

    def search(self, turns, count=100):
        """The responses that may continue a conversation.

        Args:
            turns: What was said, texts, the oldest first.
            count: How many responses to give at most.

        Returns:
            List of `Hit`, the best first; none twice.
        """
        turns = [words_of(turn, **self.text) for turn in turns]
        last, read = ([word for turn in turns[-n:] for word in turn] for n in (TURNS, READ))
        pair_of, places = {}, {}
        pairs = best_by_words(self._contexts, self.words.encode(last), 2 * count)
        for pair in pairs:
            pair_of.setdefault(int(self._pairs[pair, -1]), pair)
        found = {
            "contexts": list(pair_of)[:count],
            "responses": best_by_words(self._responses, self.words.encode(read), count),
            "vectors": self._nearest(read, count),
        }
        for search, responses in found.items():
            for place, response in enumerate(responses, 1):
                places.setdefault(response, {})[search] = place
        fused = sorted(places, key=lambda response: -sum(1 / (RANK + place) for place in places[response].values()))
        return [self._hit(response, pair_of.get(response), places[response]) for response in fused[:count]]

    def _nearest(self, words, count):
        """The numbers of the responses with the nearest vectors."""
        [vector] = self.encoder.contexts(Sequences.of([self.vocabulary.encode(words)]))
        if not vector.any():
            return []
        found = [index.search(vector, count) for index in (self._vectors, self._added_vectors) if len(index)]
        keys, distances = (np.concatenate([getattr(f, name) for f in found]) for name in ("keys", "distances"))
        return keys[np.argsort(distances, kind="stable")][:count].astype(int).tolist()

    def _hit(self, response, pair, places):
        if response >= self.size:
            turns, text = self._added[response - self.size]
            return Hit(text, turns[-TURNS:], places)
        if pair is None:
            pair = np.searchsorted(self._pairs[:, -1], response)
        context = [self.utterance(number) for number in self._pairs[pair, :-1] if number >= 0]
        return Hit(self.utterance(response), context, places)

    def utterance(self, number):
        """A stored text."""
        return self._texts[self._offsets[number] : self._offsets[number + 1]].tobytes().decode()

    def __len__(self):
        return self.size + len(self._added)

    # === Additions ===

    def add(self, turns, response):
        """Adds a pair that the next search may find by its vector, and keeps it in `added.jsonl`.

        Args:
            turns: The context, texts.
            response: Text.
        """
        with open(self.path / ADDED, "a", encoding="utf-8") as file:
            file.write(json.dumps({"turns": turns, "response": response}, ensure_ascii=False) + "\n")
        self._add(turns, response)

    def _add(self, turns, response):
        words = self.vocabulary.encode(words_of(response, **self.text))
        self._added_vectors.add(len(self), self.encoder.responses(Sequences.of([words]))[0])
        self._added.append((turns, response))


def new_vectors(dimension):
    """An empty index of vectors, in half precision."""
    return NearestVectors(ndim=dimension, metric="cos", dtype="f16", connectivity=16, expansion_add=64)


def best_by_words(index, ids, count):
    """The documents with the highest BM25 score above 0.

    Frequent words say little and cost most: a search reads the rarest words first, `POSTINGS` entries in all.

    Args:
        index: A `bm25s.BM25`.
        ids: The words of a query; unknown ones are like no other.
        count: How many documents to give at most.

    Returns:
        List of their numbers, the best first.
    """
    ids, starts = np.unique(ids).astype(np.int64), index.scores["indptr"]
    ids = ids[ids != UNK_ID]
    size = starts[ids + 1].astype(np.int64) - starts[ids]
    ids, size = ids[size > 0], size[size > 0]
    if not len(ids):
        return []
    order = np.argsort(size, kind="stable")
    ids = ids[order][np.cumsum(size[order]) <= max(POSTINGS, size.min())]
    scores = index.get_scores_from_ids(ids)
    top = np.flatnonzero(scores > 0)
    if len(top) > count:
        top = top[np.argpartition(scores[top], -count)[-count:]]
    return top[np.lexsort((top, -scores[top]))].tolist()


# === Files ===


def vocabulary_hash(vocabulary):
    """SHA-256 of the words of a `Vocabulary` in their order."""
    return hashlib.sha256("\n".join(vocabulary.words).encode()).hexdigest()


def read_config(path):
    """The `config.json` of an index.

    Raises:
        UserError: where there is none.
    """
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: expected an index that tools.build_index wrote. {error}") from error
    if not isinstance(config, dict) or config.get("index") != VERSION:
        raise UserError(f"{path / CONFIG}: expected an index of version {VERSION}: build it again")
    return config


def _read_added(file):
    for number, line in enumerate(file.read_text(encoding="utf-8").removesuffix("\n").split("\n"), 1):
        with contextlib.suppress(ValueError):
            match json.loads(line):
                case {"turns": list(turns), "response": str(response)}:
                    yield turns, response
                    continue
        raise UserError(f"{file}, line {number}: expected an object with turns and response. Received: {line!r:.60}")
