"""An index of (context, response) pairs on disk: which responses may continue a conversation?

config.json        what it was made of, its sizes, the vocabulary it belongs to
utterances.bin     texts, UTF-8, concatenated; the distinct responses come first
utterances.npy     where each text begins, int64 `(utterances + 1,)`
pairs.npy          int32 `(pairs, TURNS + 1)`: the numbers of a context's last turns, -1: none, and of its response
words.txt          the words of the texts, for BM25
contexts/          BM25 over the contexts of the pairs
responses/         BM25 over the distinct responses
responses.usearch  half-precision vectors of the distinct responses, and the graph that finds the nearest
encoder.npz        a `tasks.selection.retrieval.encoder.PairEncoder`
added.jsonl        pairs that were added since, if any

All that is large is memory-mapped. What three searches find is put in order by the words that it shares with the whole
conversation; `Hit.places` has the order of each search.
"""

import contextlib
import dataclasses
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
from tasks.selection.retrieval.encoder import PairEncoder

TURNS = 2
"""Turns of a pair's context that are stored and searched by their words."""
READ = 6
"""Turns of a conversation by which responses are searched."""
POSTINGS = 2_000_000
"""Entries of words that a search by words reads at most, those of the rarest words first."""
SEARCHED = 100
"""Responses that each search gives at most."""
VECTOR_WEIGHT = 0.1
"""What the cosine of the vectors counts beside that of the words; chosen on dev, docs/retrieval.md."""
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
    cosine: float = 0.0
    """How alike it and the whole conversation are by their words, 0 to 1."""
    question: float = 0.0
    """How alike the last turns of the conversation and of `context` are by their words, 0 to 1."""


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
        self.vocabulary = dataclasses.replace(vocabulary, hashed=0)  # hashed words have no vector
        self.text = self.config["text"]
        try:
            self.words = Vocabulary.load(path / WORDS)
            self.encoder = PairEncoder.load(path / ENCODER)
            self._texts = np.memmap(path / TEXTS, np.uint8, "r")
            self._offsets = np.load(path / OFFSETS, mmap_mode="r")
            self._pairs = np.load(path / PAIRS, mmap_mode="r")
            self._answers = self._pairs[:, -1].copy()  # searched often, as one piece
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
        frequency = np.diff(self._responses.scores["indptr"])
        self._idf = np.log((1 + self.size) / (1 + frequency)).astype(np.float32)
        self._idf[: UNK_ID + 1] = 0.0
        self._added, self._added_vectors = [], new_vectors(self.encoder.dimension)
        if (path / ADDED).is_file():
            for turns, response in _read_added(path / ADDED):
                self._add(turns, response)

    # === Search ===

    def search(self, turns, count=SEARCHED):
        """The responses that may continue a conversation.

        Args:
            turns: What was said, texts, the oldest first.
            count: How many responses to give at most.

        Returns:
            List of `Hit`, the best first; none twice.
        """
        said = self.cut(turns)
        last, read, whole = ([word for turn in said[-n:] for word in turn] for n in (1, READ, len(said)))
        pair_of = {}
        for pair in best_by_words(self._contexts, self.words.encode(last), 2 * SEARCHED):
            pair_of.setdefault(int(self._answers[pair]), pair)
        asked, nearest = list(pair_of)[:SEARCHED], self._nearest(read, SEARCHED)
        by_words = best_by_words(self._responses, self.words.encode(read), SEARCHED)
        responses = list(dict.fromkeys([*asked, *by_words, *nearest]))
        if not responses:
            return []
        texts = [self._response(response) for response in responses]
        contexts = [self._context(response, pair_of.get(response)) for response in responses]
        words, questions = self.cut(texts), self.cut("".join(context[-1:]) for context in contexts)
        cosines = self.cosines(whole, words)
        rows = zip(texts, contexts, cosines.tolist(), self.cosines(last, questions).tolist(), strict=True)
        hits = [Hit(text, context, {}, cosine, question) for text, context, cosine, question in rows]
        hit_of = dict(zip(responses, hits, strict=True))
        asked += [r for r in nearest if r >= self.size and hit_of[r].question]  # BM25 does not know additions
        asked.sort(key=lambda response: -hit_of[response].question)
        for search, found in zip(SEARCHES, (asked, by_words, nearest), strict=True):
            for place, response in enumerate(found, 1):
                hit_of[response].places[search] = place
        scores = cosines + VECTOR_WEIGHT * (self._vectors_of(words) @ self._vector(read))
        return [hits[i] for i in np.argsort(-scores, kind="stable")[:count]]

    def cut(self, texts):
        """The words of each text, lists of strings."""
        return [words_of(text, **self.text) for text in texts]

    def cosines(self, context, responses):
        """Cosines of TF-IDF vectors without counts, of words and lists of words; 0 where the index knows no word."""
        weights = np.zeros_like(self._idf)
        ids = np.unique(self.words.encode(context))
        weights[ids] = self._idf[ids] ** 2
        texts = Sequences.of([self.words.encode(words) for words in responses])
        row = np.repeat(np.arange(len(texts)), texts.lengths)
        row, ids = np.divmod(np.unique(row * len(weights) + texts.ids), len(weights))
        shared, squares = (np.bincount(row, w[ids], len(texts)) for w in (weights, self._idf**2))
        return shared / np.sqrt(np.maximum(squares * weights.sum(), 1e-9))

    def _vector(self, words):
        [vector] = self.encoder.contexts(Sequences.of([self.vocabulary.encode(words)]))
        return vector

    def _vectors_of(self, responses):
        return self.encoder.responses(Sequences.of([self.vocabulary.encode(words) for words in responses]))

    def _nearest(self, words, count):
        """The numbers of the responses with the nearest vectors."""
        vector = self._vector(words)
        if not vector.any():
            return []
        found = [index.search(vector, count) for index in (self._vectors, self._added_vectors) if len(index)]
        keys, distances = (np.concatenate([getattr(f, name) for f in found]) for name in ("keys", "distances"))
        return keys[np.argsort(distances, kind="stable")][:count].astype(int).tolist()

    def _response(self, number):
        return self._added[number - self.size][1] if number >= self.size else self.utterance(number)

    def _context(self, response, pair=None):
        """The last turns of what a response was said to: in a pair, or in the first of its pairs."""
        if response >= self.size:
            return self._added[response - self.size][0][-TURNS:]
        pair = np.searchsorted(self._answers, response) if pair is None else pair
        return [self.utterance(number) for number in self._pairs[pair, :-1] if number >= 0]

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
        [vector] = self._vectors_of([words_of(response, **self.text)])
        self._added_vectors.add(len(self), vector)
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
