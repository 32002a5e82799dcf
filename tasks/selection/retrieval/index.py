"""An index of responses on disk, which finds responses to a conversation.

config.json        sources, sizes, and the vocabulary of the run that it belongs to
idf.json           inverse document frequency, among the responses, of each word of the pairs
contexts/          bm25s index over the contexts of the pairs; its corpus: the pairs
responses/         bm25s index over the distinct responses; its corpus: a pair of each response

A pair is a JSON object:

text               the response
context            the last turns before it
words              the distinct words of the response, sorted
question_words     the distinct words of the last turn of the context, sorted
"""

import math
import pathlib
import threading
from typing import NamedTuple

import bm25s

from colloquy.base.files import UserError
from colloquy.data.text_files import read_json
from colloquy.data.tokenizers import words_of

VERSION = 7
CONFIG, IDF = "config.json", "idf.json"
CONTEXTS, RESPONSES = "contexts", "responses"

TURNS = 2  # turns of a pair's context that are stored and searched
TURNS_READ = 6  # turns of a conversation by which responses are searched
HITS_PER_SEARCH = 100


class Hit(NamedTuple):
    """A response that was found; one that a user gave has its text alone."""

    text: str
    words: frozenset[str] = frozenset()  # its distinct words
    context: list[str] = []  # the last turns of a context that it was a response to
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
        config = _read_config(path)
        if config["vocabulary"] != vocabulary.digest():
            raise UserError(
                f"{path} was built for a run of another vocabulary: "
                "build one with --run of this run"
            )
        self.tokenizer = config["text"]
        self.size = config["responses"]
        self.idf = read_json(path / IDF)
        self.contexts = _load_bm25(path / CONTEXTS)
        self.responses = _load_bm25(path / RESPONSES)
        # bm25s reads a pair by moving the position of one file.
        self._lock = threading.Lock()

    def search(self, turns):
        """Finds responses that may continue a conversation.

        Args:
            turns: Texts, the oldest first.

        Returns:
            Distinct `Hit`s. Those found by their contexts come first, responses to the turns that
            are most similar to the last turn before others; then those found by their own words.
            Among equals, those most similar to the whole conversation come first.
        """
        words_of_turns = [self.split(turn) for turn in turns]
        all_words = set(_flatten(words_of_turns))
        last_words = set(words_of_turns[-1])
        read_words = _flatten(words_of_turns[-TURNS_READ:])
        with self._lock:
            # The contexts of a frequent response may fill the first hundred.
            to_like_turns = search_bm25(self.contexts, last_words, 2 * HITS_PER_SEARCH)
            with_like_words = search_bm25(self.responses, read_words, HITS_PER_SEARCH)

        found_by_context = _by_text(to_like_turns)
        found_by_words = _by_text(with_like_words)
        found = dict(found_by_context)
        for text, pair in found_by_words.items():
            found.setdefault(text, pair)

        rows = []
        for text, pair in found.items():
            words = frozenset(pair["words"])
            question_words = set(pair["question_words"])
            question = word_similarity(last_words, question_words, self.idf)
            hit = Hit(text, words=words, context=pair["context"], question=question)
            first_key = -question if text in found_by_context else math.inf
            rows.append((first_key, -word_similarity(all_words, words, self.idf), hit))
        rows.sort(key=lambda row: row[:2])
        return [hit for _, _, hit in rows]

    def split(self, text):
        """Splits a text into words as the run of the index does."""
        return words_of(text, **self.tokenizer)


def search_bm25(retriever, words, count):
    """The documents of at most `count` highest BM25 scores above 0, the best first."""
    known_words = sorted(set(words) & retriever.vocab_dict.keys())
    if not known_words:
        return []
    count = min(count, len(retriever.corpus))
    documents, scores = retriever.retrieve([known_words], k=count, show_progress=False)
    return documents[0][scores[0] > 0].tolist()


def word_similarity(words, others, idf):
    """The cosine of the idf of two sets of words; 0 if one has no known word.

    Args:
        words, others: Sets of words.
        idf: `{word: inverse document frequency}`; other words do not count.
    """
    product = _idf_norm(words, idf) * _idf_norm(others, idf)
    return _idf_norm(words & others, idf) ** 2 / product if product > 0 else 0.0


def _idf_norm(words, idf):
    # Sorted, as sets have another order in each process, and sums then other last bits.
    return math.hypot(*[idf.get(word, 0.0) for word in sorted(words)])


def _by_text(pairs):
    """The first pair of each response, of at most `HITS_PER_SEARCH` responses: `{text: pair}`."""
    first_pairs = {}
    for pair in pairs:
        if len(first_pairs) == HITS_PER_SEARCH:
            break
        first_pairs.setdefault(pair["text"], pair)
    return first_pairs


def _read_config(path):
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


def _load_bm25(path):
    return bm25s.BM25.load(path, load_corpus=True, mmap=True, show_progress=False, verbosity=0)


def _flatten(lists):
    return [word for words in lists for word in words]
