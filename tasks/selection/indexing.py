"""Builds what `tasks.selection.index` reads: conversations become texts, pairs, and three searches."""

import json

import bm25s
import numpy as np

from base.files import UserError, atomic_directory
from data.sequences import Sequences
from data.tokenizers import words_of
from data.vocabulary import SPECIALS, Vocabulary
from tasks.selection import index as files
from tasks.selection.index import READ, TURNS
from tasks.selection.names import addressing
from tasks.selection.vectors import PairEncoder

FIT_PAIRS = 200_000
"""At most so many pairs, drawn at random, say how contexts and responses vary together."""
UNKNOWN = SPECIALS[1]
CHUNK = 20_000
"""Texts that are worked on at once where all would take much memory."""


class Utterances:
    """Distinct texts, numbered as they come, and their words.

    Args:
        text: `tokenizer` and `lower` of `data.tokenizers.words_of`.
    """

    def __init__(self, text):
        self.text, self.texts, self._numbers = text, [], {}
        self._word_ids = {word: id for id, word in enumerate(("", *SPECIALS))}  # as a `Vocabulary` will number them
        self._ids, self._lengths = [], []

    def number(self, text):
        """The number of a text."""
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
            ids = [self._word_ids.setdefault(word, len(self._word_ids)) for word in words_of(text, **self.text)]
            self._ids.append(np.array(ids, np.int32))
            self._lengths.append(len(ids))
        return self._numbers[text]

    def words(self):
        """Every distinct word at the place of its id, and the words of every text as `Sequences` of ids."""
        lengths = np.array(self._lengths, np.int64)
        ids = np.concatenate(self._ids) if self._ids else np.zeros(0, np.int32)
        return list(self._word_ids), Sequences(ids, np.cumsum(lengths) - lengths, lengths)


def read_pairs(conversations, text):
    """Every utterance of a conversation but the first is a response to those in front of it.

    Args:
        conversations: Iterable of lists of texts, the oldest first; one may be the beginning of another.
        text: As of `Utterances`.

    Returns:
        `Utterances`, and the distinct pairs, int32 `(pairs, READ + 1)`: the numbers of the last `READ` turns, the
        oldest first, -1: none; then of the response.
    """
    utterances, pairs = Utterances(text), {}
    for turns in conversations:
        numbers = [-1] * READ + [utterances.number(turn.strip()) for turn in turns]
        pairs.update(dict.fromkeys(tuple(numbers[i : i + READ + 1]) for i in range(1, len(turns))))
    return utterances, np.array(list(pairs), np.int32).reshape(-1, READ + 1)


def joined(texts, numbers):
    """Concatenates texts.

    Args:
        texts: `Sequences`.
        numbers: Which texts make each result, int `(results, texts)`; -1: none.

    Returns:
        `Sequences` of the results.

    >>> joined(Sequences.of([[4, 5], [6], [7, 8, 9]]), np.array([[2, 0], [-1, 1]])).lists()
    [[7, 8, 9, 4, 5], [6]]
    """
    lengths = np.where(numbers >= 0, texts.lengths[numbers], 0)
    flat = lengths.ravel()
    begins = np.cumsum(flat) - flat
    source = np.arange(flat.sum()) + np.repeat(texts.starts[numbers.ravel()] - begins, flat)
    total = lengths.sum(axis=1)
    return Sequences(texts.ids[source], np.cumsum(total) - total, total)


def build(out, conversations, vocabulary, vectors, text, facts=None, threads=2, seed=1):
    """Writes an index.

    Left out are responses without a word, with `_UNK_` in them, and those that call somebody by name
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
    with atomic_directory(out) as directory:
        utterances, pairs = read_pairs(conversations, text)
        words, texts = utterances.words()
        unfit = unfit_of(words, texts, vocabulary)
        kept = pairs[~unfit[pairs[:, -1]]]
        if not len(kept):
            raise UserError("an index needs conversations with responses that are fit. Received: none")
        kept = kept[np.argsort(kept[:, -1], kind="stable")]
        responses = np.unique(kept[:, -1])
        contexts = kept[:, -1 - TURNS : -1]
        order = np.concatenate([responses, np.setdiff1d(contexts, [-1, *responses])])
        number = np.full(len(texts.lengths) + 1, -1, np.int32)
        number[order] = np.arange(len(order))  # that of -1, the last, stays -1
        np.save(directory / files.PAIRS, number[kept[:, -1 - TURNS :]])
        _save_texts(directory, [utterances.texts[i] for i in order])

        Vocabulary(words[1:]).save(directory / files.WORDS)
        _save_words(directory / files.CONTEXTS, joined(texts, contexts), len(words))
        _save_words(directory / files.RESPONSES, joined(texts, responses[:, None]), len(words))

        known_ids = np.array([0, *vocabulary.encode(words[1:])], np.int32)[texts.ids]
        known = Sequences(known_ids, texts.starts, texts.lengths)
        drawn = kept[np.random.default_rng(seed).permutation(len(kept))[:FIT_PAIRS]]
        encoder = PairEncoder.fit(joined(known, drawn[:, :-1]), joined(known, drawn[:, -1:]), vectors)
        encoder.save(directory / files.ENCODER)
        _save_vectors(directory / files.VECTORS, encoder, known, responses, threads)
        config = {
            "index": files.VERSION,
            "vocabulary": files.vocabulary_hash(vocabulary),
            "text": text,
            "responses": len(responses),
            "pairs": len(kept),
            "utterances": len(order),
            "words": len(words) - 1,
            "left_out": len(np.unique(pairs[:, -1])) - len(responses),
            "dimension": encoder.dimension,
            **(facts or {}),
        }
        (directory / files.CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False), encoding="utf-8")
    return config


def unfit_of(words, texts, vocabulary):
    """Which texts are no answers, bool `(texts,)`."""
    known, letters = set(vocabulary.words).__contains__, np.array([any(map(str.isalnum, word)) for word in words])
    lists = _Lists(texts, words)
    unfit = np.array(addressing(lists, known), bool)
    rows = np.repeat(np.arange(len(texts.lengths)), texts.lengths)
    unknown = np.array([word.upper() == UNKNOWN for word in words])
    unfit[rows[unknown[texts.ids]]] = True
    return unfit | (np.bincount(rows, weights=letters[texts.ids], minlength=len(unfit)) == 0)


def _save_texts(directory, texts):
    encoded = [text.encode() for text in texts]
    with open(directory / files.TEXTS, "wb") as file:
        file.writelines(encoded)
    np.save(directory / files.OFFSETS, np.cumsum([0, *map(len, encoded)], dtype=np.int64))


def _save_vectors(file, encoder, texts, responses, threads):
    """The graph of the vectors of the responses, numbers of `texts`."""
    nearest = files.new_vectors(encoder.dimension)
    for start in range(0, len(responses), CHUNK):
        chunk = responses[start : start + CHUNK, None]
        nearest.add(np.arange(start, start + len(chunk)), encoder.responses(joined(texts, chunk)), threads=threads)
    nearest.save(file)


def _save_words(directory, texts, words):
    """BM25 over some `Sequences`, by the ids of their words alone: the words themselves would be stored twice."""
    index = bm25s.BM25()
    index.scores = index.build_index_from_ids(range(words), _Lists(texts), show_progress=False)
    index.vocab_dict = {}
    index.save(directory, show_progress=False)


class _Lists:
    """`Sequences` as lists, made when they are asked for; of words where these are given."""

    def __init__(self, texts, words=None):
        self.texts, self.words = texts, words

    def __len__(self):
        return len(self.texts.lengths)

    def __iter__(self):
        for start in range(0, len(self), CHUNK):
            begins, lengths = self.texts.starts[start : start + CHUNK], self.texts.lengths[start : start + CHUNK]
            for begin, length in zip(begins.tolist(), lengths.tolist(), strict=True):
                ids = self.texts.ids[begin : begin + length].tolist()
                yield ids if self.words is None else [self.words[id] for id in ids]
