"""An index of responses on disk, which finds responses to a conversation.

config.json        sources, sizes, and the vocabulary of the run that it belongs to
idf.json           inverse document frequency, among the responses, of each word of the pairs
contexts/          bm25s index over the contexts of the pairs; its corpus: the pairs
responses/         bm25s index over the distinct responses; its corpus: a pair of each response
word_vectors.npy   the model's word vectors times idf, float32 `(vocabulary + 1, E)`
vectors.npy        unit vectors of the distinct responses, float32 `(responses, E)`

A pair is a JSON object:

text               the response
context            the last turns before it
response           the number of the response among the distinct ones: its row of vectors.npy
words              the distinct words of the response, sorted
norm               of the idf of these
question_words     the distinct words of the last turn of the context, sorted
question_norm      of the idf of these
"""

import collections
import dataclasses
import math
import pathlib
import threading
from typing import NamedTuple

import bm25s
import numpy as np

from colloquy.base.files import UserError
from colloquy.data.text_files import read_json
from colloquy.data.tokenizers import words_of

VERSION = 6
CONFIG, IDF = "config.json", "idf.json"
CONTEXTS, RESPONSES = "contexts", "responses"
WORD_VECTORS, VECTORS = "word_vectors.npy", "vectors.npy"
SEARCHES = ("contexts", "responses", "vectors")

TURNS = 2  # turns of a pair's context that are stored and searched
TURNS_READ = 6  # turns of a conversation by which responses are searched
HITS_PER_SEARCH = 100
# Weight of the cosine of the vectors beside that of the words, see docs/retrieval.md.
VECTOR_WEIGHT = 0.1


class Hit(NamedTuple):
    """A response that was found; one that a user gave has its text alone."""

    text: str
    words: frozenset[str] = frozenset()  # its distinct words
    context: list[str] = []  # the last turns of a context that it was a response to
    ranks: dict[str, int] = {}  # its rank, from 1, in each of `SEARCHES` that found it
    # Similarity of the last turn of the conversation and of `context`, from 0 to 1.
    question: float = 0.0
    # The paper's `g(c, r)` by a model that ranked it, from 0 to 1.
    score: float = 0.0
    # What it is ordered by: the model's logit plus `answers.QUESTION_WEIGHT` times `question`.
    total: float = 0.0


class RetrievalIndex:
    """An index, memory-mapped, for a run with a `data.vocabulary.Vocabulary`.

    Raises:
        UserError: The directory is not an index of this version, or was built for another
            vocabulary.
    """

    def __init__(self, path, vocabulary):
        path = pathlib.Path(path)
        self.config = read_config(path)
        if self.config["vocabulary"] != vocabulary.digest():
            raise UserError(
                f"{path} was built for a run of another vocabulary: "
                "build one with --run of this run"
            )
        # Hashed words have no vector.
        self.vocabulary = dataclasses.replace(vocabulary, hashed=0)
        self.tokenizer = self.config["text"]
        self.size = self.config["responses"]
        self.idf = read_json(path / IDF)
        self.contexts = _load_bm25(path / CONTEXTS)
        self.responses = _load_bm25(path / RESPONSES)
        self.word_vectors = np.load(path / WORD_VECTORS)
        self.vectors = np.load(path / VECTORS, mmap_mode="r")
        # bm25s reads a pair by moving the position of one file.
        self._lock = threading.Lock()

    def search(self, turns):
        """Finds responses that may continue a conversation.

        Args:
            turns: Texts, the oldest first.

        Returns:
            Distinct `Hit`s, those most similar to the whole conversation first.
        """
        words_of_turns = [self.split(turn) for turn in turns]
        last_words = words_of_turns[-1]
        read_words = _flatten(words_of_turns[-TURNS_READ:])
        all_words = _flatten(words_of_turns)

        context_vector = text_vector(read_words, self.vocabulary, self.word_vectors)
        with self._lock:
            pairs_by_search = {
                "contexts": self._search_contexts(last_words),
                "responses": search_bm25(self.responses, read_words, HITS_PER_SEARCH),
                "vectors": self._search_vectors(context_vector),
            }

        found_pairs = {}
        ranks = collections.defaultdict(dict)
        for search, pairs in pairs_by_search.items():
            for rank, pair in enumerate(pairs, 1):
                found_pairs.setdefault(pair["text"], pair)
                ranks[pair["text"]][search] = rank

        pairs = list(found_pairs.values())
        words_of_texts = [frozenset(pair["words"]) for pair in pairs]
        words_of_questions = [set(pair["question_words"]) for pair in pairs]
        norms = [pair["norm"] for pair in pairs]
        question_norms = [pair["question_norm"] for pair in pairs]
        word_similarities = self.word_similarities(all_words, words_of_texts, norms)
        question_similarities = self.word_similarities(
            last_words, words_of_questions, question_norms
        )

        hits = []
        similarity_by_text = {}
        for i, pair in enumerate(pairs):
            text = pair["text"]
            hit = Hit(
                text,
                words=words_of_texts[i],
                context=pair["context"],
                ranks=ranks[text],
                question=question_similarities[i],
            )
            hits.append(hit)
            cosine = float(self.vectors[pair["response"]] @ context_vector)
            similarity_by_text[text] = word_similarities[i] + VECTOR_WEIGHT * cosine
        return sorted(hits, key=lambda hit: -similarity_by_text[hit.text])

    def split(self, text):
        """Splits a text into words as the run of the index does."""
        return words_of(text, **self.tokenizer)

    def word_similarities(self, words, words_of_texts, norms):
        """The cosine of the idf of the words of a text with that of each other text.

        It is 0 without known words.

        Args:
            words: The words of the text; each counts once.
            words_of_texts: Sets of words.
            norms: `idf_norm` of each set.
        """
        words = set(words)
        own_norm = idf_norm(words, self.idf)
        similarities = []
        for other, norm in zip(words_of_texts, norms, strict=True):
            shared_norm = idf_norm(words & other, self.idf)
            product = own_norm * norm
            similarities.append(shared_norm**2 / product if product > 0 else 0.0)
        return similarities

    def _search_contexts(self, words):
        """Finds pairs whose context shares words with a turn, the best pair of each response."""
        # The contexts of a frequent response may fill the first hundred.
        best_pairs = {}
        for pair in search_bm25(self.contexts, words, 2 * HITS_PER_SEARCH):
            best_pairs.setdefault(pair["text"], pair)
        return list(best_pairs.values())[:HITS_PER_SEARCH]

    def _search_vectors(self, context_vector):
        """Finds the responses with the largest cosine with a context, by comparing all."""
        if not context_vector.any():
            return []
        cosines = self.vectors @ context_vector
        count = min(HITS_PER_SEARCH, self.size)
        best = np.argpartition(-cosines, count - 1)[:count]
        best = best[np.argsort(-cosines[best], kind="stable")]
        return [self.responses.corpus[number] for number in best.tolist()]


def search_bm25(retriever, words, count):
    """The documents of at most `count` highest BM25 scores above 0, the best first."""
    known_words = sorted(set(words) & retriever.vocab_dict.keys())
    if not known_words:
        return []
    count = min(count, len(retriever.corpus))
    documents, scores = retriever.retrieve([known_words], k=count, show_progress=False)
    return documents[0][scores[0] > 0].tolist()


def idf_norm(words, idf):
    """The norm of the idf of distinct words.

    Args:
        words: Set of words.
        idf: `{word: inverse document frequency}`; other words do not count.
    """
    # Sorted, as sets have another order in each process, and sums then other last bits.
    return math.hypot(*[idf.get(word, 0.0) for word in sorted(words)])


def text_vector(words, vocabulary, word_vectors):
    """The unit vector of a text, float32 `(E,)`: its word vectors' sum; zeros without known words.

    Args:
        words: The words of the text.
        vocabulary: `data.vocabulary.Vocabulary` without hashed words.
        word_vectors: Word vectors times idf, float32 `(vocabulary + 1, E)`; zeros: not counted.
    """
    total = word_vectors[vocabulary.encode(words)].sum(axis=0)
    norm = np.linalg.norm(total)
    return total / norm if norm > 0 else total


def read_config(path):
    """Reads the `config.json` of an index of this version; any other directory is a `UserError`."""
    try:
        config = read_json(path / CONFIG)
        version = config["index"]
    except (UserError, KeyError, TypeError):
        version = "none"
    if version != VERSION:
        raise UserError(
            f"{path}: expected an index of version {VERSION}, received {version}: remove it and "
            "build it anew by python -m colloquy.tools.build_index --run=RUN --corpus=CORPUS "
            f"--source=DIRECTORY --out={path}"
        )
    return config


def is_word(token):
    """Whether a token has a letter or a digit."""
    return any(character.isalnum() for character in token)


def _load_bm25(path):
    return bm25s.BM25.load(path, load_corpus=True, mmap=True, show_progress=False, verbosity=0)


def _flatten(lists):
    return [word for words in lists for word in words]
