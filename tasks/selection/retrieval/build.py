"""Builds an index from conversations: pairs, and two BM25 searches of them."""

import collections
import hashlib
import json
import logging
import math
import os
import pathlib
import sys
import tempfile

import bm25s

from colloquy.base.files import UserError, atomic_directory, check_output, checksums_of, writing
from colloquy.data.corpora import CORPORA
from colloquy.data.corpora.splits import read_splits
from colloquy.data.json_files import write_json
from colloquy.tasks.selection.retrieval.clean import clean_pairs
from colloquy.tasks.selection.retrieval.index import (
    CONFIG,
    CONTEXT_TURNS,
    CONTEXTS,
    IDF,
    RESPONSES,
    VERSION,
)

# bm25s logs each step of building on the standard error of the program.
logging.getLogger("bm25s").setLevel(logging.WARNING)

# In a run directory: its index, or conversations (`smn`) to build one from.
INDEX, PAIRS = "index", "pairs"


def build(predictor, out, conversations):
    """Writes an index of the responses of conversations.

    Args:
        predictor: `tasks.selection.predictor.SelectionPredictor` that will rank the responses.
        out: Directory to write; missing or empty.
        conversations: Lists of texts, the oldest first.

    Returns:
        The `config.json` of the index.

    Raises:
        UserError: `clean_pairs` leaves no response, or `out` is in use.
    """
    with atomic_directory(out) as directory:
        all_pairs, words_by_text = read_pairs(conversations, predictor.text)
        pairs = clean_pairs(all_pairs, words_by_text, set(predictor.vocabulary.words))
        if not pairs:
            raise UserError("an index needs conversations with suitable responses. Received: none")

        context_words = []
        # A response is shown with its first context unless a search finds a better one.
        first_pairs = {}
        for pair in pairs:
            first_pairs.setdefault(pair["text"], pair)
            context_words.append([word for turn in pair["context"] for word in words_by_text[turn]])
        _save_bm25(directory / CONTEXTS, context_words, corpus=pairs)

        response_words = [words_by_text[text] for text in first_pairs]
        _save_bm25(directory / RESPONSES, response_words, corpus=list(first_pairs.values()))
        all_words = set().union(*words_by_text.values())
        write_json(directory / IDF, inverse_document_frequency(response_words, all_words))
        config = {
            "index": VERSION,
            "vocabulary": predictor.vocabulary.digest(),
            "text": predictor.text.to_json(),
            "responses": len(first_pairs),
            "pairs": len(pairs),
            "left_out": len({pair["text"] for pair in all_pairs}) - len(first_pairs),
        }
        write_json(directory / CONFIG, config)
    return config


def index_of_run(path, predictor):
    """The index of the run of a `tasks.selection.predictor.SelectionPredictor`.

    It is in the directory of the run. Otherwise it is built, once, from the run's conversations, in
    `$XDG_CACHE_HOME/colloquy` under a name that depends on them and on its words; where that cannot
    be written, as in a read-only container, in the user's directory for temporary files. Nothing is
    written into the run.

    Returns:
        Its directory; `None` without conversations.
    """
    own_index = path / INDEX
    if own_index.is_dir():
        return own_index
    conversations = path / PAIRS
    if not conversations.is_dir():
        return None

    index, reason = _cached_index(path, predictor)
    if index.is_dir():
        return index
    print(f"{reason}{index}: built once, of {conversations}", flush=True)
    try:
        build(predictor, index, of_corpus("smn", conversations))
    except UserError:
        # Another process may have built it meanwhile.
        if not index.is_dir():
            raise
    return index


def _cached_index(path, predictor):
    """Chooses the directory outside of the run `path` that its index has, or will have.

    Returns:
        The directory.
        Why it is not in the cache; empty if it is.
    """
    sources = [
        VERSION,
        predictor.vocabulary.digest(),
        predictor.text.to_json(),
        checksums_of(path / PAIRS),
    ]
    key = hashlib.sha256(json.dumps(sources).encode()).hexdigest()
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    index = pathlib.Path(cache, "colloquy", key)
    if index.is_dir():
        return index, ""
    try:
        check_output(index)
    except UserError as error:
        return _own_temporary_directory() / key, f"{error}; temporary files have it: "
    return index, ""


def _own_temporary_directory():
    """Makes the user's directory for temporary files, to which no other user can write.

    Another user could make a directory of this name first, and put an index into it.
    """
    directory = pathlib.Path(tempfile.gettempdir(), f"colloquy-{os.getuid()}")
    with writing(directory):
        directory.mkdir(mode=0o700, exist_ok=True)
    if directory.lstat().st_uid != os.getuid():
        raise UserError(f"{directory} belongs to another user")
    return directory


# === Conversations ===


def of_corpus(corpus, source):
    """Yields the conversations of the training split of a corpus as lists of texts.

    A context of a selection corpus is a conversation with its positive response.
    """
    tasks, reader = CORPORA[corpus]
    if "generation" in tasks:
        splits = read_splits(reader, source and pathlib.Path(source))
        yield from splits["train"].conversations
        return
    for example in reader.read(reader.find_split(source, "train")):
        if example.label == 1:
            yield [*example.turns, example.response]


def read_pairs(conversations, text):
    """Pairs every turn but the first with the `CONTEXT_TURNS` turns before it.

    Args:
        conversations: Lists of texts, the oldest first.
        text: `data.tokenizer_config.TokenizerConfig`.

    Returns:
        The distinct pairs, dicts of `text` and `context`.
        `{text: words}` of all turns.
    """
    pairs = {}
    words_by_text = {}
    for conversation in conversations:
        turns = [turn.strip() for turn in conversation]
        for turn in turns:
            if turn not in words_by_text:
                # One object for each word: a million texts fit into memory.
                words_by_text[turn] = [sys.intern(word) for word in text.words(turn)]
        for place in range(1, len(turns)):
            context = turns[max(0, place - CONTEXT_TURNS) : place]
            pairs[turns[place], *context] = {"text": turns[place], "context": context}
    return list(pairs.values()), words_by_text


# === Files ===


def _save_bm25(directory, documents, corpus):
    """Writes a BM25 index of lists of words, and for each an object of `corpus`."""
    retriever = bm25s.BM25()
    retriever.index(documents, show_progress=False)
    retriever.save(directory, corpus=corpus, show_progress=False)


def inverse_document_frequency(documents, words):
    """`log((1 + N) / (1 + n))` of each of `words`, which `n` of `N` documents contain."""
    frequency = collections.Counter()
    for document in documents:
        frequency.update(set(document))
    return {word: math.log((1 + len(documents)) / (1 + frequency[word])) for word in sorted(words)}
