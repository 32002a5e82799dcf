"""Builds what `tasks.selection.retrieval.index` reads: conversations become texts, pairs, and three searches.

Texts stay in files and are worked on in parts: the memory that it takes is mostly that of what it writes.
"""

import dataclasses
import json
import os
import pathlib
import tempfile

import numpy as np

from base.files import UserError, atomic_directory
from data.vocabulary import SPECIALS, Vocabulary
from tasks.selection import bm25
from tasks.selection.conversations import of_corpus
from tasks.selection.names import addressing
from tasks.selection.retrieval import index as files
from tasks.selection.retrieval.encoder import PairEncoder
from tasks.selection.retrieval.index import READ, TURNS
from tasks.selection.retrieval.spool import Spool

FIT_PAIRS = 200_000
"""At most so many pairs, drawn at random, say how contexts and responses vary together."""
INDEX, PAIRS = "index", "pairs"
"""In a run directory: its index, and the conversations, as the corpus `smn` has them, that it is built of."""
PLACEHOLDERS = {SPECIALS[1].lower(), "__path__", "__url__"}
"""What stands in corpora for what was taken out of them."""
PART = 20_000
"""Texts that are worked on at once."""


def build(out, conversations, vocabulary, vectors, text, facts=None, threads=2, seed=1):
    """Writes an index.

    Left out are responses without a word, with one of `PLACEHOLDERS` in them, and those that call somebody by name
    (`tasks.selection.names`).

    Args:
        out: Directory to make.
        conversations: Iterable of lists of texts, the oldest first.
        vocabulary: The run's `data.vocabulary.Vocabulary`.
        vectors: The run's word vectors, float `(vocabulary + 1, E)`.
        text: The run's `tokenizer` and `lower`.
        facts: What `config.json` shall say beside, such as where the conversations are from.
        threads: How many build the graph of vectors.
        seed: Of the draw of the pairs that the encoder is fitted to.

    Returns:
        What `config.json` holds.

    Raises:
        UserError: where no response is left, or `out` is in use.
    """
    vocabulary = dataclasses.replace(vocabulary, hashed=0)  # hashed words have no vector
    with atomic_directory(out) as directory, tempfile.TemporaryDirectory(dir=directory) as temporary:
        spool = Spool(pathlib.Path(temporary), conversations)
        words, texts = spool.words(text)
        turns = fit_turns(spool, unfit_of(words, texts, vocabulary))
        if not len(turns):
            raise UserError("an index needs conversations with responses that are fit. Received: none")
        responses, contexts = np.unique(spool.numbers[turns]), spool.before(turns, TURNS)
        stored = _save_texts(directory, spool, turns, responses, contexts)
        Vocabulary(words[1:]).save(directory / files.WORDS)
        bm25.save(directory / files.CONTEXTS, lambda: _joined(texts, contexts), len(words))
        bm25.save(directory / files.RESPONSES, lambda: _joined(texts, responses[:, None]), len(words))

        known = np.array([0, *vocabulary.encode(words[1:])], np.int32)
        drawn = turns[np.random.default_rng(seed).permutation(len(turns))[:FIT_PAIRS]]
        pairs = spool.before(drawn, READ), spool.numbers[drawn, None]
        encoder = PairEncoder.fit(*(lambda n=n: _joined(texts, n, known) for n in pairs), vectors)
        encoder.save(directory / files.ENCODER)
        config = {
            "index": files.VERSION,
            "vocabulary": files.vocabulary_hash(vocabulary),
            "text": text,
            "responses": len(responses),
            "pairs": len(turns),
            "utterances": stored,
            "words": len(words) - 1,
            "left_out": len(np.unique(spool.numbers[spool.places > 0])) - len(responses),
            "dimension": encoder.dimension,
            **(facts or {}),
        }
        del spool  # the graph of the vectors is the largest of all
        _save_vectors(directory / files.VECTORS, encoder, _joined(texts, responses[:, None], known), threads)
        (directory / files.CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False), encoding="utf-8")
    return config


def build_for(predictor, out, conversations, facts=None):
    """Writes an index for a model, as `build` does.

    Args:
        predictor: The `tasks.selection.predictor.SelectionPredictor` of a run.
        out, conversations, facts: As of `build`.
    """
    vectors = predictor.model.get_layer("word_embedding").get_weights()[0]
    return build(out, conversations, predictor.vocabulary, vectors, predictor.text, facts)


def index_of_run(path, predictor):
    """The index in a run directory. It is built where there is none, but conversations to build it of.

    Args:
        path: The run directory, a `pathlib.Path`.
        predictor: Of the run.

    Returns:
        Its path; `None` where there is neither, or nothing may be written there.

    Raises:
        UserError: where the conversations are at fault.
    """
    index, pairs = path / INDEX, path / PAIRS
    if not index.is_dir() and pairs.is_dir() and os.access(path, os.W_OK):
        print(f"{index}: built once, of {pairs}", flush=True)
        try:
            build_for(predictor, index, of_corpus("smn", pairs), {"made_of": [PAIRS]})
        except UserError:
            if not index.is_dir():  # else somebody else has built it meanwhile
                raise
    return index if index.is_dir() else None


def unfit_of(words, texts, vocabulary):
    """Which texts are no answers, bool `(texts,)`.

    Args:
        words: Every word.
        texts: `data.sequences.Sequences` of places in `words`.
        vocabulary: The run's.
    """
    letters = np.array([any(map(str.isalnum, word)) for word in words])
    masked = np.array([word.lower() in PLACEHOLDERS for word in words])
    found = [addressing(texts, words, set(vocabulary.words).__contains__)]
    for start, part in zip(range(0, len(texts), PART), texts.parts(PART), strict=True):
        rows = np.repeat(np.arange(len(part)), part.lengths)
        said = np.bincount(rows[letters[part.ids]], minlength=len(part))
        found[0][start : start + PART] |= (said == 0) | (np.bincount(rows[masked[part.ids]], minlength=len(part)) > 0)
    return found[0]


def fit_turns(spool, unfit):
    """The turns that are responses, of which no two have one text and `TURNS` equal turns in front of them.

    Args:
        spool: A `tasks.selection.retrieval.spool.Spool`.
        unfit: Which of its texts are no answers, bool `(texts,)`.

    Returns:
        int `(pairs,)`, in the order of their texts' numbers.
    """
    turns = np.flatnonzero((spool.places > 0) & ~unfit[spool.numbers])
    columns = [*spool.before(turns, TURNS).T, spool.numbers[turns]]
    order = np.lexsort(columns)  # by the response first
    differs = np.ones(len(order), bool)
    differs[1:] = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
    return turns[order[differs]]


def _joined(texts, numbers, ids=None):
    """Yields `texts.joined(numbers)` in parts, with other ids: `ids[id]`."""
    for start in range(0, len(numbers), PART):
        part = texts.joined(numbers[start : start + PART])
        yield part if ids is None else type(part)(ids[part.ids], part.starts, part.lengths)


def _save_texts(directory, spool, turns, responses, contexts):
    """Stores the responses, then all other texts that contexts need, and the pairs by these new numbers.

    Returns:
        How many texts there are.
    """
    others = np.zeros(len(spool), bool)
    others[contexts[contexts >= 0]] = True
    others[responses] = False
    order = np.concatenate([responses, np.flatnonzero(others)])
    number = np.full(len(spool) + 1, -1, np.int32)
    number[order] = np.arange(len(order))  # that of -1, the last, stays -1
    np.save(directory / files.PAIRS, number[np.column_stack([contexts, spool.numbers[turns]])])
    ends = [0]
    with open(directory / files.TEXTS, "wb") as file:
        for text in spool.texts(order):
            ends.append(ends[-1] + file.write(text))
    np.save(directory / files.OFFSETS, np.array(ends, np.int64))
    return len(order)


def _save_vectors(file, encoder, parts, threads):
    """The graph of the vectors of the responses."""
    nearest = files.new_vectors(encoder.dimension)
    for part in parts:
        nearest.add(len(nearest) + np.arange(len(part)), encoder.responses(part), threads=threads)
    nearest.save(file)
