"""An index of (context, response) pairs on disk, which finds responses to a conversation.

config.json        sources, sizes, and the vocabulary that it belongs to
checksums.json     SHA-256 of each other file
utterances.bin     texts, UTF-8, concatenated; the distinct responses come first
utterances.npy     start of each text, int64 `(utterances + 1,)`
pairs.npy          int32 `(pairs, TURNS + 1)`: numbers of a context's last turns, -1: none, and of
its response words.txt          words of the texts, for BM25 contexts/          BM25 over the
contexts of the pairs responses/         BM25 over the distinct responses responses.usearch
half-precision vectors of the distinct responses, and the graph that finds the nearest encoder.npz
`tasks.selection.retrieval.encoder.PairEncoder`

Large files are memory-mapped. The results of three searches are sorted by the words that they share
with the whole conversation; `Hit.places` has the order of each search.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import pathlib
from typing import NamedTuple

import bm25s
import numpy as np
from usearch.index import Index as NearestVectors

from colloquy.base.files import UserError, is_sealed
from colloquy.data.sequences import Sequences
from colloquy.data.text_files import read_json
from colloquy.data.tokenizers import words_of
from colloquy.data.vocabulary import UNK_ID, Vocabulary
from colloquy.tasks.selection.retrieval.encoder import PairEncoder

TURNS = 2  # turns of a pair's context that are stored and searched by their words
READ = 6  # turns of a conversation by which responses are searched
# most index entries that a search by words reads, those of the rarest words first
POSTINGS = 2_000_000
SEARCHED = 100  # most responses found by each search
# weight of the cosine of the vectors beside that of the words; chosen on dev, docs/retrieval.md
VECTOR_WEIGHT = 0.1
VERSION = 2
CONFIG, WORDS = "config.json", "words.txt"
TEXTS, OFFSETS, PAIRS = "utterances.bin", "utterances.npy", "pairs.npy"
CONTEXTS, RESPONSES, VECTORS, ENCODER = "contexts", "responses", "responses.usearch", "encoder.npz"
SEARCHES = ("contexts", "responses", "vectors")


class Hit(NamedTuple):
    """A response that was found; one that a user gave has its text alone."""

    text: str
    context: list[str] = []  # the last turns of a context that it was a response to
    places: dict[str, int] = {}  # its place, from 1, in each of `SEARCHES` that found it
    # similarity of the words of the last turns, of the conversation and of `context`, 0 to 1
    question: float = 0.0
    score: float = 0.0  # the paper's `g(c, r)` by a model that ranked it, in (0, 1)
    # the number that it is ranked by: the model's logit, plus `answers.QUESTION` times `question`
    total: float = 0.0


class RetrievalIndex:
    """An index, memory-mapped, for a run with a `data.vocabulary.Vocabulary`.

    A `UserError` if a file is not as it was written, or the index was built for another vocabulary.
    """

    def __init__(self, path, vocabulary):
        path = pathlib.Path(path)
        self.config = read_config(path)
        if self.config["vocabulary"] != vocabulary_hash(vocabulary):
            raise UserError(
                f"{path} was built for a run of another vocabulary: build one with --run of this run"
            )
        self.vocabulary = dataclasses.replace(vocabulary, hashed=0)  # hashed words have no vector
        self.text, self.size = self.config["text"], self.config["responses"]
        self.words = Vocabulary.load(path / WORDS)
        self.encoder = PairEncoder.load(path / ENCODER)
        self._texts = np.memmap(path / TEXTS, np.uint8, "r")
        self._offsets = np.load(path / OFFSETS, mmap_mode="r")
        self._pairs = np.load(path / PAIRS, mmap_mode="r")
        self._responses_of_pairs = self._pairs[:, -1].copy()  # searched often
        options = {"mmap": True, "load_vocab": False, "show_progress": False}
        self._contexts = bm25s.BM25.load(path / CONTEXTS, **options)
        self._responses = bm25s.BM25.load(path / RESPONSES, **options)
        self._vectors = NearestVectors.restore(path / VECTORS, view=True)
        frequency = np.diff(self._responses.scores["indptr"])
        self._idf = np.log((1 + self.size) / (1 + frequency)).astype(np.float32)
        self._idf[: UNK_ID + 1] = 0.0

    def search(self, turns):
        """The responses that may continue a conversation, texts, oldest first: distinct `Hit`s, the
        best first.
        """
        said = self.cut(turns)
        last, read, whole = (list(itertools.chain(*said[-n:])) for n in (1, READ, len(said)))
        pair_of = {}  # the best pair of each response
        for pair in best_by_words(self._contexts, self.words.encode(last), 2 * SEARCHED):
            pair_of.setdefault(int(self._responses_of_pairs[pair]), pair)
        vector = self.encoder.contexts(self._ids([read]))[0]
        found = {
            "contexts": list(pair_of)[:SEARCHED],
            "responses": best_by_words(self._responses, self.words.encode(read), SEARCHED),
            "vectors": self._vectors.search(vector, SEARCHED).keys.astype(int).tolist()
            if vector.any()
            else [],
        }
        responses = list(dict.fromkeys(itertools.chain(*found.values())))
        if not responses:
            return []
        first_pairs = np.searchsorted(self._responses_of_pairs, responses)
        pairs = self._pairs[
            [pair_of.get(*each) for each in zip(responses, first_pairs, strict=True)]
        ]
        contexts = [[self.utterance(number) for number in row[:-1] if number >= 0] for row in pairs]
        texts = list(map(self.utterance, responses))
        words = self.cut(texts)
        questions = self.cosines(last, self.cut(context[-1] for context in contexts))
        hits = map(Hit, texts, contexts, ({} for _ in texts), questions.tolist())
        hits = dict(zip(responses, hits, strict=True))
        found["contexts"].sort(key=lambda response: -hits[response].question)
        for search, of_search in found.items():
            for place, response in enumerate(of_search, 1):
                hits[response].places[search] = place
        scores = self.cosines(whole, words) + VECTOR_WEIGHT * (
            self.encoder.responses(self._ids(words)) @ vector
        )
        return [hits[responses[i]] for i in np.argsort(-scores, kind="stable")]

    def cut(self, texts):
        return [words_of(text, **self.text) for text in texts]

    def cosines(self, context, responses):
        """Cosines of TF-IDF vectors without counts, of words and lists of words; 0 if the index
        knows no word.
        """
        weights = np.zeros_like(self._idf)
        ids = np.unique(np.array(self.words.encode(context), int))
        weights[ids] = self._idf[ids] ** 2
        texts = Sequences.of([self.words.encode(words) for words in responses])
        text, ids = np.divmod(np.unique(texts.owners() * len(weights) + texts.ids), len(weights))
        shared = np.bincount(text, weights[ids], len(texts))
        squares = np.bincount(text, self._idf[ids] ** 2, len(texts))
        return shared / np.sqrt(np.maximum(squares * weights.sum(), 1e-9))

    def utterance(self, number):
        return self._texts[self._offsets[number] : self._offsets[number + 1]].tobytes().decode()

    def _ids(self, texts):
        return Sequences.of([self.vocabulary.encode(words) for words in texts])


def best_by_words(index, ids, count):
    """The numbers of at most `count` documents with the highest BM25 scores above 0, the best
    first.

    Frequent words say little and cost most: a search reads the rarest words first, `POSTINGS`
        entries in all.
    """
    ids, starts = np.setdiff1d(np.array(ids, np.int64), UNK_ID), index.scores["indptr"]
    size = (starts[ids + 1] - starts[ids]).astype(np.int64)
    order = np.argsort(size, kind="stable")
    order = order[size[order] > 0]
    kept = np.cumsum(size[order]) <= POSTINGS
    kept[:1] = True
    if not len(order):
        return []
    scores = index.get_scores_from_ids(ids[order][kept])
    top = np.flatnonzero(scores > 0)
    if len(top) > count:
        top = top[np.argpartition(scores[top], -count)[-count:]]
    return top[np.lexsort((top, -scores[top]))].tolist()


def vocabulary_hash(vocabulary):
    """SHA-256 of the words of a `Vocabulary` in their order."""
    return hashlib.sha256("\n".join(vocabulary.words).encode()).hexdigest()


def read_config(path):
    """The `config.json` of an index whose files are as they were written; usearch maps damaged ones
    too, and crashes.

    A `UserError`, with the command that builds it again, if a file is not, or the index is of
    another version.
    """
    with contextlib.suppress(UserError, KeyError, TypeError):
        if is_sealed(path) and (config := read_json(path / CONFIG))["index"] == VERSION:
            return config
    raise UserError(
        f"{path}: expected an index of version {VERSION}, each file as it was written. Remove it and build it again: "
        f"python -m colloquy.tools.build_index --run=RUN --corpus=CORPUS --source=DIRECTORY --out={path}"
    )
