"""Builds an index from conversations: pairs, and two BM25 searches of them."""

import collections
import logging
import math
import sys

from colloquy.base.files import UserError, atomic_directory
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
        num_responses = len({pair["text"] for pair in all_pairs})
        pairs = clean_pairs(all_pairs, words_by_text, set(predictor.vocabulary.words))
        if not pairs:
            raise UserError("an index needs conversations with suitable responses. Received: none")

        # Each pair is found by the words of its context.
        context_words = []
        for pair in pairs:
            words = []
            for turn in pair["context"]:
                words += words_by_text[turn]
            context_words.append(words)
        _save_bm25(directory / CONTEXTS, context_words, corpus=pairs)

        # The first pair of each response is found by the words of the response.
        first_pairs = {}
        for pair in pairs:
            first_pairs.setdefault(pair["text"], pair)
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
            "left_out": num_responses - len(first_pairs),
        }
        write_json(directory / CONFIG, config)
    return config


def of_corpus(corpus, source):
    """Yields the conversations of the training split of a corpus as lists of texts.

    A context of a selection corpus is a conversation with its positive response.
    """
    tasks, reader = CORPORA[corpus]
    if "generation" in tasks:
        yield from read_splits(reader, source)["train"].conversations
        return
    for example in reader.read(reader.find_split(source, "train")):
        if example.label == 1:
            yield [*example.turns, example.response]


def read_pairs(conversations, tokenizer):
    """Pairs every turn but the first with the `CONTEXT_TURNS` turns before it.

    Args:
        conversations: Lists of texts, the oldest first.
        tokenizer: `data.tokenizer_config.TokenizerConfig`.

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
                words_by_text[turn] = [sys.intern(word) for word in tokenizer.words(turn)]
        for place in range(1, len(turns)):
            context = turns[max(0, place - CONTEXT_TURNS) : place]
            pair = {"text": turns[place], "context": context}
            pairs.setdefault((*context, turns[place]), pair)
    return list(pairs.values()), words_by_text


def _save_bm25(directory, documents, corpus):
    """Writes a BM25 index of lists of words, which returns the object of `corpus` for each."""
    import bm25s  # imported here: see `index`

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # bm25s logs each step of building
    retriever = bm25s.BM25()
    retriever.index(documents, show_progress=False)
    retriever.save(directory, corpus=corpus, show_progress=False)


def inverse_document_frequency(documents, words):
    """`log((1 + N) / (1 + n))` of each of `words`, which `n` of `N` documents contain."""
    frequency = collections.Counter()
    for document in documents:
        frequency.update(set(document))
    return {word: math.log((1 + len(documents)) / (1 + frequency[word])) for word in sorted(words)}
