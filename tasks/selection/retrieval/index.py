"""An index of responses on disk, which finds responses to a conversation.

A pair is a response and its context, the last turns before it. The last turn of the context is its
question: the turn that the response once answered. The directory of an index has

config.json        version and sizes; tokenizer and vocabulary digest of the run that ranks the
                   responses
idf.json           `{word: inverse document frequency}` of all words; a document is a response
contexts/          bm25s index that searches contexts and returns pairs
responses/         bm25s index that searches distinct responses and returns the first pair of each

A stored pair is a JSON object:

text               the response
context            list of turns, the oldest first
"""

import math
import pathlib
import threading
from typing import NamedTuple

from colloquy.base.files import UserError, in_one_line
from colloquy.data.json_files import read_json
from colloquy.data.tokenizer_config import TokenizerConfig

# Version of the files; an index of another version is refused.
VERSION = 8
CONFIG = "config.json"
IDF = "idf.json"
CONTEXTS = "contexts"
RESPONSES = "responses"

# Turns in the context of a pair.
CONTEXT_TURNS = 2
# Last turns of a conversation whose words are searched in responses.
RECENT_TURNS = 6
# Largest number of responses that each of the two searches finds.
HITS_PER_SEARCH = 100


class Hit(NamedTuple):
    """A response to a conversation; one from a user's list of responses has only its `text`."""

    text: str
    # Distinct words of the response.
    words: frozenset = frozenset()
    # Context that the response once answered.
    context: list = []
    # `word_similarity` of the question and the last turn of the conversation, from 0 to 1.
    question_similarity: float = 0.0


class RetrievalIndex:
    """An index, which is memory-mapped.

    Args:
        path: Its directory.
        vocabulary: `data.vocabulary.Vocabulary` of the run that ranks its responses.

    Raises:
        UserError: The directory is not an index of this version, or was built for another
            vocabulary, or a file of it is damaged.
    """

    def __init__(self, path, vocabulary):
        path = pathlib.Path(path)
        config = _read_config(path)
        try:
            if config["vocabulary"] != vocabulary.digest():
                raise UserError(
                    f"{path} was built for a run with another vocabulary: "
                    "build an index for this run, with --run"
                )
            self.text = TokenizerConfig.of(config["text"])
            self.size = config["responses"]
            self.idf = read_json(path / IDF)
            self.contexts = _load_bm25(path / CONTEXTS)
            self.responses = _load_bm25(path / RESPONSES)
        except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
            reason = in_one_line(f"{type(error).__name__}: {error}", 200)
            raise UserError(f"{path} is a damaged index: remove it. {reason}") from error
        # One search at a time: to read a pair, bm25s seeks in a file that all threads share.
        self._lock = threading.Lock()

    def search(self, words_of_turns):
        """Finds responses that may continue a conversation.

        Args:
            words_of_turns: The words of each turn, the oldest turn first.

        Yields:
            `Hit`s with distinct texts, in this order:

            1. Those found by their contexts, ordered by `question_similarity`; where that is
               equal, by their similarity to the whole conversation.
            2. Those found by their own words alone, ordered by their similarity to the whole
               conversation.
        """
        conversation_words = set().union(*words_of_turns)
        recent_words = set().union(*words_of_turns[-RECENT_TURNS:])
        last_words = set(words_of_turns[-1])
        with self._lock:
            # A frequent response has many pairs but gives one hit: ask for twice as many pairs.
            by_context = _first_pairs(search_bm25(self.contexts, last_words, 2 * HITS_PER_SEARCH))
            by_response = _first_pairs(search_bm25(self.responses, recent_words, HITS_PER_SEARCH))

        def make_hit(pair):
            words = frozenset(self.text.words(pair["text"]))
            question_words = set(self.text.words(pair["context"][-1]))
            similarity = word_similarity(last_words, question_words, self.idf)
            return Hit(pair["text"], words, pair["context"], similarity)

        def similarity_to_conversation(hit):
            return word_similarity(conversation_words, hit.words, self.idf)

        def similarities(hit):
            return hit.question_similarity, similarity_to_conversation(hit)

        yield from sorted(map(make_hit, by_context.values()), key=similarities, reverse=True)

        # Often enough hits are found by their contexts. Then these texts need not be split.
        others = [pair for text, pair in by_response.items() if text not in by_context]
        yield from sorted(map(make_hit, others), key=similarity_to_conversation, reverse=True)


def search_bm25(retriever, words, count):
    """Searches a `bm25s.BM25`.

    Returns:
        The `count` documents of its corpus with the highest scores, the best first. There are
        fewer if fewer documents have a score above 0.
    """
    known_words = sorted(set(words) & retriever.vocab_dict.keys())
    if not known_words:
        return []
    count = min(count, len(retriever.corpus))
    documents, scores = retriever.retrieve([known_words], k=count, show_progress=False)
    return documents[0][scores[0] > 0].tolist()


def word_similarity(words, others, idf):
    """The cosine similarity of two sets of words, from 0 to 1; 0 if a set has no word of `idf`.

    A set is a vector with one number per word: the idf of a word in the set, 0 of any other.

    Args:
        words, others: Sets of words.
        idf: `{word: inverse document frequency}`; a word that it lacks does not count.
    """
    # The dot product sums idf ** 2 over the words in common: it is the square of their norm.
    dot_product = _idf_norm(words & others, idf) ** 2
    if dot_product == 0:
        return 0.0
    return dot_product / (_idf_norm(words, idf) * _idf_norm(others, idf))


def _idf_norm(words, idf):
    # Sort the words: a set has another order in each process, and the last bits of the norm depend
    # on the order.
    return math.hypot(*[idf.get(word, 0.0) for word in sorted(words)])


def _first_pairs(pairs):
    """The first pair of each of the first `HITS_PER_SEARCH` distinct responses, `{text: pair}`."""
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
    except (UserError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: expected an index, which python -m colloquy.tools.build_index makes. "
            f"Received: no {CONFIG} of an index"
        ) from error
    if version != VERSION:
        raise UserError(
            f"{path}: expected an index of version {VERSION}, received {version}: remove it and "
            "build it anew by python -m colloquy.tools.build_index --run=RUN --corpus=CORPUS "
            f"--source=DIRECTORY --out={path}"
        )
    return config


def _load_bm25(path):
    # Imported here: where JAX is installed, importing it starts JAX, which can then join no hosts.
    import bm25s

    return bm25s.BM25.load(path, load_corpus=True, mmap=True, show_progress=False, verbosity=0)
