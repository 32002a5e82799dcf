"""BM25 built part by part in NumPy, for bm25s to search (Lu 2024): its scores are computed when the index is built.

    score(w, d) = idf(w) tf / (tf + k1 (1 - b + b |d| / mean |d|)),   idf(w) = log(1 + (N - df + 1/2) / (df + 1/2))

What bm25s builds by itself is the same, from lists of Python numbers: fifteen times slower, and all in memory.
"""

import bm25s
import numpy as np


def save(directory, parts, words):
    """Writes an index that `bm25s.BM25.load` reads; without the words themselves.

    Args:
        directory: Where.
        parts: Function that returns an iterator of `data.sequences.Sequences` of word ids, which all documents are in;
            called twice.
        words: How many ids there are.
    """
    frequency, documents, length = np.zeros(words, np.int64), 0, 0
    for part in parts():
        frequency += np.bincount(_counts(part, words)[1], minlength=words)
        documents, length = documents + len(part), length + int(part.lengths.sum())
    index = bm25s.BM25()
    idf = np.log1p((documents - frequency + 0.5) / (frequency + 0.5))
    ends = np.cumsum(frequency)
    place = ends - frequency  # where the next entry of each word goes
    data, indices = np.empty(frequency.sum(), np.float32), np.empty(frequency.sum(), np.int32)
    begin = 0
    for part in parts():
        document, word, tf = _counts(part, words)
        relative = part.lengths[document] / max(length / documents, 1e-9)
        score = idf[word] * tf / (tf + index.k1 * (1 - index.b + index.b * relative))
        order = np.argsort(word, kind="stable")
        word = word[order]
        within = np.arange(len(word)) - np.searchsorted(word, word)
        data[place[word] + within], indices[place[word] + within] = score[order], begin + document[order]
        place += np.bincount(word, minlength=words)
        begin += len(part)
    starts = np.concatenate([[0], ends]).astype(np.int64)
    index.scores = {"data": data, "indices": indices, "indptr": starts, "num_docs": documents}
    index.vocab_dict, index.nonoccurrence_array = {}, None
    index.save(directory, show_progress=False)


def _counts(part, words):
    """How often each word stands in each document: documents in order, words, counts, of those above 0."""
    document = np.repeat(np.arange(len(part)), part.lengths)
    key, tf = np.unique(document * words + part.flat(), return_counts=True)
    return key // words, key % words, tf
